"""The page in a browser: nothing is refused, nothing overflows, keys work, print opens everything.

python -m pytest -m browser tests/experiments/report
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

import pytest

from experiments.report import page
from tests.experiments.figures import synthetic
from tests.experiments.report import chromium, work
from tests.experiments.report.chromium import Tab

pytestmark = pytest.mark.browser

# Elements outside boxes that scroll by themselves whose content goes beyond the window.
OVERFLOWING = """[...document.body.querySelectorAll('*')]
    .filter((e) => !e.closest('.scroll, .hidden, .skip'))
    .filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map((e) => e.outerHTML.slice(0, 200))"""
# Pairs of neighbours, in blocks and in the flow of the page, that cover each other.
OVERLAPPING = """[...document.querySelectorAll('main, section, .block, .pair, .runs, .pair > div')]
    .flatMap((box) => [...box.children].filter((e) => e.getClientRects().length)
        .flatMap((e, k, all) => all.slice(k + 1).map((other) => [e, other])))
    .filter(([e, other]) => {
        const a = e.getBoundingClientRect(), b = other.getBoundingClientRect();
        return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
    })
    .map(([e, other]) => [e.outerHTML.slice(0, 100), other.outerHTML.slice(0, 100)])"""
FIRST_GRID = "document.querySelector('.head-grid')"


@pytest.fixture(scope='module')
def tab() -> Iterator[Tab]:
    program = chromium.find()
    if program is None:
        pytest.skip('no Chromium is on the PATH, and NOPE_CHROMIUM names none')
    with chromium.tab(program) as opened:
        yield opened


@pytest.fixture(scope='module')
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """Of one folder, and of two, the second with long names and wide tables."""
    folder = tmp_path_factory.mktemp('pages')
    root, other = work.make(folder / 'a'), work.make(folder / 'b')
    wide = synthetic.positions_records(512, n_layers=3, n_heads=32)
    work.save(other, 'positions-512-' + 'long' * 20, wide)
    work.run(other, 'run-' + 'long' * 20, steps=10)
    made = {'one': [root], 'two': [root, other]}
    for name, roots in made.items():
        (folder / f'{name}.html').write_bytes(page.render(roots, folder / f'{name}.html'))
    return {name: folder / f'{name}.html' for name in made}


@pytest.mark.parametrize('scheme', ['light', 'dark'])
@pytest.mark.parametrize('width', [360, 800, 1280])
@pytest.mark.parametrize('name', ['one', 'two'])
def test_nothing_is_wider_than_the_window_or_covers_its_neighbour(
    name: str, width: int, scheme: str, pages: dict[str, pathlib.Path], tab: Tab
) -> None:
    tab.open(pages[name], width, scheme)
    tab.value("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    tab.value(
        "document.querySelectorAll('.head-grid button:first-child').forEach((b) => b.click())"
    )
    root = 'document.documentElement'
    assert tab.value(f'{root}.scrollWidth <= {root}.clientWidth')
    assert tab.value(OVERFLOWING) == []
    assert tab.value(OVERLAPPING) == []


def test_nothing_is_wider_than_its_place_in_print(pages: dict[str, pathlib.Path], tab: Tab) -> None:
    """Boxes do not scroll there. 700 CSS pixels are the width of a sheet inside its margins."""
    tab.open(pages['one'], 700, media='print')
    tab.value("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert tab.value("getComputedStyle(document.querySelector('.scroll')).overflowX") == 'visible'
    wider = """[...document.querySelectorAll('.scroll')]
        .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.ariaLabel)"""
    assert tab.value(wider) == []
    assert tab.value(OVERLAPPING) == []


@pytest.mark.parametrize('name', ['one', 'two'])
def test_the_policy_lets_the_page_work_and_nothing_is_fetched(
    name: str, pages: dict[str, pathlib.Path], tab: Tab
) -> None:
    tab.open(pages[name], 1280)
    told = [e for e in tab.events if e['method'] in ('Log.entryAdded', 'Runtime.exceptionThrown')]
    assert told == []
    sent = [e for e in tab.events if e['method'] == 'Network.requestWillBeSent']
    urls = {e['params']['request']['url'].partition(',')[0] for e in sent}
    assert urls == {pages[name].as_uri(), 'data:image/png;base64'}
    assert tab.value('[...document.images].every((i) => i.complete && i.naturalWidth > 0)')
    assert tab.value("getComputedStyle(document.querySelector('.scroll')).overflowX") == 'auto'


def test_a_script_that_is_not_ours_does_not_run(
    pages: dict[str, pathlib.Path], tmp_path: pathlib.Path, tab: Tab
) -> None:
    text = pages['one'].read_text()
    added = '<script>window.foreign = 1</script><img src="x" onerror="window.foreign = 2"></body>'
    (tmp_path / 'page.html').write_text(text.replace('</body>', added))
    tab.open(tmp_path / 'page.html', 1280)
    assert tab.value('window.foreign') is None


def test_a_head_is_chosen_by_keys_alone(pages: dict[str, pathlib.Path], tab: Tab) -> None:
    tab.open(pages['one'], 1280)
    tab.value(f"{FIRST_GRID}.querySelector('.scroll').focus()")
    tab.press('Tab')
    assert tab.value('document.activeElement.ariaLabel').startswith('layer 0, head 0')
    tab.press('ArrowRight')
    tab.press('ArrowDown')
    tab.press('Enter', '\r')
    told = tab.value(f"{FIRST_GRID}.querySelector('.panel svg').ariaLabel")
    assert told.startswith('Entropy in nats by position, layer 1, head 1: ')
    assert tab.value("document.querySelectorAll('[aria-pressed=true]').length") == 1
    assert tab.value('document.activeElement.tabIndex') == 0
    legend = tab.value(f"{FIRST_GRID}.querySelector('.panel ul').innerText")
    assert 'fig5: headscale, multiplier ' in legend and 'fig5: nope, multiplier 1' in legend
    assert 'the bound ln i' in legend


def test_the_curves_of_a_head_lie_below_the_bound(pages: dict[str, pathlib.Path], tab: Tab) -> None:
    tab.open(pages['one'], 1280)
    tab.value(f"{FIRST_GRID}.querySelector('button').click()")
    lines = tab.value(
        f"Object.fromEntries([...{FIRST_GRID}.querySelectorAll('.panel > svg polyline')]"
        ".map((p) => [p.classList[1], p.getAttribute('points')]))"
    )
    assert set(lines) == {'bound', 'k0', 'k1'}
    points = {
        kind: [tuple(map(float, point.split(','))) for point in text.split()]
        for kind, text in lines.items()
    }
    assert len(points['bound']) == len(points['k0']) == len(points['k1']) > 20
    for kind in ('k0', 'k1'):
        for (x, y), (bound_x, bound_y) in zip(points[kind], points['bound'], strict=True):
            assert x == bound_x and y >= bound_y - 0.5, 'down the page is lower'


def test_another_length_changes_the_cells(pages: dict[str, pathlib.Path], tab: Tab) -> None:
    tab.open(pages['one'], 1280)
    cells = f"[...{FIRST_GRID}.querySelectorAll('button')].map((b) => b.textContent)"
    longest = tab.value(cells)
    tab.value(
        f"(() => {{ const s = {FIRST_GRID}.querySelector('select'); s.value = '0';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    shortest = tab.value(cells)
    assert len(longest) == len(shortest) == 16 and longest != shortest
    assert all(float(a) > float(b) for a, b in zip(longest, shortest, strict=True))


def test_print_opens_what_is_closed_and_closes_it_again(
    pages: dict[str, pathlib.Path], tab: Tab
) -> None:
    tab.open(pages['one'], 1280)
    closed = "document.querySelectorAll('details:not([open])').length"
    before = tab.value(closed)
    tab.value(
        f"addEventListener('beforeprint', () => {{ window.inPrint = {closed}; }});"
        "matchMedia('print').addEventListener('change', () => {})"
    )
    made = tab.pdf()
    assert made.startswith(b'%PDF') and len(re.findall(rb'/Type\s*/Page\b', made)) > 1
    assert before > 0 and tab.value('window.inPrint') == 0
    assert tab.value(closed) == before
