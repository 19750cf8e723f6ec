"""Training of a run: what it begins from, its batches, where its checkpoints go."""

from __future__ import annotations

import functools
import logging
import os
import pathlib
import time
from collections.abc import Iterator
from typing import Any

from experiments.bench import Bench
from experiments.runs.spec import (
    ChangedSpec,
    ImportSpec,
    MultiplierChoice,
    RunSpec,
    Source,
    text_of,
)
from experiments.runs.tasks import check_extents, check_unpadded, follower, reading_task
from experiments.specs import identity
from nope import data, sharding
from nope.checkpoints import folders
from nope.checkpoints.lease import only_writer
from nope.checkpoints.manager import Checkpoints
from nope.data import TaskData, tasks
from nope.data.tasks import words
from nope.evals import exact_match
from nope.heads import order_of, reordered
from nope.interop.run_folder import name_base_model
from nope.model.lam import Coefficient, Product
from nope.runtime import processes
from nope.runtime.errors import FieldError
from nope.runtime.files import write_json
from nope.training.config import check_mesh, check_segments, check_whole_sequences
from nope.training.least_memory import check_memory
from nope.training.train import train
from nope.training.validation import Score
from nope.variables import (
    Variables,
    completed,
    fresh_variables,
    with_lam_beside,
    with_table,
    with_uniform_lam,
)

log = logging.getLogger(__name__)


def check(bench: Bench, spec: RunSpec) -> None:
    """Raises what training would raise about its data, its batch and the mesh."""
    compute = spec.compute(bench.compute)
    field = compute.mesh_field(later=spec.init is not None)
    section = 'search' if spec.searches else 'finetune' if spec.fine_tunes else 'train'
    check_mesh(spec.model, spec.train, compute, bench.mesh_of(spec), field, section)
    check_memory(spec.model, spec.train, compute, bench.mesh_of(spec), section)
    if isinstance(spec.data, TaskData):
        with reading_task(spec.typed.task):
            spec.data.check_targets()
        check_unpadded(spec.data, spec.model, spec.typed.task)
        if spec.searches:
            check_extents(spec, spec.data)
    score_of(bench, spec)  # reads the examples of validation
    # Its evaluations have the mesh of later runs.
    check_whole_sequences(spec.model, bench.mesh, compute.mesh_field(later=True))
    try:
        batch = next(batches(bench, spec, 0))
    except FieldError as error:
        if error.field != 'length':
            raise
        lengths = f'{spec.typed.lengths} makes sequences of {error.value} tokens'
        raise ValueError(f'{lengths}; {error.rule}') from error
    if not spec.model.causal:
        check_segments(spec.model, spec.train, 'model.causal=False', spec.typed.attention)
    elif batch.segments is not None:
        documents = text_of(spec).sources[0].name('documents')
        if spec.train.optimizer.entropy_length is not None:
            raise ValueError(
                f"{documents} is 'apart'; a search whose objective is entropy takes 'joined' ones: "
                'it compares whole windows'
            )
        if spec.model.follows_length:
            raise ValueError(
                f"{documents} is 'apart'; {follower(spec.model)} would follow the length of a row, "
                "which holds several documents; accepted: 'joined'"
            )
        check_segments(spec.model, spec.train, documents, spec.typed.attention)
    elif spec.model.chunked:
        check_segments(spec.model, spec.train, spec.typed.pattern, spec.typed.attention)


def make(bench: Bench, spec: RunSpec, folder: pathlib.Path) -> None:
    """Trains the run, or goes on with it."""
    place = bench.compute.checkpoints
    elsewhere = f'{place}/{spec.slug()}/checkpoints' if place else None
    checkpoints = folders.in_full(
        processes.from_first(lambda: os.fspath(folders.settle(folder, elsewhere)))
    )
    if spec.searches and spec.init is not None:
        base = place_of(bench, spec.init)
        processes.from_first(lambda: name_base_model(folder, base))
    processes.from_first(lambda: write_words(spec, folder))
    with only_writer(checkpoints, shared=elsewhere is not None) as check_bucket:
        processes.from_first(lambda: None)  # the others wait here, where no watch counts

        def check() -> None:
            bench.check_alone()
            check_bucket()

        def should_stop() -> bool:
            check()
            return bench.should_stop()

        bench.release()
        began = time.monotonic()
        train(
            spec.model,
            spec.train,
            spec.compute(bench.compute),
            mesh=bench.mesh_of(spec),
            initial=functools.partial(initial, bench, spec),
            batches=functools.partial(batches, bench, spec),
            folder=folder,
            identity=identity(spec),
            title=spec.slug().rsplit('-', 1)[0],
            should_stop=should_stop,
            checkpoints_in=checkpoints,
            earlier=spec.earlier,
            seed=spec.seed,
            score=score_of(bench, spec),
        )
        seconds = round(time.monotonic() - began, 1)
        done: dict[str, Any] = {'steps': spec.train.steps, 'seconds': seconds}
        if spec.train.validation is not None:
            with Checkpoints(checkpoints, identity(spec)) as kept:
                best = kept.best()
            done |= {} if best is None else best.entry
        check()
        processes.from_first(lambda: write_json(folder / spec.finished, done))


