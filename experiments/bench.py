"""The bench: devices, data and finished pieces, as trainings and measurements ask for them."""

from __future__ import annotations

import dataclasses
import functools
import logging
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np

from experiments.runs import (
    ChangedSpec,
    CheckpointSpec,
    HeadScores,
    ImportSpec,
    MultiplierChoice,
    RunSpec,
    Source,
)
from experiments.specs import identity
from experiments.workspace import Workspace
from nope import data, interop, records
from nope.checkpoints import folders
from nope.checkpoints.best import Best, best_of
from nope.checkpoints.errors import CheckpointError, OtherRunError
from nope.checkpoints.manager import Checkpoints
from nope.data import DataConfig
from nope.data.prefix import begun
from nope.interop import CheckpointFileError
from nope.runtime import processes, progress
from nope.runtime.files import read_json
from nope.runtime.saying import say
from nope.training import optim
from nope.training.config import Compute
from nope.training.train import Interrupted
from nope.variables import Variables, abstract_variables, with_uniform_lam

log = logging.getLogger(__name__)


class Bench:
    """Contents of a work folder and the devices, for whoever makes the next piece.

    batch_tokens: tokens per device in an evaluation batch.
    """

    def __init__(
        self,
        workspace: Workspace,
        compute: Compute,
        batch_tokens: int,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.workspace = workspace
        self.compute = compute
        self.batch_tokens = batch_tokens
        self.should_stop = should_stop
        # Raises where another command has taken over what is being made.
        self.check_alone: Callable[[], None] = lambda: None

    @functools.cached_property
    def mesh(self) -> jax.sharding.Mesh:
        """Of all that comes after pre-training."""
        return self.compute.mesh_of(later=True)

    def mesh_of(self, spec: RunSpec) -> jax.sharding.Mesh:
        """The mesh that a run is trained on."""
        return self.mesh if spec.init else self.compute.mesh_of(later=False)

    @property
    def cache(self) -> pathlib.Path:
        """Folder of tokenised data."""
        return self.workspace.data

    # Models

    def variables(self, spec: Source, step: int | None = None) -> Variables:
        """Parameters and lambda of a finished run or an imported model. step: None for the best of
        a run with validation, else the last."""
        return self._variables(spec, step)

    def release(self) -> None:
        """Lets go of the models in memory, which a training would find full of them."""
        Bench._variables.cache_clear()

    @functools.lru_cache(maxsize=2)  # noqa: B019 (a bench lives as long as the process)
    def _variables(self, spec: Source, step: int | None) -> Variables:
        if isinstance(spec, CheckpointSpec):
            return spec.read()
        if isinstance(spec, ImportSpec):
            return self._imported(spec)
        if isinstance(spec, ChangedSpec):
            return spec.changed(self.variables(spec.init, step))
        folder = self.workspace.folder(spec)
        target = abstract_variables(spec.model, self.mesh)
        base = self._base_model(spec)
        wanted = {name: tree for name, tree in target.items() if name not in base}
        best = self._own_best(spec) if step is None else None
        with Checkpoints(folders.of_run(folder), identity(spec)) as checkpoints:
            checkpoints.stand_on(base)
            try:
                found = checkpoints.read(wanted, step if best is None else best.step)
            except OtherRunError as error:
                if spec.init is None or base:
                    raise
                raise CheckpointError(
                    f'{error}, {self.workspace.folder(spec.init)}: put it back, or remove '
                    f'{folder / spec.finished}, and the same command trains it again'
                ) from error
            except CheckpointError as error:
                if step is not None:
                    raise
                raise CheckpointError(
                    f'{error}. Without {folder / spec.finished} the same command takes the run up '
                    'again from the newest checkpoint that is whole'
                ) from error
        return optim.as_used(spec.train.optimizer, {**base, **found})

    def best(self, run: Source) -> Best | None:
        """The step of the pre-training that a model goes back to that it has its weights from; None
        where that had no validation."""
        while run.init is not None:
            run = run.init
        return self._own_best(run) if isinstance(run, RunSpec) else None

    def _own_best(self, run: RunSpec) -> Best | None:
        """The best step of a finished run, as its `done.json` has it."""
        if run.train.validation is None:
            return None
        path = self.workspace.folder(run) / run.finished
        found = processes.from_first(lambda: best_of(read_json(path) or {}))
        return None if found is None else Best(*found)

    def _base_model(self, spec: RunSpec) -> Variables:
        """Parameters that a search shares with the model it starts from. Empty for other runs, and
        where that model is missing, which reading the search then says."""
        init = spec.init if spec.searches else None
        if init is None or not processes.from_first(lambda: self.workspace.finished(init)):
            return {}
        return {'params': self.variables(init)['params']}

    def _imported(self, spec: ImportSpec) -> Variables:
        directory = interop.open_directory(pathlib.Path(spec.path))
        if interop.fingerprint(directory) != spec.fingerprint:
            raise CheckpointFileError(f'{spec.path} has changed since this command began')
        log.info('reading %d tensors from %s', len(directory.tensors), spec.path)
        bar = self.bar('import', stops=processes.count() == 1)
        return interop.load(directory, spec.model, self.mesh, progress=bar)

    def best_multiplier(self, multiplier: float | MultiplierChoice | None) -> float | None:
        """The number that a uniform multiplier stands for."""
        if not isinstance(multiplier, MultiplierChoice):
            return multiplier
        folder = self.workspace.folder(multiplier)
        name = 'best_multiplier_window'

        def best() -> float:
            found = records.load(folder)
            value, grid = float(found.attributes[name]), found.coordinates['multiplier']
            if value in (grid.min(), grid.max()):
                say(logging.WARNING, f'the best multiplier, {value:g}, ends the grid of {folder}')
            return value

        return processes.from_first(best)

    def head_scores(self, scores: HeadScores) -> np.ndarray:
        """Weight of every head on the latest tokens, mean over positions, [L, N]."""
        folder = self.workspace.folder(scores)
        found = processes.from_first(lambda: records.load(folder)['local'].mean(-1).tolist())
        return np.array(found)

    def scaled(self, run: Source, step: int | None, multiplier: float | None) -> Variables:
        """The run's variables, with a uniform multiplier in place of its lambda if given."""
        variables = self.variables(run, step)
        return variables if multiplier is None else with_uniform_lam(variables, multiplier)

    # Data

    def blocks(
        self,
        config: DataConfig,
        *,
        split: str,
        block: int,
        length: int,
        count: int,
        seed: int,
        **cut: Any,
    ) -> data.EvalBlocks:
        """Held-out blocks, of whose tokens the last `length` + 1: [count, length + 1] int32. cut:
        how they are cut (`data.eval_blocks`)."""
        found = data.eval_blocks(
            config, split=split, length=block, count=count, seed=seed, cache=self.cache, **cut
        )
        if len(found.tokens) < count:
            say(
                logging.WARNING,
                f'only {len(found.tokens)} of {count} evaluation windows of {block} tokens exist '
                f'in {found.description}',
            )
        tokens = begun(found.tokens[:, -(length + 1) :], config.prefix)
        return dataclasses.replace(found, tokens=np.ascontiguousarray(tokens))

    def text_tokens(self, run: Source) -> int | None:
        """Tokens of the text that trained a model's weights. None for imported models, for tasks,
        which have no end, for mixtures, and for text that is not in the cache."""
        while run.init is not None:
            run = run.init
        if isinstance(run, ImportSpec) or isinstance(run.data, data.TaskData):
            return None
        config = run.data
        return processes.from_first(lambda: data.stored_tokens(config, self.cache))

    # Progress

    def bar(self, title: str, *, stops: bool = True) -> Callable[[Iterable], Iterable]:
        """A progress bar that ends where the command is asked to stop. stops: whether it does;
        not where processes go through the items at their own pace (`processes.StopTogether`)."""

        def watched(items: Iterable) -> Iterable:
            quiet = not processes.is_first()
            for item in progress.bar(items, desc=title, leave=False, disable=quiet):
                self.check_alone()
                if stops:
                    self.stop_where_asked(title)
                yield item

        return watched

    def stop_where_asked(self, title: str) -> None:
        """Interrupted where the command is asked to stop."""
        if self.should_stop():
            raise Interrupted(f'{title}: stopped; what was finished before it is kept')
