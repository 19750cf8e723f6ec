"""Text generation: continues prompts with a model and prints its speed.

    python tools/generate.py --model=hf:DIR --prompt='The passkey is' --new-tokens=32
    python tools/generate.py --model=work/quick/runs/RUN --prompts=FILE --output=made.jsonl
    python tools/generate.py --model=hf:DIR --prompt=... --temperature=0.8 --top-p=0.95 --seed=1
    python tools/generate.py --model=hf:DIR --prompt=... --beams=4 --early-stopping=true
    python tools/generate.py --model=hf:DIR --chat --prompt='What is the capital of France?'

A continuation is greedy, sampled (--temperature above 0) or the best that a beam search finds. It
ends at the tokenizer's EOS or another eos_token_id of the model's generation_config.json, before
the first --stop text (in a shell, $'\\n' is a line feed; with beams, one special token), or after
--new-tokens. A FILE of the suffix .jsonl, .ndjson or .json holds a JSON object of the one field
"prompt" on each line; any other file a prompt on each line. Empty lines are skipped.

A prompt begins as the tokenizer's own files begin a text, or as --bos and --no-bos say. With --chat
it is the user's turn of a conversation, and the continuation the answer. What a prompt spells of
special tokens ("<|im_start|>") is plain text, so that no text can pose as a turn; with --special it
is the tokens. --output writes a JSON object for each prompt: prompt, continuation, and tokens, the
ids of the continuation. Tokens per second are over the time in which nothing was compiled, and
count tokens that a stop text cut off.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter(__file__)

import argparse
import sys

import _flags

EARLY_STOPPING: dict[str, bool | str] = {'false': False, 'true': True, 'never': 'never'}


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        _check(options)
    except ValueError as error:
        sys.exit(f'error: {error}')
    import _generate  # loads JAX, which takes a second

    _generate.main(options, EARLY_STOPPING[options.early_stopping])


def _check(options: argparse.Namespace) -> None:
    """ValueError for options that do not go together."""
    if not 0 <= options.seed < 2**32:
        raise ValueError(f'--seed={options.seed}; accepted are 0 to {2**32 - 1}')
    if '' in options.stop:
        raise ValueError("--stop is ''; it takes a text of at least one character")
    if options.temperature == 0 and (options.top_k != 0 or options.top_p != 1):
        raise ValueError('--top-k and --top-p are for samples, which need a --temperature above 0')
    if options.beams == 1 and (options.length_penalty != 1 or options.early_stopping != 'false'):
        raise ValueError('--length-penalty and --early-stopping are for 2 --beams or more')
    if options.output:
        _flags.check_output(options.output)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    _flags.add_model(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument('--prompt', action='append', help='a text; again for another')
    source.add_argument('--prompts', type=paths.path, help='file of prompts, one on each line')
    parser.add_argument('--new-tokens', type=int, default=64, help='at most (default: 64)')
    parser.add_argument('--stop', action='append', default=[], help='a text; again for another')
    _flags.add_beginning(parser)
    parser.add_argument(
        '--special', action='store_true', help='text of special tokens becomes these tokens'
    )
    parser.add_argument('--temperature', type=float, default=0.0, help='0 (default): greedy')
    parser.add_argument('--top-k', type=int, default=0, help='so many tokens; 0 (default) for all')
    parser.add_argument('--top-p', type=float, default=1.0, help='tokens of this probability')
    parser.add_argument('--seed', type=int, default=0, help='of samples')
    parser.add_argument('--beams', type=int, default=1, help='2 or more: beam search')
    parser.add_argument('--length-penalty', type=float, default=1.0, help='of beam search')
    parser.add_argument(
        '--early-stopping', choices=list(EARLY_STOPPING), default='false', help='of beam search'
    )
    parser.add_argument('--output', type=paths.path, help='file for JSON lines')
    return parser


if __name__ == '__main__':
    main()
