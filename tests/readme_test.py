"""READMEs: links that resolve, files that exist, one row for each config of a figure."""

from __future__ import annotations

import pathlib
import re
import tomllib
from collections.abc import Iterable

import pytest

from experiments import config_files, evaluations
from experiments.figures import KINDS
from nope.attention.api import BACKENDS
from nope.data import sources
from nope.positions import registry
from nope.positions.scaling import SCALINGS
from tools.bench.__main__ import PROGRAMS

ROOT = pathlib.Path(__file__).parents[1]
FOLDERS = ('configs', 'experiments', 'nope', 'tests', 'tools', '.github')
PAGES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob('*.md'))
PAGES.append(ROOT / 'README.md')

CONFIGS = config_files.names()

_LINK = re.compile(r'!?\[[^\]]*\]\(([^)\s]+)\)')
_FILE = re.compile(r'`((?:nope|experiments|configs|tools|tests)/[\w./-]+\.\w+)(?::\w+)?`')
_COMMAND = re.compile(r'--config=(configs/\w+/\w+\.py)')
_FIGURE = re.compile(r'^\| `(\w+)` \|', re.MULTILINE)
_TOOL = re.compile(r'^ +(?:python )?(tools/[\w./]+)', re.MULTILINE)


# zsh, the shell of macOS, takes a typed # for an argument.
_COMMENTED = re.compile(
    r'^    (?:(?:python|pip|tools/|sbatch|pre-commit|    --).*) # .*', re.MULTILINE
)


def _without_placeholders(names: list[str]) -> list[str]:
    """Names that stand for a file, without patterns such as `families/NAME.py`."""
    return [name for name in names if not re.search(r'\b[A-Z]{2,}\b', pathlib.Path(name).stem)]


def _headings(page: pathlib.Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r'^#+ (.+)$', page.read_text(), re.MULTILINE)
    return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in found}


@pytest.mark.parametrize('page', PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_can_be_pasted_into_any_shell(page: pathlib.Path) -> None:
    assert not _COMMENTED.findall(page.read_text())


@pytest.mark.parametrize('page', PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve_inside_the_repository(page: pathlib.Path) -> None:
    for link in _LINK.findall(page.read_text()):
        if '://' in link:
            continue
        name, _, anchor = link.partition('#')
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f'{link}: no such file'
        assert target.is_relative_to(ROOT), f'{link} leaves the repository'
        if anchor:
            assert anchor in _headings(target), f'{link}: no such heading'


@pytest.mark.parametrize('page', PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_named_in_a_page_exist(page: pathlib.Path) -> None:
    text = page.read_text()
    named = [*_FILE.findall(text), *_COMMAND.findall(text), *_TOOL.findall(text)]
    for name in _without_placeholders(named):
        assert (ROOT / name).exists(), f'{name}: no such file'


def test_every_page_can_be_reached_from_the_front_page() -> None:
    reached, todo = set(), [ROOT / 'README.md']
    while todo:
        page = todo.pop()
        reached.add(page)
        links = [link.partition('#')[0] for link in _LINK.findall(page.read_text())]
        pages = {(page.parent / link).resolve() for link in links if link.endswith('.md')}
        todo += sorted(pages & set(PAGES) - reached)
    assert set(PAGES) == reached


def test_the_map_names_files_of_every_layer() -> None:
    rows = re.findall(r'^\| `([\w./]+)` \|', _under('README.md', '## The map'), re.MULTILINE)
    assert {row.partition('/')[0] for row in rows} == {'configs', 'experiments', 'nope'}
    assert all((ROOT / row).is_file() for row in rows)


def test_each_folder_of_configs_has_a_table_of_its_figures() -> None:
    parts = _under('configs/README.md', '## Figures').split('\n### ')[1:]
    tables = {part.partition('\n')[0]: sorted(_FIGURE.findall(part)) for part in parts}
    there: dict[str, list[str]] = {}
    for name in CONFIGS:
        there.setdefault(pathlib.Path(config_files.place(name)).parent.name, []).append(name)
    assert tables == there


@pytest.mark.parametrize('page', PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_installed_extras_are_declared(page: pathlib.Path) -> None:
    declared = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']
    for extra in re.findall(r"'\.\[(\w+)\]'", page.read_text()):
        assert extra in declared['optional-dependencies'], f'no extra {extra}'


def _first_column(page: str, heading: str) -> set[str]:
    """Code spans in the first column of the tables under a heading."""
    text = f'\n{(ROOT / page).read_text()}'.partition(f'\n{heading}\n')[2].partition('\n#')[0]
    cells = re.findall(r'^\| ([^|]*) \|', text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r'`([\w.]+)(?::[A-Z]+)?`', cell)}


def test_the_table_of_position_encodings_has_every_kind() -> None:
    named = _first_column('nope/positions/README.md', '# Position encodings')
    assert named == {*registry.KINDS, *SCALINGS}


def test_the_table_of_attention_backends_has_every_backend() -> None:
    assert _first_column('nope/attention/README.md', '## Backends') == set(BACKENDS)


def test_the_table_of_sources_has_every_kind() -> None:
    assert _first_column('nope/data/README.md', '## Your own text') == set(sources.KINDS)


def test_the_table_of_evaluations_has_every_kind() -> None:
    named = _first_column('experiments/README.md', '## Evaluations') - {'kind'}
    assert set(evaluations.KINDS) == named


def test_the_table_of_tools_has_every_tool() -> None:
    assert _first_column('tools/README.md', '## Benchmarks') == set(PROGRAMS)


def test_the_table_of_figure_kinds_names_each_kind_with_its_configs() -> None:
    table = _under('experiments/figures/README.md', '## Kinds')
    rows = re.findall(r'^\| `(\w+)` \| ([^|]+) \|$', table, re.MULTILINE)
    kinds = {name: config_files.module(name) for name in CONFIGS}
    shown = {name: module.get_config().figure.kind for name, module in kinds.items()}
    assert sorted(kind for kind, _ in rows) == sorted(KINDS)
    for kind, configs in rows:
        assert re.findall(r'`(\w+)`', configs) == [n for n in _ordered(shown) if shown[n] == kind]


@pytest.mark.parametrize('kind', KINDS)
def test_a_kind_of_figure_lies_where_its_page_says(kind: str) -> None:
    stem = kind.removesuffix('_table')
    name = kind if stem == kind else f'tables.{stem}'
    assert type(KINDS[kind]).__module__ == f'experiments.figures.kinds.{name}'


def _ordered(names: Iterable[str]) -> list[str]:
    """Names in the order of the tables of figures."""
    return sorted(names, key=_figures().index)


def _figures() -> list[str]:
    """Configs in the tables of figures, from the first row to the last."""
    return _FIGURE.findall(_under('configs/README.md', '## Figures'))


def _under(page: str, heading: str) -> str:
    """Text of a page under a heading, its subheadings included."""
    return (ROOT / page).read_text().partition(f'\n{heading}\n')[2].partition('\n## ')[0]
