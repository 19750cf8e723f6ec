"""Makes what a spec asks for, once: trains or restores runs, measures, keeps the records."""

from __future__ import annotations

import dataclasses
import functools
import logging
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.spec import (
    EvalSpec,
    ExportSpec,
    GridSpec,
    ImportSpec,
    LengthsSpec,
    PositionsSpec,
    RunSpec,
    Source,
    Windows,
    eval_slug,
    identifier,
    identity,
)
from experiments.workspace import Workspace, check_claim, claim
from nope import data, interop, progress, records, sharding
from nope.checkpoint import Checkpoints
from nope.evals import lengths, positions, scale_grid
from nope.files import exclusive, read_json, write_json
from nope.identity import first_difference
from nope.interop import CheckpointFileError
from nope.interop.fold import is_neutral
from nope.model import ModelConfig
from nope.model.lam import neutral
from nope.records import Records
from nope.state import Variables, abstract_variables, fresh_variables, lam_of, with_lam
from nope.train import Compute, Interrupted, check_divisible, train

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
        self._batch_tokens = batch_tokens
        self._should_stop = should_stop

    @functools.cached_property
    def _mesh(self) -> jax.sharding.Mesh:
        return sharding.make_mesh(self._compute.mesh)

    # Runs

    def finished(self, spec: Source) -> bool:
        """Whether the run is whole. ValueError where its folder holds another one."""
        if isinstance(spec, ImportSpec):
            return True
        folder = self.workspace.run(spec.slug())
        if folder.exists():
            check_claim(folder, identity(spec))
        return read_json(folder / 'done.json') is not None

    def ensure_run(self, spec: Source) -> pathlib.Path:
        """The run's folder, trained first where it is not; what it needs is made before it. Of an
        imported model, its directory."""
        if isinstance(spec, ImportSpec):
            return pathlib.Path(spec.path)
        folder = self.workspace.run(spec.slug())
        if self.finished(spec):
            return folder
        start = self._start(spec)
        with exclusive(folder / '.lock'):
            if not self.finished(spec):
                claim(folder, identity(spec))
                began = time.monotonic()
                self._train(spec, start, folder)
                write_json(
                    folder / 'done.json',
                    {'steps': spec.train.steps, 'seconds': round(time.monotonic() - began, 1)},
                )
        return folder

    def _start(self, spec: RunSpec) -> Callable[[], Variables]:
        """How to make the variables that training begins from (dependencies are made now)."""
        if spec.init is not None:
            self.ensure_run(spec.init)
        coefficient: float | None
        if isinstance(spec.lam_start, GridSpec):
            coefficient = self.ensure_records(spec.lam_start).attributes['best_scale_window']
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
                variables = fresh_variables(spec.model, self._mesh, spec.seed)
            else:
                variables = self.variables(spec.init)
            if coefficient is None:
                return variables
            neutral_LN = neutral(spec.model.lam, spec.model.layers, spec.model.heads)
            lam_LN = jnp.full_like(neutral_LN, coefficient)
            return with_lam(variables, jax.device_put(lam_LN, lam_of(variables).sharding))

        return initial

    def _train(self, spec: RunSpec, initial: Callable[[], Variables], folder: pathlib.Path) -> None:
        train(
            spec.model,
            spec.train,
            compute_for(spec, self._compute),
            mesh=self._mesh,
            initial=initial,
            batches=functools.partial(self._batches, spec),
            folder=folder,
            identity=identity(spec),
            title=spec.slug().rsplit('-', 1)[0],
            should_stop=self._should_stop,
        )

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
            return interop.load(directory, spec.model, self._mesh, progress=self._bar('import'))
        folder = self.ensure_run(spec)
        target = abstract_variables(spec.model, self._mesh)
        with Checkpoints(
            folder / 'checkpoints',
            identity(spec),
            keep=self._compute.keep,
            permanent=spec.train.keep_steps,
        ) as checkpoints:
            if spec.init is None or not spec.searches or not self.finished(spec.init):
                return checkpoints.restore_variables(target, step)
            # The rest is what the search began from, and is in memory but once.
            found = checkpoints.restore_variables({'lam': target['lam']}, step)
        return {**self.variables(spec.init), **found}

    # Data

    def _batches(self, spec: RunSpec, consumed: int) -> Iterator[np.ndarray]:
        """This process's blocks [B', T + 1] from batch `consumed` on."""
        return data.training_batches(
            spec.data,
            length=spec.train.block,
            batch_size=spec.train.batch_size,
            seed=spec.data_seed,
            start=consumed,
            cache=self.workspace.data,
            host=jax.process_index(),
            hosts=jax.process_count(),
            threads=self._compute.threads,
        )

    def check_training_data(self, spec: RunSpec) -> None:
        """Raises what training would raise about its data, its batch and the mesh."""
        check_divisible(spec.train, compute_for(spec, self._compute), self._mesh)
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
        if folder.exists():
            check_claim(folder, identity(spec))
        return (folder / 'records.json').exists()

    def ensure_records(self, spec: EvalSpec) -> Records:
        """The evaluation's records, measured first where they are missing."""
        folder = self.workspace.records(eval_slug(spec))
        if not self.measured(spec):
            self.ensure_run(spec.run)
            measure = self._measurement(spec)
            with exclusive(folder / '.lock'):
                if not self.measured(spec):
                    claim(folder, identity(spec))
                    log.info('measuring %s', folder.name)
                    found, more = measure()
                    attributes = {**self._attributes(spec), **found.attributes, **more}
                    records.save(dataclasses.replace(found, attributes=attributes), folder)
        return records.load(folder)

    def _measurement(self, spec: EvalSpec) -> Callable[[], tuple[Records, dict[str, Any]]]:
        """The measurement to make (what it depends on is made now, before any lock)."""
        if isinstance(spec, GridSpec):
            return functools.partial(self._grid, spec)
        if isinstance(spec, PositionsSpec):
            scale = spec.scale
            if isinstance(scale, GridSpec):
                scale = self.ensure_records(scale).attributes['best_scale_window']
            return functools.partial(self._positions, spec, scale)
        best = [self.ensure_records(g).attributes['best_scale_window'] for g in spec.scales]
        return functools.partial(self._lengths, spec, best)

    def _grid(self, spec: GridSpec) -> tuple[Records, dict[str, Any]]:
        blocks, facts = self.blocks(spec.run, spec.windows)
        found = scale_grid.run(
            spec.model,
            self.variables(spec.run, spec.step),
            blocks,
            spec.grid,
            train_length=spec.run.train_length,
            progress=self._bar('scale grid'),
            **self._execution(spec.windows),
        )
        return found, facts

    def _positions(
        self, spec: PositionsSpec, scale: float | None
    ) -> tuple[Records, dict[str, Any]]:
        blocks, facts = self.blocks(spec.run, spec.windows)
        model = spec.model
        variables = self._scaled(spec.run, spec.step, scale)
        own = '1' if is_neutral(model, variables, spec.windows.length) else 'HeadScale, as read'
        if isinstance(spec.run, RunSpec) and spec.run.searches:
            own = _searched(spec.run)
        found = positions.run(
            model,
            variables,
            blocks,
            progress=self._bar('loss and entropy'),
            **self._execution(spec.windows),
        )
        facts |= {
            'position': model.describe_position(),
            'scale_value': 1.0 if scale is None and own == '1' else scale,
            'scale': f'{scale:g}' if scale is not None else own,
        }
        return found, facts

    def _lengths(self, spec: LengthsSpec, best: list[float]) -> tuple[Records, dict[str, Any]]:
        blocks, facts = self.blocks(spec.run, spec.windows)
        scales: list[float | None] = [*best] or [None] * len(spec.lengths)
        found = lengths.run(
            spec.model,
            [self._scaled(spec.run, None, scale) for scale in scales],
            blocks,
            spec.lengths,
            train_length=spec.run.train_length,
            progress=self._bar('loss by length'),
            **self._execution(spec.windows),
        )
        return found, facts | {'position': spec.model.describe_position()}

    def _scaled(self, run: Source, step: int | None, scale: float | None) -> Variables:
        """The run's variables, with a uniform scale in place of its lambda if given."""
        variables = self.variables(run, step)
        if scale is None:
            return variables
        lam_LN = lam_of(variables)
        uniform = jax.device_put(jnp.full_like(lam_LN, scale), lam_LN.sharding)
        return with_lam(variables, uniform)

    def _execution(self, windows: Windows) -> dict[str, Any]:
        return {
            'mesh': self._mesh,
            'batch_size': eval_batch(self._batch_tokens, windows.length, self._mesh),
        }

    def _bar(self, title: str) -> Callable[[Iterable], Iterable]:
        def watched(items: Iterable) -> Iterable:
            for item in progress.bar(items, desc=title, leave=False):
                if self._should_stop():
                    raise Interrupted(f'{title}: stopped; what was finished before it is kept')
                yield item

        return watched

    def _attributes(self, spec: EvalSpec) -> dict[str, Any]:
        """Facts for captions and claims."""
        run = spec.run
        return {
            'run_id': identifier(run),
            **_training(run, getattr(spec, 'step', None)),
            'model': describe_model(run.model),
            'position': run.model.describe_position(),
            'data': data.describe(run.data),
            'token': 'byte' if run.data.tokenizer == 'bytes' else 'token',
            'split': spec.windows.split,
            'train_length': run.train_length,
            'seed': run.seed,
        }