def write_words(spec: RunSpec, folder: pathlib.Path) -> None:
    """Leaves the vocabulary of a task that is read through its own words, for tools, unless it is
    there."""
    if isinstance(spec.data, TaskData) and not (folder / words.FILE).exists():
        tokenizer = spec.data.load_tokenizer()
        if isinstance(tokenizer, tasks.WordTokenizer):
            tokenizer.write(folder / words.FILE)


def score_of(bench: Bench, spec: RunSpec) -> Score | None:
    """Accuracy of a run's variables on a share of its task's validation examples; None for a run
    without validation."""
    validation = spec.train.validation
    if validation is None:
        return None
    assert isinstance(spec.data, TaskData)  # where the spec is made
    with reading_task(spec.typed.task):
        examples = exact_match.validation(spec.data, validation.share)
    mesh = bench.mesh_of(spec)

    def score(variables: Variables) -> float:
        answering = exact_match.answering(
            spec.model, variables, mesh, batch_tokens=bench.batch_tokens
        )
        return exact_match.sequence_accuracy(answering, examples)

    return score


def place_of(bench: Bench, source: Source) -> pathlib.Path:
    """The folder of a run, or the directory of an imported model."""
    if isinstance(source, ChangedSpec):
        return place_of(bench, source.init)
    if isinstance(source, ImportSpec):
        return pathlib.Path(source.path)
    return bench.workspace.folder(source)


def initial(bench: Bench, spec: RunSpec) -> Variables:
    """The variables that training begins from."""
    if spec.init is None:
        variables = fresh_variables(spec.model, bench.mesh_of(spec), spec.seed)
    else:
        mesh, variables = bench.mesh_of(spec), bench.variables(spec.init)
        if not spec.searches:  # what it trains is copied
            bench.release()
        if spec.order_from is not None:
            order_LK = order_of(bench.head_scores(spec.order_from), spec.init.model.kv_heads)
            params = reordered(spec.init.model, variables['params'], order_LK)
            variables = {**variables, 'params': params}
        variables = with_table(spec.model, variables, mesh)
        variables = completed(spec.model, mesh, variables, spec.seed)
    coefficient = start_of(bench, spec)
    if coefficient is None:
        return variables
    law = spec.model.lam
    if isinstance(law, Product):
        return with_lam_beside(variables, law.trained, law.searched, coefficient)
    return with_uniform_lam(variables, coefficient, law.numbers)


def start_of(bench: Bench, spec: RunSpec) -> Coefficient | None:
    """The coefficient that a run begins from: of a grid its best multiplier, or the bound where
    that is higher."""
    if not isinstance(spec.lam_start, MultiplierChoice):
        return spec.lam_start
    coefficient = bench.best_multiplier(spec.lam_start)
    bound = spec.train.optimizer.bound
    if coefficient is not None and bound is not None and coefficient < bound:
        log.warning(
            'the best uniform multiplier is %g, below search.bound = %g; it starts there',
            *(coefficient, bound),
        )
        return bound
    return coefficient


def batches(bench: Bench, spec: RunSpec, consumed: int) -> Iterator[data.Batch]:
    """This process's examples, arrays [B', T], from batch `consumed` on."""
    mesh, compute = bench.mesh_of(spec), spec.compute(bench.compute)
    size = spec.train.batch_size
    common: dict[str, Any] = {
        'length': spec.train.block,
        'batch_size': size,
        'seed': spec.data_seed,
        'start': consumed,
        'rows': sharding.rows_here(mesh, compute.micro_batches(size, mesh), size),
        'lengths': spec.train.lengths,
    }
    if isinstance(spec.data, data.TaskData):
        return tasks.training_batches(spec.data, **common, causal=spec.model.causal)
    return data.training_batches(
        spec.data,
        **common,
        cache=bench.cache,
        threads=bench.compute.threads,
        position_range=spec.model.position_range,
    )
