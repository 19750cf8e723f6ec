"""Numbers of single sections, against those that the records were made with."""

from __future__ import annotations

import base64
import dataclasses
import json
import pathlib

import numpy as np
import pytest

from experiments.report import chart, claims, heads, ranges, retrieval, training, workfolder
from experiments.report.workfolder import RunFolder, WorkFolder
from nope import records
from nope.records import Measure, Records
from nope.runtime import files
from tests.experiments.figures import synthetic
from tests.experiments.report import work


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> WorkFolder:
    return workfolder.read(work.make(tmp_path_factory.mktemp('work')))


def test_a_claim_without_a_verdict_is_a_problem_of_its_file(tmp_path: pathlib.Path) -> None:
    claim = {'id': 'x', 'number': 2, 'paper': 'p', 'measured': {'a': [1.5, None]}, 'statement': 's'}
    path = work.link(tmp_path, 'old', {}) / 'summary.json'
    files.write_json(path, {'claims': [claim | {'verdict': 'holds'}, claim]})
    found = workfolder.read(tmp_path)
    assert [row.verdict for row in claims.rows(found)] == ['holds']
    (problem,) = found.problems
    assert (problem.kind, problem.file) == ('damaged', 'figures/old/summary.json')
    assert 'verdict' in problem.what


def test_measured_numbers_are_named_by_their_path() -> None:
    measured = {'NoPE': {'onset': {'0.1': 1.234567891, '0.2': None}}, 'by_seed': [1, 2.5], 'x': 3}
    assert list(claims.flat(measured)) == [
        ('NoPE onset 0.1', '1.23457'),
        ('NoPE onset 0.2', '\N{EN DASH}'),
        ('by_seed', '1, 2.5'),
        ('x', '3'),
    ]


def test_the_grid_of_heads_has_the_means_and_the_curves_of_the_records(folder: WorkFolder) -> None:
    grid = {g.slug: g for g in heads.grids(folder)}['positions-256-headscale']
    made = records.load(folder.root / 'records/positions-256-headscale')
    entropy_NHT, position_T = made['entropy'], made.coordinates['position']
    assert grid.lengths == (64, 128, 256) and not folder.problems
    for n, means in zip(grid.lengths, grid.means, strict=True):
        within = (position_T > n / 2) & (position_T <= n)
        np.testing.assert_allclose(means, entropy_NHT[..., within].mean(axis=-1), atol=0.0051)
    assert grid.positions[0] == 1 and grid.positions[-1] == 256 and 64 in grid.positions
    packed = np.frombuffer(base64.b64decode(grid.curves), '<u2') * heads.QUANTUM
    at = np.searchsorted(position_T, grid.positions)
    np.testing.assert_allclose(packed.reshape(4, 4, -1), entropy_NHT[..., at], atol=0.00051)
    np.testing.assert_allclose(grid.multipliers, made['multiplier'], atol=0.00051)
    assert grid.scaled and grid.others == ('positions-256-nope',)


def test_heads_are_held_against_the_same_model_with_other_multipliers_alone(
    tmp_path: pathlib.Path,
) -> None:
    for name, changes in {
        'base': {},
        'scaled': {'multiplier': 1.5},
        'rope': {'model': 'rope'},
        'seed': {'seed': 1, 'multiplier': 1.5},
    }.items():
        work.save(tmp_path, name, synthetic.positions_records(128, **changes))
    others = {g.slug: g.others for g in heads.grids(workfolder.read(tmp_path))}
    assert others == {'base': ('scaled',), 'scaled': ('base',), 'rope': (), 'seed': ()}


