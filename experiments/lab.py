"""Makes what a spec asks for, once: trains or restores runs, measures, keeps the records."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np

from experiments import facts, measures
from experiments.evaluations import EvalSpec, eval_slug
from experiments.spec import ExportSpec, GridSpec, ImportSpec, RunSpec, Source, Windows, identity
from experiments.workspace import Workspace, check_claim, claim
from nope import data, interop, records, sharding
from nope.checkpoints import folders
from nope.checkpoints.lease import only_writer
from nope.checkpoints.manager import CheckpointError, Checkpoints, OtherRunError
from nope.identity import first_difference
from nope.interop import CheckpointFileError
from nope.runtime import memory, processes, progress
from nope.runtime.files import exclusive, read_json, write_json
from nope.training.config import Compute, check_mesh
from nope.training.goodput import Goodput
from nope.training.train import Interrupted, train
from nope.variables import Variables, abstract_variables, fresh_variables, lam_of, with_lam

log = logging.getLogger(__name__)


class Lab:
    """A work folder and the devices to fill it with.

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
        self._compute = compute
        self.batch_tokens = batch_tokens
        self._should_stop = should_stop

    @functools.cached_property
    def mesh(self) -> jax.sharding.Mesh:
        """Of all that comes after pre-training."""
        return self._compute.mesh_of(later=True)

    def mesh_of(self, spec: RunSpec) -> jax.sharding.Mesh:
        """The mesh that a run is trained on."""
        return self.mesh if spec.init else self._compute.mesh_of(later=False)

    # Runs

    def finished(self, spec: Source) -> bool:
        """Whether the run is whole. ValueError where its folder holds another one."""
        if isinstance(spec, ImportSpec):
            return True
        folder = self.workspace.run(spec.slug())

        def look() -> bool:
            check_claim(folder, identity(spec))
            return read_json(folder / 'done.json') is not None

        return processes.from_first(look)

    def ensure_run(self, spec: Source) -> pathlib.Path:
        """The run's folder, trained first where it is not; what it needs is made before it. Of an
        imported model, its directory."""
        if isinstance(spec, ImportSpec):
            return pathlib.Path(spec.path)
        folder = self.workspace.run(spec.slug())
        if self.finished(spec):
            return folder
        start = self._start(spec)
        with first_alone(folder / '.lock') as locked:
            if not self.finished(spec):
                processes.from_first(lambda: claim(folder, identity(spec)))
                self._train(spec, start, folder, locked)
        return folder

    def _start(self, spec: RunSpec) -> Callable[[], Variables]:
        """How to make the variables that training begins from (dependencies are made now)."""
        if spec.init is not None:
            self.ensure_run(spec.init)
        coefficient: float | None
        if isinstance(spec.lam_start, GridSpec):
            coefficient = self.best_scale(spec.lam_start)
            assert coefficient is not None
            bound = spec.train.optimizer.bound
            if bound is not None and coefficient < bound:
                log.warning(
                    'the best uniform scale is %g, below search.bound = %g; it starts there',
                    coefficient,
                    bound,
                )
                coefficient = bound
        else:
            coefficient = spec.lam_start

        def initial() -> Variables:
            if spec.init is None:
                variables = fresh_variables(spec.model, self.mesh_of(spec), spec.seed)
            else:
                variables = self.variables(spec.init)
            if coefficient is None:
                return variables
            return uniform(variables, coefficient)

        return initial

    def _train(
        self, spec: RunSpec, initial: Callable[[], Variables], folder: pathlib.Path, locked: bool
    ) -> None:
        place = self._compute.checkpoints
        elsewhere = f'{place}/{spec.slug()}/checkpoints' if place else None
        checkpoints = folders.in_full(
            processes.from_first(lambda: os.fspath(folders.settle(folder, elsewhere)))
        )
        with only_writer(checkpoints, locked) as check_alone:
            if self.finished(spec):  # by the one that was waited for
                return

            def should_stop() -> bool:
                check_alone()
                return self._should_stop()

            began = time.monotonic()
            train(
                spec.model,
                spec.train,
                compute_for(spec, self._compute),
                mesh=self.mesh_of(spec),
                initial=initial,
                batches=functools.partial(self._batches, spec),
                folder=folder,
                identity=identity(spec),
                title=spec.slug().rsplit('-', 1)[0],
                should_stop=should_stop,
                checkpoints_in=checkpoints,
            )
            seconds = round(time.monotonic() - began, 1)
            done = {'steps': spec.train.steps, 'seconds': seconds}
            processes.from_first(lambda: write_json(folder / 'done.json', done))

    def variables(self, spec: Source, step: int | None = None) -> Variables:
        """Parameters and lambda of a finished run or an imported model."""
        return self._variables(spec, step)

    @functools.lru_cache(maxsize=2)  # noqa: B019 (a lab lives as long as the process)
    def _variables(self, spec: Source, step: int | None) -> Variables:
        if isinstance(spec, ImportSpec):
            directory = interop.open_directory(pathlib.Path(spec.path))
            if interop.fingerprint(directory) != spec.fingerprint:
                raise CheckpointFileError(f'{spec.path} has changed since this command began')
            log.info('reading %d tensors from %s', len(directory.tensors), spec.path)
            bar = self.bar('import', stops=processes.count() == 1)
            return interop.load(directory, spec.model, self.mesh, progress=bar)
        folder = self.ensure_run(spec)
        target = abstract_variables(spec.model, self.mesh)
        # Of a search the rest is what it began from, and is in memory but once.
        init = spec.init if spec.searches and spec.init and self.finished(spec.init) else None
        wanted = target if init is None else {'lam': target['lam']}
        with Checkpoints(folders.of_run(folder), identity(spec)) as checkpoints:
            try:
                found = checkpoints.read(wanted, step)
            except OtherRunError:
                raise
            except CheckpointError as error:
                if step is not None:
                    raise
                raise CheckpointError(
                    f'{error}. Without {folder / "done.json"} the same command takes the run up '
                    'again from the checkpoint before'
                ) from error
        return found if init is None else {**self.variables(init), **found}

    # Data

    def _batches(self, spec: RunSpec, consumed: int) -> Iterator[data.Batch]:
        """This process's examples, arrays [B', T], from batch `consumed` on."""
        mesh, compute = self.mesh_of(spec), compute_for(spec, self._compute)
        return data.training_batches(
            spec.data,
            length=spec.train.block,
            batch_size=spec.train.batch_size,
            seed=spec.data_seed,
            start=consumed,
            cache=self.workspace.data,
            rows=sharding.rows_here(
                mesh, compute.micro_batches(spec.train.batch_size, mesh), spec.train.batch_size
            ),
            threads=self._compute.threads,
        )

    def check_training_data(self, spec: RunSpec) -> None:
        """Raises what training would raise about its data, its batch and the mesh."""
        compute = compute_for(spec, self._compute)
        field = compute.mesh_field(later=spec.init is not None)
        check_mesh(spec.model, spec.train, compute, self.mesh_of(spec), field)
        next(self._batches(spec, 0))

    def blocks(self, run: Source, windows: Windows) -> tuple[np.ndarray, dict[str, Any]]:
        """Blocks [windows, length + 1] and what to say of them."""
        found = data.eval_blocks(
            run.data,
            split=windows.split,
            length=windows.block,
            count=windows.count,
            seed=windows.seed,
            cache=self.workspace.data,
        )
        if len(found.tokens) < windows.count:
            log.warning(
                'only %d of %d evaluation windows of %d tokens exist in %s',
                len(found.tokens),
                windows.count,
                windows.block,
                found.description,
            )
        blocks = np.ascontiguousarray(found.tokens[:, -(windows.length + 1) :])
        return blocks, {'documents': found.documents}

    # Exports

    def exported(self, spec: ExportSpec) -> bool:
        """Whether the directory is there. ValueError where it holds another model."""
        folder = self.workspace.export(spec.slug())
        found = read_json(folder / interop.EXPORT_FACTS)
        if found is None:
            return False
        different = first_difference(identity(spec), found['origin'].get('identity'))
        if different:
            raise ValueError(f'{folder} holds another model: {different}')
        return True

    def ensure_export(self, spec: ExportSpec) -> pathlib.Path:
        """The Hugging Face directory, written first where it is missing."""
        folder = self.workspace.export(spec.slug())
        if self.exported(spec):
            return folder
        variables = self.variables(spec.run)
        with exclusive(folder.parent / f'.{folder.name}.lock'):
            if not self.exported(spec):
                log.info('writing %s', folder)
                interop.save(
                    folder,
                    variables,
                    spec.described,
                    export=spec.export,
                    tokenizer=spec.tokenizer,
                    origin={'run': spec.run.slug(), 'identity': identity(spec)},
                )
        return folder

    # Evaluations

    def measured(self, spec: EvalSpec) -> bool:
        folder = self.workspace.records(eval_slug(spec))

        def look() -> bool:
            check_claim(folder, identity(spec))
            return (folder / 'records.json').exists()

        return processes.from_first(look)

    def check_evaluation(self, spec: EvalSpec) -> None:
        """Raises what the evaluation would raise about the mesh, the text and the files it
        reads."""
        _ = self.mesh
        measures.check(self, spec)

    def ensure_records(self, spec: EvalSpec) -> pathlib.Path:
        """The folder of the evaluation's records, measured first where they are missing."""
        folder = self.workspace.records(eval_slug(spec))
        if not self.measured(spec):
            self.ensure_run(spec.run)
            measure = measures.measurement(self, spec)
            with first_alone(folder / '.lock'):
                if not self.measured(spec):
                    processes.from_first(lambda: claim(folder, identity(spec)))
                    log.info('measuring %s', folder.name)
                    goodput = Goodput(folder)
                    with goodput.time('evaluation'):
                        found, more = measure(folder)
                    goodput.write()
                    memory.give_back()
                    attributes = {**facts.of_evaluation(spec), **found.attributes, **more}
                    found = dataclasses.replace(found, attributes=attributes)
                    processes.from_first(lambda: records.save(found, folder))
        return folder

    def best_scale(self, scale: float | GridSpec | None) -> float | None:
        """The number that a uniform scale stands for; a grid is measured first."""
        if not isinstance(scale, GridSpec):
            return scale
        folder = self.ensure_records(scale)
        return processes.from_first(lambda: records.load(folder).attributes['best_scale_window'])

    def scaled(self, run: Source, step: int | None, scale: float | None) -> Variables:
        """The run's variables, with a uniform scale in place of its lambda if given."""
        variables = self.variables(run, step)
        if scale is None:
            return variables
        return uniform(variables, scale)

    def bar(self, title: str, *, stops: bool = True) -> Callable[[Iterable], Iterable]:
        """A progress bar that ends where the command is asked to stop. stops: whether it does;
        not where processes go through the items at their own pace (`processes.StopTogether`)."""

        def watched(items: Iterable) -> Iterable:
            quiet = not processes.is_first()
            for item in progress.bar(items, desc=title, leave=False, disable=quiet):
                if stops and self._should_stop():
                    raise Interrupted(f'{title}: stopped; what was finished before it is kept')
                yield item

        return watched


@contextlib.contextmanager
def first_alone(path: pathlib.Path) -> Iterator[bool]:
    """Holds the lock file in the first process, for all of them. Yields whether it could."""
    with exclusive(path) if processes.is_first() else contextlib.nullcontext(True) as locked:
        yield locked


def uniform(variables: Variables, coefficient: float) -> Variables:
    """`variables` with the same lambda coefficient in every head."""
    lam_LN = lam_of(variables)
    same_LN = np.full(lam_LN.shape, coefficient, lam_LN.dtype)
    return with_lam(variables, sharding.put(same_LN, lam_LN.sharding))


def compute_for(spec: RunSpec, compute: Compute) -> Compute:
    """The few sequences of a search or of fine-tuning are not cut into micro-batches."""
    return compute if spec.init is None else dataclasses.replace(compute, accumulate=1)
