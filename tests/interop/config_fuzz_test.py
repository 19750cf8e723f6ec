"""Configs that nobody meant to write, beside sound weights: the model that the weights are, or a
ValueError that says what is wrong; nothing else, and no memory for what a config announces."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from nope.interop import Described, describe, open_directory, save
from nope.interop.safetensors import CheckpointFileError
from nope.model import LayerKind, ModelConfig, counts
from nope.positions import NoPE, Rotary, Yarn
from tests import tiny
from tests.interop.family_cases import OF_FAMILY, decoder

# Layers of several kinds, of several shapes, RoPE by the type of layer, and nested settings.
MODELS: dict[str, ModelConfig] = {
    'llama': decoder(position=Rotary(scaling=Yarn(4.0, 16)), heads=2, kv_heads=1),
    'smollm3': decoder(pattern=(LayerKind(Rotary()), LayerKind(NoPE()))),
    **{name: OF_FAMILY[name] for name in ('olmo3', 'gemma4_text', 'mpt')},
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.integers(-3, 70)
    | st.floats()
    | st.sampled_from([0.0, 1.0, 1e-5, 1e300, 'rope', 'default', 'yarn', 'silu', 'gelu', ''])
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=4,
)


@pytest.fixture(scope='module')
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    made = tmp_path_factory.mktemp('models')
    for name, model in MODELS.items():
        save(made / name, tiny.variables(model), Described(model, 16))
    return {name: made / name for name in MODELS}


EXAMPLES = settings(
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


def paths(config: dict[str, Any]) -> list[tuple[str, ...]]:
    """Every key of a config, and those one level down."""
    inner = [(k, key) for k, v in config.items() if isinstance(v, dict) for key in v]
    return [(key,) for key in config] + inner


@pytest.mark.parametrize('examples', [30, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize('family', MODELS)
def test_a_config_is_refused_or_is_the_model_of_the_weights(
    folders: dict[str, pathlib.Path], family: str, examples: int
) -> None:
    @settings(EXAMPLES, max_examples=examples)
    @given(data=st.data())
    def is_refused_or_is_the_model(data: st.DataObject) -> None:
        check(folders[family], family, data)

    is_refused_or_is_the_model()


def check(folder: pathlib.Path, family: str, data: st.DataObject) -> None:
    file = folder / 'config.json'
    original = file.read_text()
    config: dict[str, Any] = json.loads(original)
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(paths(config)))
        holder = config if len(path) == 1 else config.get(path[0])
        if not isinstance(holder, dict):
            continue
        if data.draw(st.booleans()):
            holder[path[-1]] = data.draw(JSON)
        else:
            holder.pop(path[-1], None)
    tracemalloc.start()
    try:
        file.write_text(json.dumps(config))
        found = describe(open_directory(folder)).model
    except CheckpointFileError as error:  # against the weights, or no config at all
        assert str(folder) in str(error)
    except ValueError as error:
        assert 'config.json' in str(error) or str(error).startswith('model.'), error
    else:
        # Whether two matrices are one is seen in their values, when they are loaded.
        wanted = dataclasses.replace(MODELS[family], tied_head=found.tied_head)
        assert counts.parameters(found) == counts.parameters(wanted)
        assert (found.layers, found.width) == (wanted.layers, wanted.width)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        file.write_text(original)
    assert peak < 64 << 20
