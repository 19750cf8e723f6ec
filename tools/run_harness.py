"""Runs tasks of EleutherAI's evaluation harness (lm_eval) on a model, and prints their table.

    python tools/run_harness.py --model=hf:DIR --data=FOLDER
    python tools/run_harness.py --model=work/quick/runs/RUN --tasks=mine --include=FOLDER

Without --tasks: the seven commonsense tasks of arXiv 2404.12224, Table 1, zero-shot. Tasks read
their data from the Hugging Face hub; where there is no network, those seven read the files that
--data names (their columns are in nope/evals/harness/published.py), and tasks of your own, YAML
files in the folder --include, what they say themselves. lm_eval comes with the extra `harness`.

A model reads at most --window tokens, by default the length it was trained at. No text begins with
BOS, as in the paper; --bos adds it.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import _models
import jax

from nope.checkpoints.manager import CheckpointError
from nope.evals import harness
from nope.evals.generation import Generator
from nope.evals.harness import commonsense
from nope.interop import Described
from nope.runtime import progress
from nope.runtime.files import write_json
from nope.sharding import MeshConfig, make_mesh

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
    found = _models.open_model(options, mesh)
    tokenizer = _models.tokenizer_of(found, options.tokenizer)
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
    _models.add_arguments(parser)
    parser.add_argument('--tasks', default=','.join(harness.TASKS), help='names, with commas')
    parser.add_argument('--include', type=pathlib.Path, help='folder of task YAML files')
    parser.add_argument('--data', type=pathlib.Path, help='folder of files for the seven tasks')
    parser.add_argument('--window', type=int, help='tokens that the model reads at most')
    parser.add_argument('--bos', action='store_true', help='texts begin with BOS')
    parser.add_argument('--limit', type=int, help='only so many documents of each task')
    parser.add_argument('--output', type=pathlib.Path, help='JSON file for the results')
    parser.add_argument('--seed', type=int, default=0, help='of sampled texts')
    return parser


if __name__ == '__main__':
    main()
