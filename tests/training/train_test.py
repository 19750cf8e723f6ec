from __future__ import annotations

import dataclasses
import gzip
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

from nope.checkpoints.errors import CheckpointError
from nope.checkpoints.manager import Checkpoints, Restored
from nope.data import Batch
from nope.model import LayerKind, counts
from nope.model.lam import LogLength
from nope.positions import RoPE
from nope.sharding import MeshConfig, make_mesh
from nope.training import metrics, reporting
from nope.training.config import Compute, Earlier, TrainConfig, check_mesh, check_segments
from nope.training.optim import OptimizerConfig, learning_rate
from nope.training.reporting import TrainingDiverged
from nope.training.state import fresh_state
from nope.training.train import Interrupted, train
from nope.variables import COLLECTIONS, Variables, lam_of
from tests import tiny

MODEL = tiny.model(layers=1, lam=LogLength(train_length=8))
PRETRAIN = TrainConfig(
    lengths=(8,),
    batch_size=4,
    steps=6,
    optimizer=OptimizerConfig(learning_rate=1e-2, warmup_steps=2, decay_steps=6),
)
SEARCH = TrainConfig(
    lengths=(12, 24),
    batch_size=4,
    steps=6,
    optimizer=OptimizerConfig(learning_rate=0.1, trains='lam', decay_steps=6, bound=0.0),
)
COMPUTE = Compute(checkpoint_every=2, log_every=2)


def batches_of(config: TrainConfig, poisoned: int | None = None) -> Callable[[int], Iterator]:
    """Batch k is a function of k. Token ids of batch `poisoned` are outside the vocabulary,
    where embeddings are NaN."""

    def batches(start: int) -> Iterator[Batch]:
        for k in range(start, config.steps):
            blocks = tiny.tokens(config.batch_size, config.block + 1, seed=k)
            yield Batch.of_blocks(blocks + 1000 * (k == poisoned))

    return batches


def run(folder: pathlib.Path, config: TrainConfig, stop_after: int | None = None, **other: Any):
    asked = iter(range(1, 1000))
    arguments: dict[str, Any] = {
        'mesh': tiny.mesh(),
        'initial': lambda: tiny.variables(MODEL),
        'batches': batches_of(config),
        'folder': folder,
        'identity': {'seed': 0},
        'title': 'test',
        'should_stop': lambda: next(asked) == stop_after,
    }
    arguments |= other
    return train(MODEL, config, arguments.pop('compute', COMPUTE), **arguments)


def final(folder: pathlib.Path, config: TrainConfig) -> Restored:
    """The newest checkpoint, moments and all."""
    target, frozen = fresh_state(tiny.variables(MODEL), config.optimizer, tiny.mesh())
    with Checkpoints(folder / 'checkpoints', {'seed': 0}) as checkpoints:
        restored = checkpoints.restore(target.arrays(frozen))
    assert restored is not None
    return restored


def variables_of(found: Restored) -> Variables:
    """With the parameters that a search began with, which it does not save."""
    saved = {name: found.arrays[name] for name in COLLECTIONS if name in found.arrays}
    return {**tiny.variables(MODEL), **saved}


def logged(folder: pathlib.Path) -> list[dict[str, float]]:
    """The rows without what depends on the clock."""
    timed = {'tokens_per_second', 'mfu'}
    return [{k: v for k, v in row.items() if k not in timed} for row in metrics.read(folder)]


@pytest.fixture(scope='module')
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """Folders of uninterrupted runs."""
    folders = {}
    for name, config in (('params', PRETRAIN), ('lam', SEARCH)):
        folders[name] = tmp_path_factory.mktemp(name)
        run(folders[name], config)
    return folders


