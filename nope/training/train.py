"""The training loop, for pre-training and for the search of lambda alike."""

from __future__ import annotations

import itertools
import logging
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
from clu import parameter_overview
from jax.sharding import Mesh

from nope.checkpoints.best import best_of
from nope.checkpoints.manager import Checkpoints
from nope.data.batch import Batch
from nope.model import ModelConfig
from nope.runtime import memory, processes
from nope.runtime.seeds import check_seed
from nope.training import guard, optim
from nope.training.config import Compute, Earlier, TrainConfig, check_mesh
from nope.training.goodput import Goodput
from nope.training.profile import Profile
from nope.training.reporting import Reporter, skipped_of
from nope.training.state import TrainState, fresh_state
from nope.training.stepping import Stepping
from nope.training.validation import Score, Selection
from nope.training.watch import Watch
from nope.variables import Variables

log = logging.getLogger(__name__)


class Interrupted(RuntimeError):
    """A stop was asked for; everything up to the last step is saved."""


# Batches consumed -> from there on this process's examples (`sharding.rows_here`), [B', T] each.
Batches = Callable[[int], Iterator[Batch]]


def train(
    model: ModelConfig,
    config: TrainConfig,
    compute: Compute,
    *,
    mesh: Mesh,
    initial: Callable[[], Variables],
    batches: Batches,
    folder: pathlib.Path,
    identity: Mapping[str, Any],
    title: str,
    should_stop: Callable[[], bool] = lambda: False,
    checkpoints_in: pathlib.Path | str | None = None,
    earlier: Earlier | None = None,
    seed: int = 0,
    score: Score | None = None,
) -> Variables:
    """Trains from `initial()`, or from the newest checkpoint in `folder`, to the last step.

    Leaves in `folder`: checkpoints/ (unless they go to `checkpoints_in`), metrics.jsonl,
    tensorboard/, parameters.txt, goodput.json; bad_steps.jsonl and stacks-PROCESS.txt where there
    was cause; profile/ and wandb/ where asked for. A run that was stopped and started again is
    bitwise the uninterrupted one on the same devices.

    earlier: model of the first steps. The checkpoint after the last of them is never removed, and
    the optimizer goes on as if nothing had changed; the bad-step guard learns the usual loss anew.

    score: of a run with validation (`nope.training.validation`), the accuracy of its variables. The
    checkpoint of the best step stays beside the newest, and each says which step was the best when
    it was saved. The variables of the last step are returned all the same.

    seed: of dropout, where the model has it (`nope.model.dropout`); of 32 bits.

    A search of lambda saves lambda and its optimizer; `initial()` gives the parameters again
    whenever it goes on, and they are shared, neither copied nor changed.

    Raises TrainingDiverged (the newest checkpoint, if any, stays), Interrupted (state saved), or
    CheckpointError (the folder holds another run, or cannot be written to).
    """
    check_mesh(model, config, compute, mesh)
    check_seed(seed)
    goodput = Goodput(folder)
    kept = config.keep_steps if earlier is None else (*config.keep_steps, earlier.steps)
    with (
        Watch(folder, slow=compute.slow_step, hang_seconds=compute.hang_seconds) as watch,
        Checkpoints(
            checkpoints_in or folder / 'checkpoints',
            identity,
            keep=compute.keep,
            permanent=kept,
            clean=True,
        ) as checkpoints,
    ):
        with goodput.time('start'):
            state, frozen, data = begin(initial, config, mesh, checkpoints)
            selection = Selection(config.validation, score, best_of(data))
            start = int(state.step)
            if start:
                log.info('%s: going on from step %d', title, start)
            describe_parameters({**frozen, **state.trained}, folder)
            stream = started(batches(start)) if start < config.steps else iter(())
        with (
            goodput,
            Reporter(
                *(folder, title, model, config, compute),
                start=start,
                skipped=skipped_of(data),
                identity=identity,
            ) as reporter,
            Profile(folder / 'profile', start, compute.profile) as profile,
        ):
            stepping = Stepping(model, config, compute, mesh, state, earlier=earlier, seed=seed)
            saved_at = {config.steps, *kept}
            for step in range(start, config.steps):
                length = config.lengths[step % len(config.lengths)]
                with goodput.time('data') as waited:
                    batch = next(stream).first(length)
                if earlier is not None and step == earlier.steps:
                    state = state.replace(opt_state=guard.restarted(state.opt_state))
                program = stepping.program(step, length)
                with (
                    goodput.time('step' if program.compiled else 'compile'),
                    profile.marked(step + 1),
                ):
                    state, metrics, by_layer = stepping.take(program, state, frozen, batch)
                    reporter.add(step + 1, metrics, by_layer)

                done = step + 1
                goodput.step_done()
                scored = selection.due(done)
                if scored:
                    with goodput.time('step'):
                        reporter.check()  # nothing is scored that is not finite
                    with goodput.time('evaluation'):
                        used = optim.as_used(config.optimizer, {**frozen, **state.trained})
                        reporter.scored(selection.look(done, used))
                stop = should_stop()
                save = stop or done in saved_at or done % compute.checkpoint_every == 0
                save = save or selection.is_best(done)
                if save:
                    with goodput.time('step'):
                        reporter.flush()  # nothing is saved that is not finite
                    with goodput.time('checkpoint'):
                        position: dict[str, Any] = {
                            'batches': done,
                            'examples': done * config.batch_size,
                            **({} if selection.best is None else selection.best.entry),
                            **reporter.entry,
                        }
                        checkpoints.save(done, state.arrays(frozen), position)
                    reporter.saved(done)
                    goodput.write()
                usual = program.usual and not save and not scored
                watch.step(done, usual=usual, data_seconds=waited())
                profile.step(done)
                if stop and done < config.steps:
                    raise Interrupted(
                        f'{title}: stopped at step {done}, saved in {checkpoints.folder}'
                    )
        with goodput.time('checkpoint'):
            checkpoints.wait()
            checkpoints.remove_old()
    goodput.write()
    memory.give_back()
    return optim.as_used(config.optimizer, {**frozen, **state.trained})


def begin(
    initial: Callable[[], Variables], config: TrainConfig, mesh: Mesh, checkpoints: Checkpoints
) -> tuple[TrainState, Variables, Mapping[str, Any]]:
    """The state of the newest checkpoint, else that before the first step; the frozen variables;
    the checkpoint's data, {} without one. What is to be restored is given back before it is read.
    """
    state, frozen = fresh_state(initial(), config.optimizer, mesh)
    if state.searches:
        checkpoints.stand_on(frozen)
    arrays = state.arrays(frozen)
    if checkpoints.steps():
        state, arrays = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding),
            (state, arrays),
        )
    restored = checkpoints.restore(arrays)
    if restored is not None:
        frozen = {name: restored.arrays.get(name, tree) for name, tree in frozen.items()}
        begun = state.with_arrays(restored.step, restored.arrays)
        return begun, frozen, restored.data
    checkpoints.prepare(arrays)
    return state, frozen, {}


def started(stream: Iterator[Batch]) -> Iterator[Batch]:
    """`stream`, whose first batch is there: its threads run."""
    return itertools.chain([next(stream)], stream)


def describe_parameters(variables: Variables, folder: pathlib.Path) -> None:
    """parameters.txt: every variable with shape, size, mean and deviation at the start."""
    overview = parameter_overview.get_parameter_overview(variables, include_stats='global')
    if processes.is_first():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'parameters.txt').write_text(overview + '\n')
