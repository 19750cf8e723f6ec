"""Who may import whom, read from the syntax tree of every file.

    attention, positions, state_space -> model -> {sharding, variables, heads, checkpoints, interop}
        -> {training, evals} -> {pretrained, experiments}

Lower never imports higher. Leaves (data, losses, records) stand beside the layers and import no
part of `nope` but the ground (runtime, identity), which imports none.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import graphlib
import importlib.metadata
import pathlib
import re
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator

import pytest

ROOT = pathlib.Path(__file__).parent.parent

GROUND = frozenset({'identity', 'runtime'})
LEAVES = frozenset({'data', 'losses', 'records'})
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({'attention', 'positions', 'state_space'}),
    frozenset({'model'}),
    frozenset({'checkpoints', 'heads', 'interop', 'sharding', 'theorems', 'variables'}),
    frozenset({'evals', 'training'}),
    frozenset({'pretrained'}),
)
LAYER_OF = {part: level for level, parts in enumerate(LAYERS) for part in parts}

# The parts of experiments; none imports a later one.
FLOOR: tuple[frozenset[str], ...] = (
    frozenset({'config', 'config_files', 'figures', 'homes', 'pieces', 'statuses'}),
    frozenset({'board', 'models', 'specs', 'typed'}),
    frozenset({'bench', 'facts', 'figure_configs', 'programs', 'runs', 'scope', 'workspace'}),
    frozenset({'evaluations', 'exports', 'failures'}),
    frozenset({'entries'}),
    frozenset({'build', 'plan'}),
    frozenset({'ahead', 'costs', 'draw', 'execute', 'history'}),
    frozenset({'claims', 'command', 'report', 'status'}),
    frozenset({'run'}),
    frozenset({'cli'}),
)

# The parts of figures; none imports a later one.
DRAWING: tuple[frozenset[str], ...] = (
    frozenset({'look'}),
    frozenset({'given'}),
    frozenset({'roles'}),
    frozenset({'read'}),
    frozenset({'claims'}),
    frozenset({'base'}),
    frozenset({'resampled', 'seeds'}),
    frozenset({'kinds'}),
    frozenset({'by_kind'}),
)

# Whatever sits at or below the first name never imports what sits at or below the second ones.
FORBIDDEN = {
    'nope': ('absl.app', 'absl.flags', 'configs', 'experiments', 'ml_collections'),
    'nope.data': ('flax', 'jax', 'jaxlib', 'optax', 'orbax'),
    'experiments': ('configs',),
    'experiments.evaluations': ('experiments.figures', 'matplotlib'),
}
FORBIDDEN_EVERYWHERE = ('tensorflow', 'tests', 'tools', 'torch')

# Whatever sits at or below the first name imports nothing but the second ones.
ONLY = {
    'configs': ('__future__', 'configs', 'ml_collections'),
    'experiments.figures': (
        *sys.stdlib_module_names,
        'experiments.figures',
        'matplotlib',
        'nope.runtime.amounts',
        'nope.runtime.files',
        'nope.records',
        'numpy',
        'scipy',
    ),
    'nope.runtime.amounts': tuple(sys.stdlib_module_names),
    'nope.runtime.files': tuple(sys.stdlib_module_names),
    'nope.records': (*sys.stdlib_module_names, 'nope.runtime.files', 'numpy'),
}

# Stand-ins for libraries that are loaded late, which a type checker sees as the libraries. No other
# file has imports for types alone.
LATE = ('experiments/figures/look/mpl.py', 'nope/runtime/libraries.py')

# Whatever sits at or below the first name may import the second ones, which come with an extra, but
# only inside functions: the default installation loads it.
OPTIONAL = {
    'experiments.cli.harness': ('lm_eval',),
    'nope.evals.harness': ('lm_eval',),
    'nope.training.tracker': ('wandb',),
}


@dataclasses.dataclass(frozen=True)
class Import:
    """One imported name, in full ('nope.records.Records'), and whether loading the module that
    holds the statement runs it (it does not inside a function or under TYPE_CHECKING)."""

    name: str
    on_load: bool


def imports_of(source: str, module: str, is_package: bool = False) -> list[Import]:
    """Every import statement of `source`, the text of `module`, wherever it stands."""
    package = module if is_package else module.rpartition('.')[0]
    return list(_walk(ast.parse(source), package, on_load=True))


def _walk(node: ast.AST, package: str, on_load: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(alias.name, on_load) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        origin = node.module or ''
        if node.level:
            parents = package.split('.')
            origin = '.'.join([*parents[: len(parents) - node.level + 1], *filter(None, [origin])])
        yield from (Import(f'{origin}.{alias.name}', on_load) for alias in node.names)
    elif isinstance(node, ast.If) and 'TYPE_CHECKING' in ast.unparse(node.test):
        for statement in node.body:
            yield from _walk(statement, package, on_load=False)
        for statement in node.orelse:
            yield from _walk(statement, package, on_load)
    else:
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from _walk(child, package, on_load and not inside)


def is_within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + '.')


def violations(module: str, imports: Iterable[Import]) -> list[str]:
    """The rules that `module` breaks, one line each."""
    broken = []
    for name in sorted({i.name for i in imports}):
        forbidden = [p for below, ps in FORBIDDEN.items() if is_within(module, below) for p in ps]
        if any(is_within(name, p) for p in (*forbidden, *FORBIDDEN_EVERYWHERE)):
            broken.append(f'{module} imports {name}')
        for below, allowed in ONLY.items():
            if is_within(module, below) and not any(is_within(name, p) for p in allowed):
                broken.append(f'{module} imports {name}, which {below} may not')
        if is_within(module, 'nope') and is_within(name, 'nope') and not _goes_down(module, name):
            broken.append(f'{module} imports {name}, against the order of the layers')
    return broken


def _goes_down(module: str, name: str) -> bool:
    if module == 'nope' or name == 'nope':
        return False
    importer, imported = module.split('.')[1], name.split('.')[1]
    if importer == imported:
        return True
    if importer in GROUND:
        return False
    if imported in GROUND:
        return True
    if importer in LEAVES:
        return False
    if imported in LEAVES:
        return True
    return importer in LAYER_OF and LAYER_OF.get(imported, len(LAYERS)) <= LAYER_OF[importer]


def cycle(imports: dict[str, list[Import]]) -> list[str]:
    """Modules that need each other while they load, the first again at the end; or nothing.

    `from a import b` needs the module `a.b` where there is one, else `a`.
    """
    graph = {
        module: {_module_of(i.name, imports) for i in found if i.on_load} - {module, None}
        for module, found in imports.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def _module_of(name: str, modules: Collection[str]) -> str | None:
    while name and name not in modules:
        name = name.rpartition('.')[0]
    return name or None


def loaded_with(module: str, imports: dict[str, list[Import]]) -> set[str]:
    """Full names of all that loading `module` imports, directly or through other modules."""
    names: set[str] = set()
    waiting = [module]
    while waiting:
        current = _module_of(waiting.pop(), imports)
        if current is None:
            continue
        packages = [current[:end] for end in range(len(current)) if current[end] == '.']
        for loading in (current, *packages):
            new = {i.name for i in imports.get(loading, []) if i.on_load} - names
            names |= new
            waiting += new
    return names


def project_imports(*packages: str) -> dict[str, list[Import]]:
    """Module name -> its imports, for every Python file of `packages`."""
    return {module: found for package in packages for module, found in _imports_in(package).items()}


@functools.cache
def _imports_in(package: str) -> dict[str, list[Import]]:
    found = {}
    for path in sorted((ROOT / package).rglob('*.py')):
        parts = path.relative_to(ROOT).with_suffix('').parts
        is_package = parts[-1] == '__init__'
        module = '.'.join(parts[:-1] if is_package else parts)
        found[module] = imports_of(path.read_text(), module, is_package)
    return found


def test_every_module_keeps_to_its_layer() -> None:
    broken = [
        line
        for module, imports in project_imports('nope', 'experiments', 'configs').items()
        for line in violations(module, imports)
    ]
    assert not broken, '\n'.join(broken)


def test_every_part_of_nope_has_a_layer() -> None:
    parts = {module.split('.')[1] for module in project_imports('nope') if '.' in module}
    assert parts, 'no module found: the rules were checked against nothing'
    assert parts <= GROUND | LEAVES | LAYER_OF.keys()


@pytest.mark.parametrize('package', ['nope', 'experiments'])
def test_there_is_no_circle_however_it_is_hidden(package: str) -> None:
    """Imports inside functions and under TYPE_CHECKING count too."""
    found = {
        module: [dataclasses.replace(i, on_load=True) for i in imports]
        for module, imports in project_imports(package).items()
    }
    assert len(found) > 50
    assert cycle(found) == []


def test_no_import_is_for_types_alone_but_for_what_is_loaded_late() -> None:
    hidden = [
        str(path.relative_to(ROOT))
        for package in ('nope', 'experiments', 'configs', 'tools')
        for path in (ROOT / package).rglob('*.py')
        if 'TYPE_CHECKING' in path.read_text()
    ]
    assert sorted(hidden) == [*LATE]


@pytest.mark.parametrize(
    ('package', 'levels'), [('experiments', FLOOR), ('experiments.figures', DRAWING)]
)
def test_the_parts_of_a_package_are_built_from_below(
    package: str, levels: tuple[frozenset[str], ...]
) -> None:
    """config and specs -> runs -> evaluations -> build -> plan -> execute -> run, and look ->
    given -> read -> claims -> kinds."""
    order = {part: level for level, parts in enumerate(levels) for part in parts}
    inside = f'{package}.'
    imports = {m: i for m, i in project_imports('experiments').items() if m.startswith(inside)}

    def part(name: str) -> str:
        return name.removeprefix(inside).partition('.')[0]

    assert {part(module) for module in imports} == set(order), f'each part of {package} has a level'
    upwards = [
        f'{module} imports {i.name}'
        for module, found in imports.items()
        for i in found
        if i.name.startswith(inside) and order[part(i.name)] > order[part(module)]
    ]
    assert upwards == []


def test_drawing_needs_no_model() -> None:
    names = loaded_with('experiments.draw', project_imports('nope', 'experiments'))
    assert any(is_within(name, 'nope.records') for name in names)
    assert not [name for name in names if is_within(name, 'jax') or is_within(name, 'flax')]


def test_a_report_needs_no_model() -> None:
    names = loaded_with('experiments.report.__main__', project_imports('nope', 'experiments'))
    assert any(is_within(name, 'jinja2') for name in names)
    assert not [name for name in names if is_within(name, 'jax') or is_within(name, 'flax')]


def test_watching_a_sweep_needs_no_model() -> None:
    names = loaded_with('experiments.status', project_imports('nope', 'experiments'))
    assert any(is_within(name, 'nope.checkpoints.holder') for name in names)
    assert not [name for name in names if is_within(name, 'jax') or is_within(name, 'flax')]


def test_tools_never_import_tests() -> None:
    found = {i.name for imports in project_imports('tools').values() for i in imports}
    assert not {name for name in found if is_within(name, 'tests')}


def test_every_import_is_a_declared_dependency() -> None:
    """What the default install leaves out (an extra) may be imported by tools, and where
    OPTIONAL says so."""
    project = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']
    declared = _distributions(project['dependencies'])
    found = importlib.metadata.packages_distributions()
    own = {'nope', 'experiments', 'configs'}
    undeclared = [
        f'{module} imports {top}'
        for module, imports in project_imports(*sorted(own)).items()
        for top in sorted(third_party(module, imports) - own)
        if not {_normal(d) for d in found.get(top, [])} & declared
    ]
    assert not undeclared


def third_party(module: str, imports: Iterable[Import]) -> set[str]:
    """Top-level packages outside the standard library that `module` cannot do without."""
    optional = {
        name for below, names in OPTIONAL.items() if is_within(module, below) for name in names
    }
    tops = {top for i in imports if (top := i.name.split('.')[0]) not in optional or i.on_load}
    return tops - sys.stdlib_module_names


def test_what_is_optional_comes_with_an_extra() -> None:
    project = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']
    extras = _distributions(
        line for lines in project['optional-dependencies'].values() for line in lines
    )
    optional = {_normal(name) for names in OPTIONAL.values() for name in names}
    assert optional <= extras - _distributions(project['dependencies'])


def test_what_is_optional_may_wait_in_a_function_of_its_part() -> None:
    waiting = imports_of('def f():\n    import lm_eval.api', 'nope.evals.harness.model')
    loading = imports_of('import lm_eval.api', 'nope.evals.harness.model')
    assert third_party('nope.evals.harness.model', waiting) == set()
    assert third_party('nope.evals.harness.model', loading) == {'lm_eval'}
    assert third_party('nope.evals.forward', waiting) == {'lm_eval'}


def _distributions(requirements: Iterable[str]) -> set[str]:
    return {_normal(re.split(r'[\s\[<>=!~;]', line)[0]) for line in requirements}


def _normal(distribution: str) -> str:
    return re.sub(r'[-_.]+', '-', distribution).lower()


@pytest.mark.parametrize(
    ('module', 'source'),
    [
        ('nope.training.train', 'from absl import flags'),
        ('nope.model.config', 'import ml_collections'),
        ('nope.model.config', 'def f():\n    import torch'),
        ('nope.evals.forward', 'import tensorflow.io as io'),
        ('nope.attention.api', 'from nope.model import ModelConfig'),
        ('nope.attention.api', 'from ..model import ModelConfig'),
        ('nope.model', 'from nope import sharding'),
        ('nope.variables', 'import nope.training.train'),
        ('nope.variables', 'from experiments import specs'),
        ('nope.data.pipeline', 'import jax.numpy as jnp'),
        ('nope.data.pipeline', 'from flax import struct'),
        ('nope.data.pipeline', 'from nope.training import metrics'),
        ('nope.records', 'import jax'),
        ('nope.losses', 'from nope.model import ModelConfig'),
        ('configs.first_paper.fig1', 'import numpy'),
        ('configs.first_paper.fig1', 'import experiments.specs'),
        ('experiments.figures.kinds.heads', 'from nope.model import ModelConfig'),
        ('experiments.figures.kinds.heads', 'from experiments import specs'),
        ('experiments.figures.kinds.heads', 'import pandas'),
        ('experiments.run', 'from tests import helpers'),
        ('experiments.run', 'import tools.bench.train'),
        ('experiments.run', 'from configs.first_paper import fig1'),
    ],
)
def test_a_broken_rule_is_found(module: str, source: str) -> None:
    assert violations(module, imports_of(source, module))


@pytest.mark.parametrize(
    ('module', 'source'),
    [
        ('nope.training.train', 'from nope import variables\nfrom nope.runtime import hardware'),
        ('nope.model.layers', 'from nope.attention import attention\nfrom .config import A'),
        ('nope.evals.forward', 'from nope import losses, records\nfrom nope.training import train'),
        ('nope.data.pipeline', 'import grain\nfrom nope.data import batch'),
        ('configs.first_paper.fig1', 'import ml_collections\nfrom configs.shared import models'),
        (
            'experiments.figures.kinds.heads',
            'import json\nimport numpy as np\nfrom nope import records',
        ),
        (
            'experiments.run',
            'from absl import app, flags\nfrom nope.training import train\nimport jax',
        ),
    ],
)
def test_a_kept_rule_is_not(module: str, source: str) -> None:
    assert violations(module, imports_of(source, module)) == []


def test_a_cycle_is_found_unless_an_import_waits() -> None:
    lower = imports_of('from nope.a import c', 'nope.b')
    waiting = imports_of('def f():\n    from nope.a import c', 'nope.b')
    typing = imports_of('if TYPE_CHECKING:\n    from nope.a import c', 'nope.b')
    upper = imports_of('from nope import b', 'nope.a.c')
    assert set(cycle({'nope.a.c': upper, 'nope.b': lower})) == {'nope.a.c', 'nope.b'}
    assert cycle({'nope.a.c': upper, 'nope.b': waiting}) == []
    assert cycle({'nope.a.c': upper, 'nope.b': typing}) == []


def test_what_a_module_loads_is_followed_through_others() -> None:
    imports = {
        'a': imports_of('import jax', 'a', is_package=True),
        'a.b': imports_of('def f():\n    import torch', 'a.b'),
        'c': imports_of('from a.b import f', 'c'),
    }
    assert loaded_with('c', imports) == {'a.b.f', 'jax'}


def test_relative_imports_are_resolved() -> None:
    assert imports_of('from . import b', 'nope.a.c') == [Import('nope.a.b', True)]
    assert imports_of('from .b import d', 'nope.a', is_package=True) == [Import('nope.a.b.d', True)]
    assert imports_of('from ..e import f', 'nope.a.c') == [Import('nope.e.f', True)]
