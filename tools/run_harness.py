"""Runs tasks of EleutherAI's evaluation harness (lm_eval) on a model, and prints their table.

    python tools/run_harness.py --model=hf:DIR --data=FOLDER
    python tools/run_harness.py --model=work/quick/runs/RUN --tasks=mine --include=FOLDER

Without --tasks: the seven commonsense tasks of arXiv 2404.12224, Table 1, zero-shot. Tasks read
their data from the Hugging Face hub; where there is no network, those seven read the files that
--data names (their columns are in nope/evals/harness/published.py), and tasks of your own, YAML
files in the folder --include, what they say themselves. lm_eval comes with the extra `harness`.

A model reads at most --window tokens, by default the length it was trained at. No text begins with
a begin mark, as in the paper; --bos adds one.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from nope import interop, progress
from nope.checkpoint import CheckpointError
from nope.data import Tokenizer, load_tokenizer
from nope.evals import harness
from nope.evals.generation import Generator
from nope.evals.harness import commonsense
from nope.files import write_json
from nope.interop import Described
from nope.interop.run_folder import read_run
from nope.model import ModelConfig
from nope.positions import NoPE
from nope.sharding import MeshConfig, make_mesh
from nope.state import Variables

IMPORT = 'hf:'
# Of lm_eval's results, what is a number or says what a number is of.
KEPT = ('results', 'groups', 'versions', 'n-shot', 'n-samples', 'higher_is_better')


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        _run(options)
    except (ValueError, OSError, CheckpointError, ModuleNotFoundError) as error:
        sys.exit(f'error: {error}')


def _run(options: argparse.Namespace) -> None:
    if options.output and options.output.exists():
        raise ValueError(f'--output={options.output} is there already')
    names = options.tasks.split(',')
    tasks = harness.load(harness.find(names, include=options.include, data=options.data))
    mesh = make_mesh(MeshConfig(fsdp=jax.device_count()))
    found = _model(options, mesh)
    tokenizer = _tokenizer(options.tokenizer or found.tokenizer, found.described.model)
    window = _window(options.window, found.described)
    generator = Generator(
        found.described.model, found.variables(), mesh, batch_tokens=options.batch_tokens
    )
    results = harness.evaluate(
        tasks,
        generator,
        tokenizer,
        window=window,
        bos=options.bos,
        limit=options.limit,
        seed=options.seed,
        progress=lambda chunks: progress.bar(chunks, desc='requests'),
    )
    _report(results, tasks['tasks'], options, window)


class _Model(NamedTuple):
    """variables: reads the weights. tokenizer: what the model comes with, '' where unknown."""

    described: Described
    variables: Callable[[], Variables]
    tokenizer: str


def _model(options: argparse.Namespace, mesh: Mesh) -> _Model:
    if options.model.startswith(IMPORT):
        directory = interop.open_directory(pathlib.Path(options.model.removeprefix(IMPORT)))
        described = interop.describe(directory, position=NoPE() if options.nope else None)
        load = functools.partial(interop.load, directory, described.model, mesh)
        return _Model(described, load, interop.tokenizer_in(directory.path) or '')
    if options.nope:
        raise ValueError(f'--nope is for {IMPORT}DIR; the run {options.model} says what it is')
    run = read_run(pathlib.Path(options.model), mesh, options.step)
    origin = run.spec.get('origin', {}).get('path')
    name = (origin and interop.tokenizer_in(pathlib.Path(origin))) or ''
    if run.spec.get('data', {}).get('tokenizer') == load_tokenizer('bytes').fingerprint:
        name = 'bytes'
    return _Model(run.described, lambda: run.variables, name)


def _tokenizer(name: str, model: ModelConfig) -> Tokenizer:
    if not name:
        raise ValueError('the model says no tokenizer; name one: --tokenizer=bytes, or a file')
    tokenizer = load_tokenizer(name)
    if tokenizer.vocab_size > model.vocab_size:
        raise ValueError(
            f'--tokenizer={name} has {tokenizer.vocab_size} tokens; the model has '
            f'{model.vocab_size}'
        )
    return tokenizer


def _window(wanted: int | None, described: Described) -> int:
    window = wanted or described.train_length
    if window is None:
        raise ValueError('the model says no training length; give --window')
    longest = described.model.longest
    if longest is not None and window > longest:
        raise ValueError(f'--window={window}: the positions of the model end at {longest}')
    return window


def _report(
    results: Mapping[str, Any],
    tasks: Mapping[str, Any],
    options: argparse.Namespace,
    window: int,
) -> None:
    from lm_eval.utils import make_table

    print(make_table(results))
    if results.get('groups'):
        print(make_table(results, 'groups'))
    facts = {'model': options.model, 'window': window, 'bos': options.bos, 'limit': options.limit}
    if not commonsense.without_score(tasks):
        found = commonsense.records(results, list(tasks), **facts)
        scores = dict(zip(tasks, found['score'].tolist(), strict=True))
        facts |= {'score': scores, 'average': found.attributes['average']}
        print(f'average of {len(scores)} tasks: {facts["average"]:.2f}')
    if options.output:
        kept = {name: results[name] for name in KEPT if name in results}
        plain = json.loads(json.dumps(kept, default=str))
        write_json(options.output, {**facts, **plain, 'lm_eval': version('lm_eval')})
        print(options.output)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--model', required=True, help='hf:DIR, or a folder of WORKDIR/runs')
    parser.add_argument('--tasks', default=','.join(harness.TASKS), help='names, with commas')
    parser.add_argument('--include', type=pathlib.Path, help='folder of task YAML files')
    parser.add_argument('--data', type=pathlib.Path, help='folder of files for the seven tasks')
    parser.add_argument('--window', type=int, help='tokens that the model reads at most')
    parser.add_argument('--bos', action='store_true', help='texts begin with a begin mark')
    parser.add_argument('--limit', type=int, help='only so many documents of each task')
    parser.add_argument('--output', type=pathlib.Path, help='JSON file for the results')
    parser.add_argument('--tokenizer', default='', help="'bytes' or a tokenizer file")
    parser.add_argument('--step', type=int, help='a kept checkpoint before the last, of a run')
    parser.add_argument('--nope', action='store_true', help='hf: it was trained without rotation')
    parser.add_argument('--seed', type=int, default=0, help='of sampled texts')
    parser.add_argument('--batch-tokens', type=int, default=16384, help='a batch, per device')
    return parser


if __name__ == '__main__':
    main()
