"""Runs tasks of EleutherAI's evaluation harness (lm_eval) on a model, and prints their table.

    nope harness --model=hf:DIR --data=FOLDER
    nope harness --model=work/quick/runs/RUN --tasks=mine --include=FOLDER

Without --tasks: the seven commonsense tasks of arXiv 2404.12224, Table 1, zero-shot. Tasks read
their data from the Hugging Face hub. Without a network, those seven, BABILong's (babilong_qa1 to
20) and LongBench v2's (longbench2_*) read files in the folder --data, whose names and columns are
in nope/evals/harness/published.py. Tasks of your own are YAML files in the folder --include, and
name their data themselves; lm_eval runs the Python and the templates in them, so include only what
you trust. lm_eval comes with the extra `harness`.

A model reads at most --window tokens, by default the length it was trained at; how many contexts
lost their beginning to it is said and written. Texts begin as lm_eval's own models begin them, with
the tokenizer's own prefix; the paper's harness added none (--no-bos). --chat asks in turns. Tasks
that make or choose their data are told --metadata, and the directory of the model's tokenizer:

    nope harness --model=hf:DIR --tasks=niah_single_1 --window=4096 \\
        --metadata='{"max_seq_lengths": [4096]}'
    nope harness --model=hf:DIR --tasks=babilong_qa1 --window=4096 --data=FOLDER \\
        --metadata='{"max_seq_lengths": "4k"}'
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter()

import argparse
import json
import pathlib
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import jax

from experiments.cli import flags, models
from nope.checkpoints.errors import CheckpointError
from nope.data.prefix import describe_prefix, start_id
from nope.evals import harness
from nope.evals.generation import Generator
from nope.evals.harness import commonsense
from nope.interop import Described
from nope.runtime import progress
from nope.runtime.files import write_json
from nope.sharding import MeshConfig, make_mesh


def main(arguments: list[str] | None = None) -> None:
    parser = flags.parser('harness', __doc__)
    flags.add_model(parser)
    parser.add_argument('--tasks', help='names, with commas; default: the seven')
    parser.add_argument(
        '--include', type=paths.path, help='folder of task YAML files; their code is run'
    )
    parser.add_argument('--data', type=paths.path, help='folder of files for tasks')
    parser.add_argument('--window', type=flags.positive, help='tokens that the model reads at most')
    flags.add_beginning(parser)
    parser.add_argument('--metadata', default='{}', help='JSON object for tasks that take it')
    parser.add_argument('--limit', type=flags.positive, help='only so many documents of each task')
    parser.add_argument('--output', type=paths.path, help='JSON file for the results')
    parser.add_argument('--seed', type=int, default=0, help='of sampled texts')
    options = parser.parse_args(arguments)
    with flags.ending(ValueError, OSError, CheckpointError, ModuleNotFoundError):
        _run(options)


# Of lm_eval's results, what is a number or says what a number is of.
COUNTS = ('contexts', 'truncated', 'n-shot', 'n-samples')
KEPT = ('results', 'groups', 'versions', 'higher_is_better', *COUNTS)


def _run(options: argparse.Namespace) -> None:
    if options.output:
        flags.check_output(options.output)
    names = options.tasks.split(',') if options.tasks is not None else list(harness.TASKS)
    try:
        told = harness.metadata_of(options.metadata)
    except ValueError as error:
        raise ValueError(f'--metadata={error}') from error
    mesh = make_mesh(MeshConfig(fsdp=jax.device_count()))
    found = models.open_model(options, mesh)
    tokenizer = models.tokenizer_of(found, options.tokenizer)
    file = pathlib.Path(options.tokenizer or found.tokenizer)
    # transformers, which such tasks read it with, wants the folder.
    if file.is_file() and not harness.own_code(file.parent):
        told = {'tokenizer': str(file.parent), **told}
    window = _window(options.window, found.described)
    tasks = harness.load(
        harness.find(names, include=options.include, data=options.data, metadata=told or None)
    )
    prefix = models.prefix(tokenizer, options.bos)
    chat = models.chat_of(found, options)
    generator = Generator(
        found.described.model, found.variables(), mesh, batch_tokens=options.batch_tokens
    )
    model = harness.adapter(
        generator,
        tokenizer,
        window=window,
        bos=options.bos,
        seed=options.seed,
        chat=chat,
        progress=lambda chunks: progress.bar(chunks, desc='requests'),
    )
    results = harness.evaluate(tasks, model, options.limit)
    facts = {
        'model': options.model,
        'window': window,
        'bos': bool(prefix),
        'prefix': describe_prefix(tokenizer, prefix),
        'before_whole_texts': describe_prefix(
            tokenizer, prefix or (start_id(tokenizer, options.bos),)
        ),
        'chat': options.chat,
        'limit': options.limit,
    }
    _report(results, tasks['tasks'], options.output, facts)


def _window(wanted: int | None, described: Described) -> int:
    window = described.train_length if wanted is None else wanted
    if window is None:
        raise ValueError('the model says no training length; give --window')
    longest = described.model.longest
    if longest is not None and window > longest:
        raise ValueError(f'--window={window}: the positions of the model end at {longest}')
    return window


def _report(
    results: Mapping[str, Any],
    tasks: Mapping[str, Any],
    output: pathlib.Path | None,
    facts: dict[str, Any],
) -> None:
    from lm_eval.utils import make_table

    print(make_table(results))
    if results.get('groups'):
        print(make_table(results, 'groups'))
    began = 'turns of a chat' if facts['chat'] else f'prefix {facts["prefix"]}'
    samples = sum(count['effective'] for count in results['n-samples'].values())
    print(
        f'{began}, whole texts after {facts["before_whole_texts"]}; {samples:,} samples; '
        f'{results["contexts"]:,} contexts, '
        f'{results["truncated"]:,} of them truncated to {facts["window"]:,} tokens'
    )
    if not commonsense.without_score(tasks):
        found = commonsense.records(results, list(tasks), **facts)
        scores = dict(zip(tasks, found['score'].tolist(), strict=True))
        facts['score'] = scores
        if 'groups' not in found.attributes:  # a group has a mean of its own, printed above
            facts['average'] = found.attributes['average']
            print(f'average of {len(scores)} tasks: {facts["average"]:.2f}')
    if output:
        kept = {name: results[name] for name in KEPT if name in results}
        plain = json.loads(json.dumps(kept, default=str))
        write_json(output, {**facts, **plain, 'lm_eval': version('lm_eval')})
        print(output)


if __name__ == '__main__':
    main()
