"""Text generation: continues prompts with a model and prints its speed.

    nope generate --model=hf:DIR --prompt='The passkey is' --new-tokens=32
    nope generate --model=work/quick/runs/RUN --prompts=FILE --output=made.jsonl
    nope generate --model=hf:DIR --prompt=... --temperature=0.8 --top-p=0.95 --seed=1
    nope generate --model=hf:DIR --prompt=... --beams=4 --early-stopping=true
    nope generate --model=hf:DIR --chat --prompt='What is the capital of France?'

A continuation is greedy, sampled (--temperature above 0) or the best that a beam search finds. It
ends at the tokenizer's EOS or another eos_token_id of the model's generation_config.json, before
the first --stop text (in a shell, $'\\n' is a line feed; with beams, one special token), or after
--new-tokens. A FILE of the suffix .jsonl, .ndjson or .json holds a JSON object of the one field
"prompt" on each line; any other file a prompt on each line. Empty lines are skipped.

A prompt begins as the tokenizer's own files begin a text, or as --bos and --no-bos say. With --chat
it is the user's turn of a conversation, and the continuation the answer. A special token that a
prompt spells ("<|im_start|>") is plain text. With --special it is the token, and with --chat, as in
transformers: a text can pose as a turn there.

--output writes a JSON object for each prompt: prompt, continuation, and its ids (tokens). Tokens
per second are over the time in which nothing was compiled, and count tokens that a stop text cut
off.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter()

import argparse
import contextlib
import dataclasses
import json
import pathlib
import re
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np

from experiments.cli import flags, models
from nope.checkpoints.errors import CheckpointError
from nope.data import Continuation, Tokenizer, encode_with_bos, spells_special, split_stops
from nope.data.prefix import describe_prefix
from nope.evals.generation import Generator, Options
from nope.runtime.files import parse_json, read_utf8, write_text
from nope.sharding import MeshConfig, make_mesh

EARLY_STOPPING: dict[str, bool | str] = {'false': False, 'true': True, 'never': 'never'}
FIELD = 'prompt'
OBJECTS = ('.jsonl', '.ndjson', '.json')
OBJECT = f'accepted is an object like {{"{FIELD}": "Once"}}'


class Prompt(NamedTuple):
    """where: what it is called in errors."""

    where: str
    text: str


def main(arguments: list[str] | None = None) -> None:
    parser = flags.parser('generate', __doc__)
    flags.add_model(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument('--prompt', action='append', help='a text; again for another')
    source.add_argument('--prompts', type=paths.path, help='file of prompts, one on each line')
    parser.add_argument('--new-tokens', type=int, default=64, help='at most (default: 64)')
    parser.add_argument('--stop', action='append', default=[], help='a text; again for another')
    flags.add_beginning(parser)
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
    options = parser.parse_args(arguments)
    with flags.ending(ValueError, OSError, CheckpointError):
        _run(options, _how(options))


def _how(options: argparse.Namespace) -> Options:
    """The options of generation. ValueError for options that do not go together."""
    if not 0 <= options.seed < 2**32:
        raise ValueError(f'--seed={options.seed}; accepted are 0 to {2**32 - 1}')
    if '' in options.stop:
        raise ValueError("--stop is ''; it takes a text of at least one character")
    if options.temperature == 0 and (options.top_k != 0 or options.top_p != 1):
        raise ValueError('--top-k and --top-p are for samples, which need a --temperature above 0')
    if options.beams == 1 and (options.length_penalty != 1 or options.early_stopping != 'false'):
        raise ValueError('--length-penalty and --early-stopping are for 2 --beams or more')
    if options.output:
        flags.check_output(options.output)
    return Options(
        new_tokens=options.new_tokens,
        beams=options.beams,
        length_penalty=options.length_penalty,
        early_stopping=EARLY_STOPPING[options.early_stopping],
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        seed=options.seed,
    )


def read_prompts(given: Sequence[str] | None, file: pathlib.Path | None) -> list[Prompt]:
    """The prompts of the command line, or else of the file. FileNotFoundError where there is no
    such file; ValueError naming the line that holds no prompt, or the file where none does."""
    if given or file is None:
        numbered = enumerate(given or (), 1)
        return [_checked(Prompt(f'--prompt {number}', text)) for number, text in numbered]
    if file.is_dir():
        raise ValueError(f'--prompts={file} is a folder; it takes a file')
    if not file.is_file():
        raise FileNotFoundError(f'--prompts={file}: there is no such file')
    try:
        lines = re.split(r'\r\n?|\n', read_utf8(file).decode())
    except UnicodeDecodeError as error:
        raise ValueError(f'--prompts={file}: not text in UTF-8 or UTF-16 ({error})') from error
    prompts = []
    for number, line in enumerate(lines, 1):
        where = f'{file}, line {number}'
        if not line.strip():
            continue
        if file.suffix.lower() in OBJECTS:
            try:
                row = parse_json(line)
            except ValueError as error:
                raise ValueError(f'{where}: not a line of JSON ({error}); {OBJECT}') from error
            if not isinstance(row, dict) or not isinstance(row.get(FIELD), str):
                raise ValueError(f'{where}: there is no text {FIELD!r} in it; {OBJECT}')
            if unknown := sorted(row.keys() - {FIELD}):
                raise ValueError(f'{where}: the field {unknown[0]!r} is not known; {OBJECT}')
            line = row[FIELD]
        prompts.append(_checked(Prompt(where, line)))
    if not prompts:
        raise ValueError(f'--prompts={file}: there is no prompt in it')
    return prompts


def _checked(prompt: Prompt) -> Prompt:
    try:
        prompt.text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f'{prompt.where}: the prompt is no text ({error})') from error
    return prompt


COMPILING = '/jax/core/compile/'  # begins the names of the events of JAX's compiler


def _run(options: argparse.Namespace, how: Options) -> None:
    prompts = read_prompts(options.prompt, options.prompts)
    mesh = make_mesh(MeshConfig(fsdp=jax.device_count()))
    found = models.open_model(options, mesh)
    tokenizer = models.tokenizer_of(found, options.tokenizer)
    special, stops = split_stops(tokenizer, options.stop)
    if stops and how.beams > 1:
        raise ValueError(
            f'--stop={stops[0]!r} needs --beams=1, not {how.beams}; with beams accepted: a special '
            'token'
        )
    how = dataclasses.replace(how, stop_ids=(*tokenizer.stop_ids, *special))
    asked = _asked(options, found, tokenizer, prompts)
    texts = [Continuation(tokenizer, ids, stops) for ids in asked]
    generator = Generator(
        found.described.model, found.variables(), mesh, batch_tokens=options.batch_tokens
    )

    def ended(i: int, ids: np.ndarray) -> bool:
        return texts[i].stopped(ids)

    with compilation() as compiled:
        began = time.perf_counter()
        made = generator.generate(asked, how, ended if stops else None)
        seconds = time.perf_counter() - began
    ends = [text.upto_stop(ids) for text, ids in zip(texts, made, strict=True)]
    _report(options, prompts, ends)
    tokens, work = sum(map(len, made)), max(seconds - compiled.seconds, 1e-9)
    print(
        f'{tokens:,} new tokens for {len(prompts)} prompts in {work:.2f} s: {tokens / work:,.1f} '
        f'tokens per second, after {compiled.seconds:.2f} s to compile',
        file=sys.stderr,
    )


def _asked(
    options: argparse.Namespace,
    found: models.Model,
    tokenizer: Tokenizer,
    prompts: Sequence[Prompt],
) -> list[np.ndarray]:
    """Token ids of the prompts, and how they begin on the terminal. ValueError for a prompt without
    tokens, and for one that ends beyond the positions with its continuation."""
    prefix, chat = models.prefix(tokenizer, options.bos), models.chat_of(found, options)
    asked = [
        chat.ids(tokenizer, p.text)
        if chat
        else encode_with_bos(tokenizer, p.text, options.bos, special=options.special)
        for p in prompts
    ]
    model, new = found.described.model, options.new_tokens
    for prompt, ids in zip(prompts, asked, strict=True):
        if not len(ids):
            raise ValueError(f'{prompt.where}: the prompt is empty; without BOS it needs a token')
        if model.longest is not None and len(ids) + new > model.longest:
            raise ValueError(
                f'{prompt.where} has {len(ids)} tokens; with --new-tokens={new} they are '
                f'{len(ids) + new}, but {model.describe_position()} positions end at '
                f'{model.longest}'
            )
    if prefix and not chat:
        print(f'prompts begin with {describe_prefix(tokenizer, prefix)}', file=sys.stderr)
    spelling = [prompt.where for prompt in prompts if spells_special(tokenizer, prompt.text)]
    if spelling and not options.special:
        said = 'the token' if chat else 'plain text; with --special it reads the token'
        where = f'{spelling[0]} spells a special token'
        print(f'{where}, which the model reads as {said}', file=sys.stderr)
    return asked


class Spans:
    """Spans of time in which something was traced or compiled, which may lie in each other."""

    def __init__(self) -> None:
        self._found: list[tuple[float, float]] = []

    def add(self, event: str, duration_secs: float, **facts: str | int) -> None:
        """A listener of `jax.monitoring`, which tells of an event when it has just ended."""
        if event.startswith(COMPILING):
            now = time.perf_counter()
            self._found.append((now - duration_secs, now))

    @property
    def seconds(self) -> float:
        """Seconds covered by at least one span."""
        total, reached = 0.0, float('-inf')
        for begin, end in sorted(self._found):
            total += max(end - max(begin, reached), 0.0)
            reached = max(reached, end)
        return total


@contextlib.contextmanager
def compilation() -> Iterator[Spans]:
    """Collects the spans of what is compiled meanwhile."""
    spans = Spans()
    jax.monitoring.register_event_duration_secs_listener(spans.add)
    try:
        yield spans
    finally:
        jax.monitoring.unregister_event_duration_listener(spans.add)


def _report(
    options: argparse.Namespace, prompts: Sequence[Prompt], ends: Sequence[tuple[str, np.ndarray]]
) -> None:
    found = list(zip(prompts, ends, strict=True))
    try:
        for prompt, (text, _) in found:
            if len(found) > 1:
                print(f'--- {prompt.where}')
            print(prompt.text + ('\n' if options.chat else '') + text)
    finally:  # also where nobody reads what is printed
        if options.output:
            rows = (
                {FIELD: prompt.text, 'continuation': text, 'tokens': ids.tolist()}
                for prompt, (text, ids) in found
            )
            write_text(options.output, ''.join(json.dumps(row) + '\n' for row in rows))


if __name__ == '__main__':
    main()