@pytest.mark.parametrize('config', [PRETRAIN, SEARCH], ids=['pretraining', 'search'])
def test_a_resumed_run_is_bitwise_the_uninterrupted_one(
    config: TrainConfig, whole: dict[str, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    """Stopped between two checkpoints and two logged steps, with several lengths in turn."""
    with pytest.raises(Interrupted, match='stopped at step 3, saved in'):
        run(tmp_path, config, stop_after=3)
    assert logged(tmp_path)[-1]['step'] == 2
    variables = run(tmp_path, config)
    uninterrupted = whole[config.optimizer.trains]
    found, expected = final(tmp_path, config), final(uninterrupted, config)
    assert found.step == expected.step == 6
    tiny.assert_same(found.arrays, expected.arrays)
    tiny.assert_same(variables, variables_of(expected))
    assert found.data == expected.data == {'batches': 6, 'examples': 24}
    assert logged(tmp_path) == logged(uninterrupted)
    assert [row['step'] for row in logged(tmp_path)] == [2, 4, 6]


def test_a_run_that_drops_its_rotation_resumes_bitwise_on_both_sides(
    tmp_path: pathlib.Path,
) -> None:
    """Up to that step it is the RoPE run, bit for bit, and its checkpoint stays."""
    rope = dataclasses.replace(MODEL, position=RoPE())
    earlier = Earlier(rope, 3)
    sparse = dataclasses.replace(COMPUTE, checkpoint_every=100, keep=1)
    options: dict[str, Any] = {'earlier': earlier, 'compute': sparse}
    run(tmp_path / 'whole', PRETRAIN, **options)
    for stop in (2, 3, 5):
        folder = tmp_path / f'stopped_{stop}'
        with pytest.raises(Interrupted):
            run(folder, PRETRAIN, stop_after=stop, **options)
        run(folder, PRETRAIN, **options)
        found, expected = (final(f, PRETRAIN) for f in (folder, tmp_path / 'whole'))
        tiny.assert_same(found.arrays, expected.arrays)
        assert logged(folder) == logged(tmp_path / 'whole')
    with pytest.raises(Interrupted):
        run(tmp_path / 'rope', PRETRAIN, stop_after=3, earlier=Earlier(rope, 6))
    at_drop = final(tmp_path / 'rope', PRETRAIN)
    with Checkpoints(tmp_path / 'whole' / 'checkpoints', {'seed': 0}) as checkpoints:
        assert checkpoints.steps() == [3, 6]
        tiny.assert_same(checkpoints.read(at_drop.arrays, 3), at_drop.arrays)
    run(tmp_path / 'rope', PRETRAIN, earlier=Earlier(rope, 6))
    kept, dropped = (final(tmp_path / f, PRETRAIN).arrays['params'] for f in ('rope', 'whole'))
    assert np.any(np.asarray(kept['embedding']) != np.asarray(dropped['embedding']))


def test_the_guard_learns_the_usual_loss_anew_where_positions_are_dropped(
    tmp_path: pathlib.Path,
) -> None:
    """Not to take the loss of the model without them for a spike."""
    optimizer = dataclasses.replace(PRETRAIN.optimizer, on_bad='skip', spike=3.0)
    config = dataclasses.replace(PRETRAIN, optimizer=optimizer, steps=5)
    earlier = Earlier(dataclasses.replace(MODEL, position=RoPE()), 3)
    run(tmp_path, config, earlier=earlier, compute=dataclasses.replace(COMPUTE, log_every=1))
    state = final(tmp_path, config).arrays['opt_state']
    losses = [row['loss'] for row in logged(tmp_path)]
    assert len(losses) == 5 and int(state.good) == 2
    np.testing.assert_allclose(state.mean, np.mean(losses[3:]), rtol=1e-6)


def test_attention_without_segments_is_refused() -> None:
    message = r"data\.documents .* model\.attention='library' cannot: segment ids"
    with pytest.raises(ValueError, match=message):
        check_segments(tiny.model(attention='library'), PRETRAIN, 'data.documents')
    chunks = tiny.model(attention='library', pattern=(LayerKind(chunk=4), LayerKind()))
    with pytest.raises(ValueError, match=r'runs\.a\.model\.pattern gives attention segment ids'):
        check_segments(chunks, PRETRAIN, 'runs.a.model.pattern')
    for other in (None, 'chunked', 'reference'):
        check_segments(tiny.model(attention=other), PRETRAIN, 'data.documents')


def test_rates_are_those_of_the_lengths_that_were_trained_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A device that makes so many FLOP/s whatever the length, looked at every four of three."""
    model, lengths, batch, rate = tiny.model(), (8, 16, 64), 2, 1e9
    flops = [batch * n * counts.training_flops(model, n, frozen=True) for n in lengths]
    clock = [0.0]
    monkeypatch.setattr(reporting.time, 'perf_counter', lambda: clock[0])
    monkeypatch.setattr(reporting.hardware, 'peak_flops', lambda: 4 * rate / jax.device_count())
    throughput = reporting.Throughput(model, lengths, batch, frozen=True)
    assert throughput.since_last(1) == {}
    for step in range(1, 13):
        clock[0] += flops[step % 3] / rate
        if step % 4 == 0:
            found = throughput.since_last(step + 1)
            tokens = batch * sum(lengths[k % 3] for k in range(step - 3, step + 1))
            seconds = sum(flops[k % 3] for k in range(step - 3, step + 1)) / rate
            assert found['mfu'] == pytest.approx(0.25)
            assert found['tokens_per_second'] == pytest.approx(tokens / seconds)


def test_training_changes_what_trains_and_nothing_else(whole: dict[str, pathlib.Path]) -> None:
    start = tiny.variables(MODEL)
    for trains, frozen in (('params', 'lam'), ('lam', 'params')):
        found = variables_of(final(whole[trains], {'params': PRETRAIN, 'lam': SEARCH}[trains]))
        tiny.assert_same(found[frozen], start[frozen])
        for new, old in zip(
            jax.tree.leaves(found[trains]), jax.tree.leaves(start[trains]), strict=True
        ):
            assert np.any(np.asarray(new) != old)


def test_the_folder_holds_what_people_and_programs_read(whole: dict[str, pathlib.Path]) -> None:
    folder = whole['params']
    assert 'params/embedding' in (folder / 'parameters.txt').read_text()
    assert list((folder / 'tensorboard').glob('events.*'))
    assert {'step', 'loss', 'grad_norm', 'learning_rate'} <= logged(folder)[0].keys()
    assert metrics.read(folder)[-1]['tokens_per_second'] > 0


def test_what_comes_of_a_straight_through_search_is_the_lambda_that_it_ran_with(
    tmp_path: pathlib.Path,
) -> None:
    """What is saved to go on from is the free copy, which lies below the bound."""
    optimizer = dataclasses.replace(
        SEARCH.optimizer, bound=1.05, straight_through=True, learning_rate=0.3
    )
    config = dataclasses.replace(SEARCH, optimizer=optimizer)
    found = lam_of(run(tmp_path, config))
    saved = lam_of(variables_of(final(tmp_path, config)))
    assert np.any(np.asarray(saved) < 1.05)
    np.testing.assert_array_equal(found, np.maximum(saved, 1.05))


def test_what_is_restored_is_given_back_before_it_is_read(
    whole: dict[str, pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a run that trains near the limit of its device could not go on."""
    seen: list[Any] = []
    restore = Checkpoints.restore

    def watched(self: Checkpoints, target: Any) -> Any:
        seen.extend(jax.tree.leaves(target))
        return restore(self, target)

    monkeypatch.setattr(Checkpoints, 'restore', watched)
    run(whole['params'], PRETRAIN)
    assert seen and not any(isinstance(leaf, jax.Array) for leaf in seen)


def test_a_finished_run_is_not_trained_again(whole: dict[str, pathlib.Path]) -> None:
    def no_batches(start: int) -> Iterator[Batch]:
        assert start == PRETRAIN.steps
        return iter(())

    before = logged(whole['params'])
    variables = run(whole['params'], PRETRAIN, batches=no_batches)
    tiny.assert_same(variables, variables_of(final(whole['params'], PRETRAIN)))
    assert logged(whole['params']) == before


def test_a_damaged_checkpoint_costs_steps_and_nothing_else(
    whole: dict[str, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    """The run goes on from the checkpoint before; rows logged since are written again."""
    with pytest.raises(Interrupted):
        run(tmp_path, PRETRAIN, stop_after=4)
    params = tmp_path / 'checkpoints' / '4' / 'arrays'
    for path in params.rglob('*'):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-8])
    run(tmp_path, PRETRAIN)
    tiny.assert_same(final(tmp_path, PRETRAIN), final(whole['params'], PRETRAIN))
    assert logged(tmp_path) == logged(whole['params'])
    assert (tmp_path / 'damaged' / '4').is_dir()


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_good_checkpoint(
    tmp_path: pathlib.Path,
) -> None:
    """Step 4 meets NaN, and is a step that would be saved."""
    poison = batches_of(PRETRAIN, poisoned=3)
    with pytest.raises(
        TrainingDiverged,
        match=r'loss nan .* at step 4, of examples 12 to 15; the checkpoint of step 2 '
        r'\(loss \d.*, gradient norm \d.*\) is kept in .*checkpoints\. A lower learning_rate',
    ):
        run(tmp_path, PRETRAIN, batches=poison)
    found = final(tmp_path, PRETRAIN)
    assert found.step == 2
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(found.arrays))


def test_a_loss_that_is_not_finite_before_any_checkpoint_says_so(tmp_path: pathlib.Path) -> None:
    with pytest.raises(TrainingDiverged, match=r'at step 1, .*; no checkpoint had been saved, and'):
        run(tmp_path, PRETRAIN, batches=batches_of(PRETRAIN, poisoned=0))
    assert not [path for path in (tmp_path / 'checkpoints').glob('*') if path.name.isdigit()]


SKIPPING = dataclasses.replace(
    PRETRAIN, optimizer=dataclasses.replace(PRETRAIN.optimizer, on_bad='skip')
)


def test_a_bad_step_is_skipped_and_noted(tmp_path: pathlib.Path) -> None:
    """Step 4 meets NaN: what it would have done is left out, and the rest goes on."""
    variables = run(tmp_path, SKIPPING, batches=batches_of(SKIPPING, poisoned=3))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(variables))
    assert metrics.parse(tmp_path / reporting.BAD_STEPS) == [
        {'step': 4, 'examples': [12, 15], 'loss': 'nan', 'grad_norm': 'nan', 'action': 'skipped'}
    ]
    rows = {row['step']: row for row in logged(tmp_path)}
    assert np.isnan(rows[4]['loss']) and np.isfinite(rows[6]['loss'])
    # The schedule counts updates: at step 6 it is at its fifth, as the logged rate says.
    schedule = learning_rate(PRETRAIN.optimizer)
    assert rows[4]['learning_rate'] == pytest.approx(float(schedule(3)))
    assert rows[6]['learning_rate'] == pytest.approx(float(schedule(4)))


