"""Models in run folders: `spec.json`, which says what the model is, and its checkpoints."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from jax.sharding import Mesh

from nope.checkpoints import folders
from nope.checkpoints.manager import Checkpoints
from nope.identity import plain, rebuild
from nope.interop.families.base import Described
from nope.model import LayerKind, ModelConfig
from nope.model.lam import FORMS
from nope.positions import KINDS, SCALINGS
from nope.runtime import files
from nope.runtime.files import read_json, write_json
from nope.variables import Variables, abstract_variables

_TYPES: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (ModelConfig, LayerKind, *FORMS.values(), *KINDS.values(), *SCALINGS.values())
}


class SavedModel(NamedTuple):
    """What a run folder holds: the model, its variables, and `spec.json`."""

    described: Described
    variables: Variables
    spec: Mapping[str, Any]


def read_run(folder: pathlib.Path, mesh: Mesh, step: int | None = None) -> SavedModel:
    """The model of a finished run at its last checkpoint, or of any run at `step`.

    ValueError where the folder holds no run, one that is not finished (without a step), or one
    that this version cannot read;
    `nope.checkpoints.manager.CheckpointError` where its checkpoint is damaged or missing.
    """
    spec = read_json(folder / 'spec.json')
    checkpoints_in = folders.of_run(folder)
    if spec is None or not checkpoints_in.is_dir():
        raise ValueError(f'{folder} is no run folder: it needs spec.json and checkpoints')
    if step is None and not (folder / 'done.json').exists():
        raise ValueError(
            f'{folder} is not finished; start its command again, or name the step of a checkpoint'
        )
    try:
        model = rebuild(spec['model'], _TYPES)
        train_length = int(spec['train_length']) or None
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f'{folder / "spec.json"} describes no model we know: {error}') from error
    with Checkpoints(checkpoints_in, spec) as checkpoints:
        variables = checkpoints.read(abstract_variables(model, mesh), step)
    return SavedModel(Described(model, train_length, _dtype(spec)), variables, spec)


def _dtype(spec: Mapping[str, Any]) -> str:
    """The dtype that the weights came in, where they were imported; else float32."""
    source: Mapping[str, Any] | None = spec
    while source:
        if 'dtype' in source:
            return str(source['dtype'])
        source = source.get('init')
    return 'float32'


def write_run(
    folder: pathlib.Path,
    described: Described,
    variables: Variables,
    mesh: Mesh,
    origin: Mapping[str, Any],
) -> None:
    """Saves an imported model as a finished run of no steps, which `read_run` reads.

    ValueError where the folder is there already.
    """
    if folder.exists():
        raise ValueError(f'{folder} is there already; nothing was written')
    spec = {
        'type': 'Imported',
        'model': plain(described.model),
        'train_length': described.train_length or 0,
        'dtype': described.dtype,
        'origin': dict(origin),
    }
    partial = files.unfinished(folder.absolute())
    write_json(partial / 'spec.json', spec)
    with Checkpoints(partial / 'checkpoints', spec) as checkpoints:
        checkpoints.save(0, variables, {'consumed': 0})
    write_json(partial / 'done.json', {'steps': 0, 'seconds': 0})
    partial.rename(folder)
