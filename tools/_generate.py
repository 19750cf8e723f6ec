"""Work of generate.py, behind its flags: model, prompts, continuations, speed."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
import time
from collections.abc import Iterator, Sequence

import _flags
import _models
import _prompts
import jax
import numpy as np

from nope.checkpoints.errors import CheckpointError
from nope.data import Continuation, Tokenizer, encode_with_bos, spells_special, split_stops
from nope.data.prefix import describe_prefix
from nope.evals.generation import Generator, Options
from nope.model import ModelConfig
from nope.runtime.files import write_text
from nope.sharding import MeshConfig, make_mesh

COMPILING = '/jax/core/compile/'  # begins the names of the events of JAX's compiler


def main(options: argparse.Namespace, early_stopping: bool | str) -> None:
    """Exits with 1 and a message for what cannot be done. early_stopping: of beam search."""
    with _flags.ending(ValueError, OSError, CheckpointError):
        _run(options, early_stopping)


def _run(options: argparse.Namespace, early_stopping: bool | str) -> None:
    how = _how(options, early_stopping)
    prompts = _prompts.read(options.prompt, options.prompts)
    mesh = make_mesh(MeshConfig(fsdp=jax.device_count()))
    found = _models.open_model(options, mesh)
    tokenizer = _models.tokenizer_of(found, options.tokenizer)
    special, stops = split_stops(tokenizer, options.stop)
    if stops and how.beams > 1:
        raise ValueError(
            f'--stop={stops[0]!r} needs --beams=1, not {how.beams}; with beams accepted: a special '
            'token'
        )
    how = dataclasses.replace(how, stop_ids=(*tokenizer.stop_ids, *special))
    prefix, chat = _models.prefix(tokenizer, options.bos), _models.chat_of(found, options)
    asked = [
        chat.ids(tokenizer, p.text)
        if chat
        else encode_with_bos(tokenizer, p.text, options.bos, special=options.special)
        for p in prompts
    ]
    for prompt, ids in zip(prompts, asked, strict=True):
        _check_length(prompt.where, len(ids), how.new_tokens, found.described.model)
    if prefix and not chat:
        print(f'prompts begin with {describe_prefix(tokenizer, prefix)}', file=sys.stderr)
    if not (options.special or chat):
        _warn_of_special(tokenizer, prompts)
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
    options: argparse.Namespace,
    prompts: Sequence[_prompts.Prompt],
    ends: Sequence[tuple[str, np.ndarray]],
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
                {_prompts.FIELD: prompt.text, 'continuation': text, 'tokens': ids.tolist()}
                for prompt, (text, ids) in found
            )
            write_text(options.output, ''.join(json.dumps(row) + '\n' for row in rows))


def _how(options: argparse.Namespace, early_stopping: bool | str) -> Options:
    return Options(
        new_tokens=options.new_tokens,
        beams=options.beams,
        length_penalty=options.length_penalty,
        early_stopping=early_stopping,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        seed=options.seed,
    )


def _warn_of_special(tokenizer: Tokenizer, prompts: Sequence[_prompts.Prompt]) -> None:
    spelling = [prompt.where for prompt in prompts if spells_special(tokenizer, prompt.text)]
    if spelling:
        print(
            f'{spelling[0]} spells a special token, which the model reads as plain text; with '
            '--special it reads the token',
            file=sys.stderr,
        )


def _check_length(where: str, tokens: int, new_tokens: int, model: ModelConfig) -> None:
    if not tokens:
        raise ValueError(f'{where}: the prompt is empty; without BOS it needs a token')
    longest = model.longest
    if longest is not None and tokens + new_tokens > longest:
        raise ValueError(
            f'{where} has {tokens} tokens; with --new-tokens={new_tokens} they are '
            f'{tokens + new_tokens}, but {model.describe_position()} positions end at {longest}'
        )