def test_heads_beyond_the_most_are_left_out(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And take no room from a model with fewer."""
    for name, layers in (('a', 2), ('b', 3), ('c', 1)):
        work.save(tmp_path, name, synthetic.positions_records(512, n_layers=layers))
    found = workfolder.read(tmp_path)
    first, *_ = heads.grids(found)
    assert len(first.positions) <= heads.MOST_POINTS and not found.problems
    monkeypatch.setattr(heads, 'MOST_HEADS', 3 * len(first.means[0][0]))
    assert [grid.slug for grid in heads.grids(found)] == ['a', 'c']
    assert [(p.kind, p.file) for p in found.problems] == [('left out', 'records/b')]


def test_ranges_double_and_end_where_the_records_do(tmp_path: pathlib.Path) -> None:
    loss = np.arange(1.0, 385)
    facts = synthetic.attributes() | {'evaluation': 'positions'}
    made = Records(facts, {'loss': Measure(loss, ('position',), 'nats')}, {'position': loss})
    work.save(tmp_path, 'one', made)
    (row,) = ranges.by_range(workfolder.read(tmp_path))
    assert row.values == {1: (32.5,), 2: (96.5,), 4: (192.5,), 6: (320.5,)}
    names = [ranges.range_name(end).replace('\N{NO-BREAK SPACE}', ' ') for end in row.values]
    assert names == ['(0, L]', '(L, 2 L]', '(2 L, 4 L]', '(4 L, 6 L]']
    work.save(
        tmp_path,
        'two',
        Records(facts | {'evaluation': 'repetition'}, made.measures, made.coordinates),
    )
    assert len(ranges.by_range(workfolder.read(tmp_path))) == 1  # of text alone
    assert ranges.range_name(0.5) == '(0, 0.5\N{NO-BREAK SPACE}L]'


def test_seeds_of_a_name_are_one_row_with_their_spread(folder: WorkFolder) -> None:
    (row,) = ranges.by_length(folder)
    values = [
        records.load(folder.root / 'records' / f'lengths-512-{seed}')['loss_window'][0]
        for seed in range(3)
    ]
    low, high = f'{min(values):.3f}', f'{max(values):.3f}'
    assert row.names == ('curves: base',) and row.seeds == 3
    assert row.text(1) == f'{np.mean(values):.3f} ({low} to {high})' and row.text(99) == ''


def places(line: str) -> np.ndarray:
    """Points of a polyline, [points, 2]."""
    return np.array([[float(v) for v in point.split(',')] for point in line.split()])


def test_a_chart_keeps_its_ends_and_means_within_its_box() -> None:
    drawn = chart.of(range(1, 1001), [np.linspace(5, 1, 1000)], 50, [500.0])
    (points,) = (places(line) for line in drawn.lines)
    assert points.shape == (50, 2)
    assert (points >= [chart.LEFT, chart.TOP]).all()
    assert (points <= [chart.WIDTH - chart.RIGHT, chart.HEIGHT - chart.BOTTOM]).all()
    assert (np.diff(points[:, 1]) > 0).all(), 'a falling loss goes down the page'
    assert [label for _, label in drawn.y_ticks] == ['1', '2', '3', '4'] or len(drawn.y_ticks) >= 3
    assert 160 < drawn.marks[0] < 200


def test_a_chart_of_one_value_has_a_place() -> None:
    assert chart.of([5], [[2.0]], 10).lines[0].count(',') == 1
    with pytest.raises(ValueError, match='no finite values'):
        chart.of([1, 2], [[float('nan'), float('inf')]], 10)


def test_lines_of_a_chart_share_its_axes() -> None:
    drawn = chart.of([1, 2, 3], [[1.0, 1.0, 1.0], [1.0, 2.0, float('nan')]], 10)
    flat, rising = (places(line) for line in drawn.lines)
    np.testing.assert_array_equal(flat[:, 0], rising[:, 0])
    np.testing.assert_array_equal(flat[0], rising[0])
    assert len(flat) == 2 and rising[1, 1] < flat[1, 1]


def test_a_monitored_training_has_a_line_for_each_of_some_layers(tmp_path: pathlib.Path) -> None:
    """The first, the last and some between; what is damaged is left out."""
    rows = [{'step': step, 'loss': 1.0} for step in range(1, 9)]
    for step in (2, 4, 6):
        monitored = {f'entropy/{layer}': 3.0 - step / 9 + layer / 9 for layer in range(20)}
        rows[step - 1] |= monitored | {f'max_logit/{layer}': 9.0 + step for layer in range(3)}
    rows[3]['entropy/0'] = 'high'
    run = RunFolder('a-run', tmp_path, ('a-run',), rows, [], {}, {}, None)
    folder = WorkFolder(tmp_path, (), (), (run,), [])
    (curve,) = training.curves(folder)
    (entropy, of_entropy), (largest, of_largest) = curve.monitors
    assert (entropy, largest) == ('Attention entropy, nats', 'Largest attention logit')
    assert [len(places(line)) for line in of_entropy.lines] == [2] * training.MOST_LAYERS
    assert [len(places(line)) for line in of_largest.lines] == [3] * 3
    first, last = (places(of_entropy.lines[i])[:, 1] for i in (0, -1))
    assert (first > last).all(), 'the last layer has the higher entropy'
    rows[:] = rows[:1]
    assert training.curves(folder)[0].monitors == ()


def test_a_training_tells_its_bad_steps_goodput_and_mfu(folder: WorkFolder) -> None:
    found = {curve.slug: curve for curve in training.curves(folder)}
    facts = dict(found[work.RUN].facts)
    assert facts['bad steps'] == '1 (skipped)' and facts['goodput'] == '90.0 %'
    assert facts['MFU, median'] == '25.0 %' and facts['tokens/s, median'] == '20,000'
    assert (
        facts['steps'] == '2,400 of 2,400'
        and facts['final loss'] == '1.017 nats, mean of 5 logged steps'
    )
    assert found[work.RUN].chart is not None and len(found[work.RUN].chart.marks) == 1
    unfinished = found[work.UNFINISHED]
    assert not unfinished.finished and dict(unfinished.facts)['steps'] == '500 of 2,400'


def test_a_retrieval_map_has_the_shares_and_both_kinds_of_samples(folder: WorkFolder) -> None:
    (found,) = retrieval.maps(folder)
    accuracy = records.load(folder.root / 'records/passkey-4096-5')['accuracy']
    shown = np.array([[float(text) for text, _ in row] for row in found.cells])
    np.testing.assert_allclose(shown, 100 * accuracy, atol=0.5)
    assert found.columns == ('key', 'length', 'depth', 'correct', 'matched')
    assert [row[3] for row in found.samples] == ['no'] * 3 + ['yes'] * 3
    assert found.out_of == 10


def test_a_map_without_room_takes_none_from_what_is_smaller(
    folder: WorkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its samples stay."""
    (whole,) = retrieval.maps(folder)
    twice = dataclasses.replace(folder, recordings=folder.recordings * 2, problems=[])
    monkeypatch.setattr(retrieval, 'MOST_CELLS', sum(map(len, whole.cells)))
    first, second = retrieval.maps(twice)
    assert first == whole and second == dataclasses.replace(whole, cells=())
    assert [problem.kind for problem in twice.problems] == ['left out']


def test_samples_of_other_evaluations_are_shown_with_their_answers(tmp_path: pathlib.Path) -> None:
    scores = synthetic.longbench_records(synthetic.SCORES)
    where = work.save(tmp_path, 'longbench-1', scores)
    rows = [{'key': f'q/{k}', 'prediction': 'x' * 1000, 'score': k / 10} for k in range(10)]
    work.lines(where / 'samples.jsonl', rows)
    (found,) = retrieval.maps(workfolder.read(tmp_path))
    assert found.cells == () and len(found.samples) == retrieval.SAMPLES
    assert max(len(row[1]) for row in found.samples) == retrieval.LONGEST + 1
    assert json.loads(json.dumps(found.columns)) == ['key', 'prediction', 'score']
