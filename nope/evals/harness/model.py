"""Adapter from a `Generator` to lm_eval's model interface (0.4.13).

A model reads at most `window` tokens: longer texts are truncated on the left and counted
(`contexts`, `truncated`), and a continuation
that is longer is refused, or with `beyond` read whole. The harness of the papers added no BOS;
`bos` adds one to every text. An empty context is replaced by EOS, which documents follow in
training, or by BOS with `bos`.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from nope.data import Tokenizer, digest, encode_with_bos
from nope.evals.forward import Progress
from nope.evals.generation import Generator, Options
from nope.evals.harness.extra import check_installed
from nope.evals.harness.options import cut, options_of
from nope.evals.samples import SampleLog

# Requests between two writes of the log, on every device.
SCORES_AT_ONCE, TEXTS_AT_ONCE = 1024, 64

Pair = tuple[list[int], list[int]]  # ids of a context, and of what is scored after it
Row = dict[str, Any]
_ids = functools.partial(np.asarray, dtype=np.int32)


def adapter(
    generator: Generator,
    tokenizer: Tokenizer,
    *,
    window: int,
    bos: bool = False,
    beyond: bool = False,
    seed: int = 0,
    log: SampleLog | None = None,
    progress: Progress = iter,
) -> Any:
    """An lm_eval.api.model.TemplateLM, for `lm_eval.simple_evaluate(model=...)`.

    window: tokens that the model reads at most. beyond: a continuation that is longer than the
    window is read whole, after the last token before it. seed: of sampled texts. log: keeps every
    answer, under a digest of what the model was given; what it has is not asked again. It belongs
    to one model.

    ValueError for bos with a tokenizer that has no BOS; ModuleNotFoundError without lm_eval.
    """
    check_installed()
    from lm_eval.api.model import TemplateLM

    if window < 1:
        raise ValueError(f'window is {window}; it must be at least 1')
    encode_with_bos(tokenizer, '', bos)

    class Adapter(Requests, TemplateLM):
        pass

    return Adapter(generator, tokenizer, window, bos, beyond, seed, log, progress)


@dataclasses.dataclass(frozen=True)
class _Text:
    """A text to generate. turn: counts those that are alike, where they are sampled."""

    prompt: tuple[int, ...]
    options: Options
    until: tuple[str, ...]
    turn: int

    @property
    def key(self) -> str:
        return f'text-{self._digest}'

    @property
    def number(self) -> int:
        """32 bits that its samples are drawn by, whichever others it is generated with."""
        return int(self._digest[:8], 16)

    @functools.cached_property
    def _digest(self) -> str:
        return digest.of_json(dataclasses.astuple(self))


class Requests:
    """Requests of the harness, mixed into its model class; the harness names these methods."""

    def __init__(
        self,
        generator: Generator,
        tokenizer: Tokenizer,
        window: int,
        bos: bool,
        beyond: bool,
        seed: int,
        log: SampleLog | None,
        progress: Progress,
    ) -> None:
        super().__init__()
        self.max_length = window
        self._generator = generator
        self._tokenizer = tokenizer
        self._bos = bos
        self._beyond = beyond
        self._seed = seed
        self._answers = _Memory() if log is None else log
        self._progress = progress
        self.contexts, self.truncated = 0, 0  # that were asked, and that lost their beginning

    @property
    def eot_token_id(self) -> int:
        return self._tokenizer.eos_id

    @property
    def prefix_token_id(self) -> int:
        bos_id = self._tokenizer.bos_id
        return bos_id if self._bos and bos_id is not None else self._tokenizer.eos_id

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **options: Any
    ) -> list[int]:
        """Token ids, after BOS where `add_special_tokens` is true or, where it is None, with
        `bos`."""
        begins = self._bos if add_special_tokens is None else add_special_tokens
        return encode_with_bos(self._tokenizer, string, begins).tolist()

    def _loglikelihood_tokens(
        self,
        requests: Sequence[tuple[tuple[str, str], list[int], list[int]]],
        disable_tqdm: bool = False,
        **options: Any,
    ) -> list[tuple[float, bool]]:
        """The log-probability of every continuation in nats, and whether each of its tokens is the
        most likely one, in the order of the requests."""
        return self._scores([self._fitted(*request) for request in requests])

    def loglikelihood_rolling(
        self, requests: Sequence[Any], disable_tqdm: bool = False
    ) -> list[float]:
        """The log-probability of every text in nats: each token once, in windows without overlap
        but the last, which is as long as the others."""
        from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

        texts = []
        for request in requests:
            (text,) = request.args
            ids = self.tok_encode(text, add_special_tokens=False)
            windows = get_rolling_token_windows(
                ids, self.prefix_token_id, max_seq_len=self.max_length, context_len=1
            )
            texts.append([make_disjoint_window(window) for window in windows])
        scores = iter(self._scores([window for windows in texts for window in windows]))
        return [math.fsum(next(scores)[0] for _ in windows) for windows in texts]

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """The text after every context, up to EOS or a string of `until`, neither included.

        ValueError, before anything is generated, where generation_kwargs are not accepted or leave
        no room for a context.
        """
        turns: collections.Counter[_Text] = collections.Counter()
        asked = []
        for request in requests:
            text = self._text(request)
            again = turns[text] if text.options.temperature else 0
            turns[text] += 1
            asked.append(dataclasses.replace(text, turn=again))
        for options in dict.fromkeys(text.options for text in asked):
            alike = {text.key: text for text in asked if text.options == options}
            self._answer(alike, functools.partial(self._generate, options=options), TEXTS_AT_ONCE)
        return [self._answers[text.key]['text'] for text in asked]

    def _fitted(self, texts: tuple[str, str], context: list[int], continuation: list[int]) -> Pair:
        """The last tokens of a pair, of which a model of this window reads all but the last.
        ValueError for a continuation without tokens, and for one that is longer than the window
        unless that is accepted."""
        if not continuation:
            raise ValueError(
                f'the continuation {texts[1]!r} of {texts[0][-40:]!r} has no token of its own'
            )
        count = len(continuation)
        if count > self.max_length and not self._beyond:
            raise ValueError(
                f'the continuation {texts[1][:40]!r}... has {count} tokens; it must not be longer '
                f'than the window, {self.max_length}'
            )
        read = max(self.max_length, count)
        whole = [*(context or [self.prefix_token_id]), *continuation]
        ids = self._last(whole, read + 1)
        return ids[:-count], ids[-count:]

    def _last(self, ids: list[int], count: int) -> list[int]:
        """The last `count` tokens of a request, and a note whether it had more."""
        self.contexts += 1
        self.truncated += len(ids) > count
        return ids[-count:]

    def _scores(self, pairs: Sequence[Pair]) -> list[tuple[float, bool]]:
        keys = ['score-' + digest.of_json(pair) for pair in pairs]
        self._answer(dict(zip(keys, pairs, strict=True)), self._score, SCORES_AT_ONCE)
        return [(self._answers[key]['log_prob'], self._answers[key]['greedy']) for key in keys]

    def _score(self, pairs: Sequence[Pair]) -> list[Row]:
        contexts, continuations = ([_ids(ids) for ids in side] for side in zip(*pairs, strict=True))
        return [
            {
                'log_prob': float(score.log_probs.sum(dtype=np.float64)),
                'greedy': bool(score.greedy.all()),
            }
            for score in self._generator.score(contexts, continuations)
        ]

    def _text(self, request: Any) -> _Text:
        context, arguments = request.args
        try:
            options, until = options_of(
                arguments, stop_ids=self._tokenizer.stop_ids, seed=self._seed
            )
            room = self.max_length - options.new_tokens
            if room < 1:
                raise ValueError(
                    f'generation_kwargs.max_gen_toks is {options.new_tokens}; it must leave room '
                    f'for a context in the window, {self.max_length}'
                )
        except ValueError as error:
            raise ValueError(f'task {request.task_name}: {error}') from error
        ids = self.tok_encode(context) or [self.prefix_token_id]
        return _Text(tuple(self._last(ids, room)), options, until, turn=0)

    def _generate(self, texts: Sequence[_Text], options: Options) -> list[Row]:
        """The texts; a row that has reached a string of its `until` goes no further (beams do)."""

        def ended(i: int, ids: np.ndarray) -> bool:
            made = self._tokenizer.decode(ids)
            return cut(made, texts[i].until) != made

        stops = options.beams == 1 and any(text.until for text in texts)
        prompts = [_ids(text.prompt) for text in texts]
        numbers = [text.number for text in texts]
        found = self._generator.generate(prompts, options, ended if stops else None, numbers)
        return [
            {'text': cut(self._tokenizer.decode(ids), text.until)}
            for ids, text in zip(found, texts, strict=True)
        ]

    def _answer(
        self,
        asked: Mapping[str, Any],
        compute: Callable[[Sequence[Any]], list[Row]],
        at_once: int,
    ) -> None:
        """Computes and keeps the answers that are missing.

        Chunks are the same whatever is there, and computed whole: a request meets the same
        others after a kill.
        """
        keys, size = list(asked), at_once * jax.device_count()
        chunks = [keys[begin : begin + size] for begin in range(0, len(keys), size)]
        lacking = [chunk for chunk in chunks if any(key not in self._answers for key in chunk)]
        for chunk in self._progress(lacking):
            rows = zip(chunk, compute([asked[key] for key in chunk]), strict=True)
            self._answers.append({key: row for key, row in rows if key not in self._answers})


class _Memory(dict[str, Row]):
    """A `SampleLog` that ends with the process."""

    append = dict.update