def _training(run: Source, step: int | None) -> dict[str, Any]:
    """How a model was trained: tokens and steps of the pre-training, and what came after it."""
    if isinstance(run, ImportSpec):
        return {'origin': run.origin, 'train_tokens': None, 'step': 0}
    done = step or run.train.steps
    if run.init is None:
        return {'train_tokens': run.train.batch_size * run.train.block * done, 'step': done}
    facts = _training(run.init, None) | {'step': done}
    if run.fine_tunes:
        steps = f'{done:,} steps of {run.train.batch_size} sequences of {run.train.block:,}'
        facts['tuning'] = f'fine-tuned for {steps}'
    return facts


def compute_for(spec: RunSpec, compute: Compute) -> Compute:
    """The few sequences of a search or of fine-tuning are not cut into micro-batches."""
    return compute if spec.init is None else dataclasses.replace(compute, accumulate=1)


def eval_batch(batch_tokens: int, length: int, mesh: jax.sharding.Mesh) -> int:
    """Windows of an evaluation batch: `batch_tokens` on each part of the mesh's batch axes."""
    return max(batch_tokens // length, 1) * sharding.batch_parts(mesh)


def describe_model(model: ModelConfig) -> str:
    """'NoPE, 4 layers, width 64, 4 heads, 222k parameters'."""
    position = model.describe_position()
    size = model.parameters
    count = f'{size / 1e6:.3g}M' if size >= 1e6 else f'{round(size / 1e3)}k'
    if size >= 1e9:
        count = f'{size / 1e9:.2f}B'
    return (
        f'{"NoPE" if position == "none" else position}, {model.layers} layers, '
        f'width {model.width}, {model.heads} heads, {count} parameters'
    )


def _searched(run: RunSpec) -> str:
    name = {'Constant': 'HeadScale', 'LogLength': 'log-length'}[type(run.model.lam).__name__]
    return f'{name} at {run.train.block}'
