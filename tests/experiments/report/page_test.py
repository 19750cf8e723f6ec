from __future__ import annotations

import base64
import hashlib
import json
import pathlib
import re
import shutil
import tomllib

import pytest

from experiments import draw
from experiments.report import page
from nope.runtime import files
from tests.experiments.figures import synthetic
from tests.experiments.report import work
from tests.experiments.report.work import Page

SECTIONS = (
    *('figures', 'claims', 'heads', 'losses', 'training', 'retrieval', 'provenance', 'problems'),
)
HOSTILE = '<script>alert(1)</script>"\'&<img src=x onerror=alert(2)>'


@pytest.fixture(scope='module')
def root(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return work.make(tmp_path_factory.mktemp('work'))


@pytest.fixture(scope='module')
def other(root: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A copy with another verdict, without a run, and with records of its own."""
    copy = tmp_path_factory.mktemp('other') / 'b'
    shutil.copytree(root, copy)
    path = copy / 'figures/fig5/summary.json'
    summary = json.loads(path.read_text())
    summary['claims'][0]['verdict'] = 'undecided'
    files.write_json(path, summary)
    shutil.rmtree(copy / 'runs' / work.UNFINISHED)
    work.save(copy, 'positions-128-own', synthetic.positions_records(128))
    return copy


def read(*roots: pathlib.Path) -> Page:
    return Page(page.render(roots, roots[0] / 'report.html'))


def test_the_same_folder_gives_the_same_bytes(root: pathlib.Path, other: pathlib.Path) -> None:
    for roots in ([root], [root, other]):
        assert page.render(roots, root / 'a.html') == page.render(roots, root / 'a.html')


def test_every_section_is_there_and_every_tag_closed(
    root: pathlib.Path, other: pathlib.Path
) -> None:
    for roots in ([root], [root, other]):
        found = read(*roots)
        assert tuple(tag['id'] for tag in found.all('section')) == SECTIONS
        assert found.open_at_end == []


def test_sections_show_what_the_folder_holds(root: pathlib.Path) -> None:
    text = {name: re.sub(r'\s+', ' ', content) for name, content in read(root).text.items()}
    claim = json.loads((root / 'figures/fig5/summary.json').read_text())['claims'][0]
    assert all(claim[part] in text['claims'] for part in ('paper', 'headline', 'statement'))
    assert (root / 'figures/fig5/caption.txt').read_text().strip() in text['figures']
    assert 'fig5: headscale' in text['heads'] and 'layer 3' in text['heads']
    assert 'curves: base' in text['losses'] and '(L, 2 L]' in text['losses']
    assert work.RUN in text['training'] and '90.0 %' in text['training']
    assert 'passkey-4096-5' in text['retrieval'] and '6 of 10 samples' in text['retrieval']
    assert '7bf8889e' in text['provenance'] and 'train.steps' in text['provenance']
    assert f'nope draw {root}/figures/fig5' in text['provenance']
    assert work.UNFINISHED in text['problems'] and '500 of 2,400' in text['problems']


def test_scripts_and_styles_have_the_hashes_of_the_policy(root: pathlib.Path) -> None:
    found = read(root)
    (policy,) = [m['content'] or '' for m in found.all('meta') if 'http-equiv' in m]
    rules = dict(rule.split(' ', 1) for rule in policy.split('; '))
    (script,) = [text for attributes, text in found.scripts if 'type' not in attributes]
    for kind, text in (('style-src', found.style), ('script-src', script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules.pop(kind) == f"'sha256-{digest}'"
    assert rules.pop('default-src') == "'none'" and rules.pop('img-src') == 'data:'
    assert set(rules.values()) == {"'none'"}


def test_nothing_is_fetched_and_no_style_stands_in_an_attribute(root: pathlib.Path) -> None:
    found = read(root)
    assert {(i['src'] or '')[:22] for i in found.all('img')} == {'data:image/png;base64,'}
    assert not found.all('link') and not found.all('iframe')
    assert all('src' not in attributes for attributes, _ in found.scripts)
    events = [key for _, tag in found.tags for key in tag if key == 'style' or key.startswith('on')]
    assert events == []
    links = {a['href'] for a in found.all('a')}
    assert {'./figures/fig5/fig5.pdf', './figures/fig5/fig5.csv'} < links
    assert all((link or '').startswith(('#', './')) for link in links)
    assert 'url(' not in found.style and '@import' not in found.style


def test_links_lead_from_the_page_to_the_files(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    found = Page(page.render([root], tmp_path / 'report.html'))
    paths = [str(a['href']) for a in found.all('a') if str(a['href']).startswith('.')]
    assert paths
    assert all((tmp_path / path).resolve().is_file() for path in paths)


def test_every_picture_has_a_text_in_its_place(root: pathlib.Path) -> None:
    found = read(root)
    images = found.all('img') + [s for s in found.all('svg') if s.get('role') == 'img']
    texts = [tag.get('alt') or tag.get('aria-label') or '' for tag in images]
    assert len(texts) >= 3 and all(len(text) > 10 for text in texts)
    caption = (root / 'figures/fig5/caption.txt').read_text()
    assert any(caption.startswith(text.removeprefix('fig5: ')) for text in texts)


def test_hostile_names_captions_and_samples_are_text(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    copy = tmp_path / 'work'
    shutil.copytree(root, copy)
    (copy / 'figures/fig5/caption.txt').write_text(HOSTILE)
    (copy / 'figures/fig5/fig5.md').write_text(f'| a | {HOSTILE} |\n| --- | --- |\n\n{HOSTILE}')
    rows = [row | {'key': HOSTILE, '</table>': HOSTILE} for row in work.samples()]
    work.lines(copy / 'records/passkey-4096-5/samples.jsonl', rows)
    name = HOSTILE.replace('/', '')
    work.run(copy, name, steps=10)
    made = synthetic.positions_records(128, model=f'</script>{HOSTILE}')
    work.save(copy, f'positions-128-{name}', made)
    found = read(copy)
    clean = read(root)
    assert len(found.scripts) == len(clean.scripts) == 2
    assert not [tag for tag in found.all('img') if tag.get('src') == 'x']
    assert not [key for _, tag in found.tags for key in tag if key.startswith('on')]
    for section, text in (('figures', HOSTILE), ('retrieval', HOSTILE), ('training', name)):
        assert text in found.text[section]
    data = json.loads(next(text for attributes, text in found.scripts if 'type' in attributes))
    assert any(grid['name'].endswith(name) for grid in data.values())


def test_a_table_is_shown_without_a_picture(tmp_path: pathlib.Path) -> None:
    work.run(tmp_path, work.RUN, steps=10)
    given = synthetic.INPUTS['longbench_table']
    sources = {
        name: work.save(tmp_path, name.replace('/', '-'), r) for name, r in given.records.items()
    }
    folder = tmp_path / 'figures/table3'
    draw.write_inputs(folder, 'table3', {'kind': 'longbench_table', **given.options}, sources)
    assert draw.draw(folder) == folder / 'table3.html'
    found = read(tmp_path)
    assert found.open_at_end == [] and not found.all('img')
    assert 'HeadScale 9 L' in found.text['figures'] and 'NQA' in found.text['figures']
    assert './figures/table3/table3.html' in {a['href'] for a in found.all('a')}
    assert not [p for p in ('not been drawn', 'table3.png') if p in found.text['problems']]
    (folder / 'table3.md').write_bytes(b'\xff')
    assert 'figures/table3/table3.md' in read(tmp_path).text['problems']


def test_names_that_are_no_unicode_are_shown(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    copy = tmp_path / 'work'
    shutil.copytree(root, copy)
    (copy / 'figures/fig5/caption.txt').write_bytes(b'caption \xff of bytes')
    rows = [row | {'key': '\ud800'} for row in work.samples()]
    work.lines(copy / 'records/passkey-4096-5/samples.jsonl', rows)
    assert 'caption \N{REPLACEMENT CHARACTER} of bytes' in read(copy).text['figures']


def test_of_two_folders_differences_are_marked(root: pathlib.Path, other: pathlib.Path) -> None:
    text = {k: re.sub(r'\s+', ' ', v) for k, v in read(root, other).text.items()}
    assert 'differs' in text['claims'] and 'undecided A 0 B 1' in text['claims']
    assert 'fig5 same' in text['figures']
    assert 'only in B' in text['heads'] and 'fig5: headscale same' in text['heads']
    assert f'{work.UNFINISHED} only in A' in text['training']
    assert f'{work.RUN} same A, B' in text['training']
    assert text['training'].count('final loss') == 2


def test_a_page_is_small_whatever_it_shows(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Models of many heads, and long runs; but for its pictures."""
    copy = tmp_path / 'work'
    shutil.copytree(root, copy)
    names = [f'positions-512-{number}' for number in range(6)]
    for number, name in enumerate(names):
        made = synthetic.positions_records(512, n_layers=22, n_heads=32, seed=number)
        work.save(copy, name, made)
    work.run(copy, 'long-1', steps=50_000, rows=5_000)
    data = page.render([copy], copy / 'report.html')
    assert len(data) <= 3_000_000
    found = Page(data)
    assert found.text['heads'].count('layer 21') >= 1
    left_out = [name for name in names if name not in found.text['heads']]
    assert left_out and all(f'records/{name}' in found.text['problems'] for name in left_out)


def test_an_installed_package_has_the_templates() -> None:
    root = pathlib.Path(__file__).parents[3]
    settings = tomllib.loads((root / 'pyproject.toml').read_text())['tool']['setuptools']
    package = pathlib.Path(page.__file__).parent
    (pattern,) = settings['package-data']['experiments.report']
    files_of_no_code = {p for p in package.rglob('*.*') if p.suffix not in ('.py', '.pyc')}
    assert files_of_no_code and files_of_no_code == set(package.glob(pattern))


def luminance(color: str) -> float:
    parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    low, high = sorted(map(luminance, (one, two)))
    return (high + 0.05) / (low + 0.05)


def test_text_stands_out_in_every_scheme(root: pathlib.Path) -> None:
    """A ratio of 4.5 to 1 at least, as WCAG 2 asks of text (AA); 3 to 1 of lines."""
    style = read(root).style
    schemes = [
        dict(re.findall(r'--(\w+): (#\w{6})', s)) for s in re.findall(r':root {([^}]+)}', style)
    ]
    assert len(schemes) == 3
    for colors in schemes:
        for name in ('text', 'muted', 'link', 'good', 'bad', 'open'):
            for back in ('page', 'box'):
                assert contrast(colors[name], colors[back]) >= 4.5, (name, back)
        assert contrast(colors['marked'], colors['mark']) >= 4.5
        for name in ('curve', 'second', 'third', 'fourth'):
            assert contrast(colors[name], colors['page']) >= 3
    cells = re.findall(r'\.s\d+ { background: (#\w{6}); color: (#\w{6}); }', style)
    assert len(cells) == 11 and all(contrast(*pair) >= 4.5 for pair in cells)
