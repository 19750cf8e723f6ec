"""Runs tasks of EleutherAI's evaluation harness (lm_eval) on a model, and prints their table.

    python tools/run_harness.py --model=hf:DIR --data=FOLDER
    python tools/run_harness.py --model=work/quick/runs/RUN --tasks=mine --include=FOLDER

Without --tasks: the seven commonsense tasks of arXiv 2404.12224, Table 1, zero-shot. Tasks read
their data from the Hugging Face hub; where there is no network, those seven, BABILong's
(babilong_qa1 to 20) and LongBench v2's (longbench2_*) read the files that --data names (their names
and columns are in nope/evals/harness/published.py), and tasks of your own, YAML files in the folder
--include, what they say themselves. lm_eval comes with the extra `harness`.

A model reads at most --window tokens, by default the length it was trained at; how many contexts
lost their beginning to it is said and written. Texts begin as lm_eval's own models begin them, with
the tokenizer's own prefix; the paper's harness added none (--no-bos). --chat asks in turns. Tasks
that make or choose their data are told --metadata, and the directory of the model's tokenizer:

    python tools/run_harness.py --model=hf:DIR --tasks=niah_single_1 --window=4096 \\
        --metadata='{"max_seq_lengths": [4096]}'
    python tools/run_harness.py --model=hf:DIR --tasks=babilong_qa1 --window=4096 --data=FOLDER \\
        --metadata='{"max_seq_lengths": "4k"}'
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter(__file__)

import argparse

import _flags


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    import _run_harness  # loads JAX, which takes a second

    _run_harness.main(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    _flags.add_model(parser)
    parser.add_argument('--tasks', help='names, with commas; default: the seven')
    parser.add_argument('--include', type=paths.path, help='folder of task YAML files')
    parser.add_argument('--data', type=paths.path, help='folder of files for tasks')
    parser.add_argument('--window', type=int, help='tokens that the model reads at most')
    _flags.add_beginning(parser)
    parser.add_argument('--metadata', default='{}', help='JSON object for tasks that take it')
    parser.add_argument('--limit', type=int, help='only so many documents of each task')
    parser.add_argument('--output', type=paths.path, help='JSON file for the results')
    parser.add_argument('--seed', type=int, default=0, help='of sampled texts')
    return parser


if __name__ == '__main__':
    main()
