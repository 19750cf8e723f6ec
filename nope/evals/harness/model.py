"""Adapter from a `Generator` to lm_eval's model interface (0.4.13).

Texts are read as lm_eval's own models read them: the spelling of a special token is that token
(SentencePiece models read none), and `bos=None` begins with the tokenizer's own prefix. The papers'
harness added no BOS. An empty context, and what is before a whole text that has no prefix, is BOS
where there is one, else EOS.

A model reads at most `window` tokens: longer contexts lose their beginning, but not the prefix as
in lm_eval, and are counted (`contexts`, `truncated`). A continuation that is longer is refused, or
with `beyond` read whole. Before a whole text the prefix stands once and is not scored; lm_eval has
BOS before it too. What a tokenizer puts behind a text, such as EOS, is left out.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from nope.data import Tokenizer, digest, encode_with_bos, prefix_of, split_stops
from nope.data.chat import Chat
from nope.data.continuation import Continuation, cut
from nope.data.prefix import last, start_id
from nope.data.tokenizers import HuggingFaceTokenizer, encode_special
from nope.evals.forward import Progress
from nope.evals.generation import Generator, Options
from nope.evals.harness.options import options_of
from nope.evals.harness.tasks import check_installed
from nope.evals.samples import SampleLog
from nope.runtime.saying import say

# Requests between two writes of the log, on every device.
SCORES_AT_ONCE, TEXTS_AT_ONCE = 1024, 64

Pair = tuple[list[int], list[int]]  # ids of a context, and of what is scored after it
Row = dict[str, Any]
_ids = functools.partial(np.asarray, dtype=np.int32)


def adapter(generator: Generator, tokenizer: Tokenizer, **settings: Any) -> Any:
    """An lm_eval.api.model.TemplateLM, for `evaluate` and `lm_eval.simple_evaluate(model=...)`.
    settings: those of `Requests`. ModuleNotFoundError without lm_eval."""
    check_installed()
    from lm_eval.api.model import TemplateLM

    class Adapter(Requests, TemplateLM):
        pass

    return Adapter(generator, tokenizer, **settings)


@dataclasses.dataclass(frozen=True)
class _TextRequest:
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
    """Requests of the harness, mixed into its model class; the harness names these methods.

    window: tokens that the model reads at most. beyond: a continuation longer than the window is
    read whole, after the last token before it. seed: draws sampled texts. chat: the turns of
    lm_eval's questions. log: keeps every answer, under a digest of the model's input, and nothing
    is asked twice. It belongs to one model.

    bos: as `nope.data.prefix` has it. ValueError for True with a tokenizer that has no BOS, and for
    turns with one that reads no special tokens.
    """

    def __init__(
        self,
        generator: Generator,
        tokenizer: Tokenizer,
        *,
        window: int,
        bos: bool | None = None,
        beyond: bool = False,
        seed: int = 0,
        chat: Chat | None = None,
        log: SampleLog | None = None,
        progress: Progress = iter,
    ) -> None:
        super().__init__()
        if window < 1:
            raise ValueError(f'window is {window}; it must be at least 1')
        self.max_length, self.beyond, self.chat = window, beyond, chat
        self.prefix = prefix_of(tokenizer, bos)
        if chat is not None:
            encode_special(tokenizer, '')
        self._generator = generator
        self._tokenizer = tokenizer
        self._bos = bos
        self._special = isinstance(tokenizer, HuggingFaceTokenizer)
        self._seed = seed
        self._answers = _Memory() if log is None else log
        self._progress = progress
        self.contexts, self.truncated = 0, 0  # that were asked, and that lost their beginning

    @property
    def eot_token_id(self) -> int:
        return self._tokenizer.eos_id

    @property
    def prefix_token_id(self) -> int:
        return start_id(self._tokenizer, self._bos)

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **options: Any
    ) -> list[int]:
        """Token ids, after the prefix unless `add_special_tokens` is False."""
        bos = False if add_special_tokens is False else self._bos
        return encode_with_bos(self._tokenizer, string, bos, special=self._special).tolist()

    @property
    def tokenizer_name(self) -> str:
        return self._tokenizer.fingerprint

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """The turns as text; without the system's where the template refuses them, as lm_eval."""
        assert self.chat is not None  # `evaluate` asks for it with a chat alone
        render = functools.partial(self.chat.render, opened=add_generation_prompt)
        others = [turn for turn in chat_history if turn['role'] != 'system']
        try:
            return render(chat_history)
        except ValueError as error:
            if len(others) == len(chat_history):
                raise
            say(logging.WARNING, f"{error}; turns of the role 'system' are left out")
            return render(others)

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
            first, *others = self.prefix or (self.prefix_token_id,)
            windows = get_rolling_token_windows(
                [*others, *ids], first, max_seq_len=self.max_length, context_len=1
            )
            pairs = [make_disjoint_window(window) for window in windows]
            for context, continuation in pairs[:1]:  # the prefix is not scored
                count = len(others)
                pairs[0] = [*context, *continuation[:count]], continuation[count:]
            texts.append([pair for pair in pairs if pair[1]])
        scores = iter(self._scores([window for windows in texts for window in windows]))
        return [math.fsum(next(scores)[0] for _ in windows) for windows in texts]

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """The text after every context, up to EOS or a string of `until`, neither included.

        ValueError, before anything is generated, where generation_kwargs are not accepted or leave
        no room for a context.
        """
        turns: collections.Counter[_TextRequest] = collections.Counter()
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
        if count > self.max_length and not self.beyond:
            raise ValueError(
                f'the continuation {texts[1][:40]!r}... has {count} tokens; it must not be longer '
                f'than the window, {self.max_length}'
            )
        read = max(self.max_length, count)
        return self._last(context or [self.prefix_token_id], read + 1 - count), continuation

    def _last(self, ids: list[int], count: int) -> list[int]:
        """The last `count` tokens of a context, and a note whether it had more."""
        self.contexts += 1
        self.truncated += len(ids) > count
        return last(_ids(ids), count, self.prefix).tolist()

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

    def _text(self, request: Any) -> _TextRequest:
        context, arguments = request.args
        try:
            options, until = options_of(
                arguments, stop_ids=self._tokenizer.stop_ids, seed=self._seed
            )
            special, until = split_stops(self._tokenizer, until)
            options = dataclasses.replace(options, stop_ids=(*options.stop_ids, *special))
            room = self.max_length - options.new_tokens
            if room < 1:
                raise ValueError(
                    f'generation_kwargs.max_gen_toks is {options.new_tokens}; it must leave room '
                    f'for a context in the window, {self.max_length}'
                )
        except ValueError as error:
            raise ValueError(f'task {request.task_name}: {error}') from error
        ids = self.tok_encode(context) or [self.prefix_token_id]
        return _TextRequest(tuple(self._last(ids, room)), options, until, turn=0)

    def _generate(self, asked: Sequence[_TextRequest], options: Options) -> list[Row]:
        """The texts; a row that has reached a string of its `until` goes no further (beams do)."""

        texts = [Continuation(self._tokenizer, _ids(()), text.until) for text in asked]

        def ended(i: int, ids: np.ndarray) -> bool:
            return texts[i].stopped(ids)

        stops = options.beams == 1 and any(text.until for text in asked)
        prompts = [_ids(text.prompt) for text in asked]
        numbers = [text.number for text in asked]
        found = self._generator.generate(prompts, options, ended if stops else None, numbers)
        made = [text.upto_stop(ids)[0] for text, ids in zip(texts, found, strict=True)]
        # Special tokens may stand within a stop.
        return [{'text': cut(text, of.until)} for text, of in zip(made, asked, strict=True)]

    def _answer(
        self, asked: Mapping[str, Any], compute: Callable[[Sequence[Any]], list[Row]], at_once: int
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