def test_a_skipping_run_without_bad_steps_is_the_other_one(
    whole: dict[str, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    """To rounding: it is another program."""
    run(tmp_path, SKIPPING)
    for found, expected in zip(logged(tmp_path), logged(whole['params']), strict=True):
        assert found == pytest.approx(expected, rel=1e-5)


def test_too_many_bad_steps_in_a_row_end_the_run(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, 'MOST_SKIPPED', 2)

    def all_bad(start: int) -> Iterator[Batch]:
        good = batches_of(PRETRAIN)(start)
        return (batch._replace(tokens=batch.tokens + 1000) for batch in good)

    with pytest.raises(TrainingDiverged, match='at step 2, the last of 2 bad ones, of examples 4 '):
        run(tmp_path, SKIPPING, batches=all_bad)
    assert [row['action'] for row in metrics.parse(tmp_path / reporting.BAD_STEPS)] == [
        'skipped',
        'stopped',
    ]


def test_bad_steps_in_a_row_are_counted_over_a_stop(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps 2 to 5 are bad. The message has the loss of the last good one."""
    monkeypatch.setattr(reporting, 'MOST_SKIPPED', 4)

    def bad_from_the_second(start: int) -> Iterator[Batch]:
        for k, batch in enumerate(batches_of(PRETRAIN)(start), start):
            yield batch._replace(tokens=batch.tokens + 1000 * (0 < k < 5))

    message = (
        r'at step 5, the last of 4 bad ones, .*; the checkpoint of step 4 '
        r'\(loss \d\S*, gradient norm \d\S* at step 1\) is kept'
    )
    with pytest.raises(TrainingDiverged, match=message):
        run(tmp_path / 'whole', SKIPPING, batches=bad_from_the_second)
    with pytest.raises(Interrupted):
        run(tmp_path / 'stopped', SKIPPING, 3, batches=bad_from_the_second)
    assert final(tmp_path / 'stopped', SKIPPING).data == {
        'batches': 3, 'examples': 12, 'skipped': 2
    }  # fmt: skip
    with pytest.raises(TrainingDiverged, match='at step 5, the last of 4 bad ones, of examples'):
        run(tmp_path / 'stopped', SKIPPING, batches=bad_from_the_second)


def test_the_run_says_where_its_time_went(whole: dict[str, pathlib.Path]) -> None:
    found = json.loads((whole['lam'] / 'goodput.json').read_text())
    assert found['attempts'] == 1 and found['steps'] == SEARCH.steps
    assert {'start', 'compile', 'data', 'step', 'checkpoint', 'other'} == found['seconds'].keys()
    assert 0 < found['goodput'] < 1


def test_every_step_of_stopped_attempts_is_counted(tmp_path: pathlib.Path) -> None:
    for stop in (1, 2):
        with pytest.raises(Interrupted):
            run(tmp_path, PRETRAIN, stop)
    run(tmp_path, PRETRAIN)
    found = json.loads((tmp_path / 'goodput.json').read_text())
    assert (found['attempts'], found['steps']) == (3, PRETRAIN.steps)


def test_a_trace_of_some_steps_is_left(tmp_path: pathlib.Path) -> None:
    run(tmp_path, PRETRAIN, compute=dataclasses.replace(COMPUTE, profile=2))
    assert list((tmp_path / 'profile').rglob('*.xplane.pb'))
    (path,) = (tmp_path / 'profile').rglob('perfetto_trace.json.gz')
    events = json.loads(gzip.decompress(path.read_bytes()))['traceEvents']
    names = [event.get('name', '') for event in events]
    assert {'data', 'step', 'train'} < set(names)
    # To follow Python's functions the profiler reaches into other threads, which may kill.
    assert not any(name.startswith('$') for name in names)


def test_another_runs_folder_is_refused(whole: dict[str, pathlib.Path]) -> None:
    with pytest.raises(CheckpointError, match='seed is 1 here and 0 there'):
        run(whole['params'], PRETRAIN, identity={'seed': 1})


def test_a_batch_that_does_not_split_is_refused() -> None:
    mesh = make_mesh(MeshConfig(data=2, fsdp=2, tensor=2))
    message = r'train\.batch_size is 4; .* multiple of 8 \(compute\.accumulate 2 x 4 batch shards\)'
    with pytest.raises(ValueError, match=message):
        check_mesh(MODEL, PRETRAIN, Compute(accumulate=2), mesh)
    check_mesh(MODEL, PRETRAIN, Compute(), mesh)


def test_micro_batches_are_as_few_as_stay_small_enough() -> None:
    mesh, compute = tiny.mesh(), Compute(accumulate=None, shard_sequences=4)
    wanted = {1: 1, 4: 1, 7: 7, 8: 2, 9: 3, 20: 5, 22: 11}
    assert {batch: compute.micro_batches(batch, mesh) for batch in wanted} == wanted


def test_a_mesh_that_does_not_divide_heads_or_the_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match=r'mesh\.tensor is 8; it must divide model\.heads'):
        check_mesh(MODEL, PRETRAIN, Compute(), make_mesh(MeshConfig(tensor=8)))
    odd = dataclasses.replace(PRETRAIN, lengths=(8, 12))
    with pytest.raises(ValueError, match=r'mesh\.context is 8; .* the training length, 12'):
        check_mesh(MODEL, odd, Compute(), make_mesh(MeshConfig(context=8)))


@pytest.mark.parametrize(
    ('make', 'message'),
    [
        (lambda: dataclasses.replace(PRETRAIN, steps=0), r'steps is 0'),
        (lambda: dataclasses.replace(PRETRAIN, batch_size=0), r'batch_size is 0'),
        (lambda: dataclasses.replace(PRETRAIN, lengths=()), r'lengths is \(\)'),
        (lambda: dataclasses.replace(PRETRAIN, lengths=(8, 0)), r'lengths is \(8, 0\)'),
        (lambda: Compute(accumulate=-1), r'accumulate is -1'),
        (lambda: Compute(shard_sequences=0), r'shard_sequences is 0'),
        (lambda: Compute(checkpoint_every=0), r'checkpoint_every is 0'),
        (lambda: Compute(log_every=0), r'log_every is 0'),
        (lambda: Compute(checkpoints=''), r"checkpoints is ''; it must name a folder"),
        (lambda: Compute(keep=0), r'keep is 0'),
        (lambda: Compute(slow_step=1.0), r'slow_step is 1\.0'),
        (lambda: Compute(hang_seconds=0.0), r'hang_seconds is 0\.0'),
        (lambda: Compute(profile=-1), r'profile is -1; it must be 0 or more'),
    ],
)
def test_errors_name_the_field(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_tokens_count_the_lengths_in_turn() -> None:
    assert SEARCH.block == 24
    assert dataclasses.replace(SEARCH, steps=7).tokens == 4 * (3 * (12 + 24) + 12)
