"""Exact match of one pass is that of greedy decoding; what the log keeps; what is asked."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest

from nope import sharding
from nope.data import TaskData
from nope.data.tasks import Sizes, SteppedTask, named, scratchpad, symbols, training_batches
from nope.data.tasks.scratchpad import FULL, MINIMAL
from nope.evals import exact_match
from nope.evals.exact_match import Asked, ask
from nope.evals.generation import Generator, Options
from nope.evals.samples import SampleLog
from nope.evals.scoring import Score
from nope.model import ModelConfig
from nope.training.optim import OptimizerConfig
from nope.training.state import fresh_state
from nope.training.step import make_step
from tests import tiny

LIMIT, WIDTH = 60, 26
PADDED_LIMIT, PADDED_WIDTH = 160, 60
COPYING = TaskData(named('cmc', longest=3, symbols=symbols.closed(3)), Sizes(60, 24, 18))
PARITY = TaskData(named('parity', longest=4, shortest=2), Sizes(60, 24, 20))
SUMS = TaskData(named('summation', longest=3, shortest=2), Sizes(20, 20, 6))
BITS = TaskData(named('parity', longest=2, shortest=1, scratchpad=MINIMAL), Sizes(60, 24, 20))
PADS = TaskData(named('summation', longest=2, shortest=2, scratchpad=FULL), Sizes(20, 12, 6))


@functools.cache
def half_trained(data: TaskData, width: int, steps: int) -> Generator:
    """A model after some steps: right now and then."""
    model: ModelConfig = tiny.model(
        layers=1, vocab_size=data.load_tokenizer().vocab_size, attention=None
    )
    optimizer = OptimizerConfig(learning_rate=1e-2, decay_steps=1000)
    state, frozen = fresh_state(tiny.variables(model), optimizer, tiny.mesh())
    step = jax.jit(make_step(model, optimizer))
    batches = training_batches(data, length=width, batch_size=16, seed=0, start=0)
    with sharding.use(tiny.mesh()), jax.numpy_dtype_promotion('standard'):  # of a gradient
        for _ in range(steps):
            batch = jax.tree.map(lambda array: array[None], next(batches))
            state, _ = step(state, frozen, batch)
    return Generator(model, {**frozen, **state.trained}, tiny.mesh(), batch_tokens=4096)


def run(generator: Any, asked: Asked, folder: pathlib.Path) -> tuple[Any, list[dict[str, Any]]]:
    """The records, and the rows of the log in the order of the questions."""
    log = SampleLog(folder / 'samples.jsonl')
    found = exact_match.run(generator, asked, log)
    return found, [log[question.name] for question in asked.questions]


@pytest.mark.parametrize(
    ('data', 'width', 'limit', 'steps'),
    [
        (COPYING, WIDTH, LIMIT, 40),
        (PARITY, WIDTH, LIMIT, 40),
        (BITS, PADDED_WIDTH, PADDED_LIMIT, 80),
    ],
    ids=['whole targets', 'final answers', 'scratchpads'],
)
def test_one_pass_decides_as_greedy_decoding_does(
    data: TaskData, width: int, limit: int, steps: int, tmp_path: pathlib.Path
) -> None:
    generator, asked = half_trained(data, width, steps), ask(data, None, limit)
    found, rows = run(generator, asked, tmp_path)
    prompts = [asked.ids(question).prompt for question in asked.questions]
    new_tokens = limit - max(map(len, prompts))
    options = Options(new_tokens=new_tokens, stop_ids=(asked.tokenizer.eos_id,))
    decoded = [asked.tokenizer.decode(ids) for ids in generator.generate(prompts, options)]
    for question, row, text in zip(asked.questions, rows, decoded, strict=True):
        assert row['correct'] == data.task.form.matches(text, question.example.target)
        made = ' '.join(row['prediction'].split())  # tokenizers join the blanks of scratchpads
        assert text.startswith(made)
        assert not row['whole'] or text == made
    right = [row['correct'] for row in rows]
    assert 0 < sum(right) < len(right), 'it takes both to tell'
    assert found.attributes['beyond'] == np.mean(
        [r['correct'] for r in rows if r['split'] == 'test']
    )


@pytest.mark.parametrize('data', [PARITY, BITS], ids=['final answers', 'scratchpads'])
def test_an_example_beyond_the_limit_is_kept_and_wrong(
    data: TaskData, tmp_path: pathlib.Path
) -> None:
    """As where decoding ends at the limit; the others are answered as under a larger one."""
    every = ask(data, None, PADDED_LIMIT)
    lengths = sorted({every.ids(question).length + 1 for question in every.questions})
    asked = ask(data, None, lengths[-2], keep_long=True)
    written = Written(asked, dict(_right(every)).__getitem__)
    found, rows = run(written, asked, tmp_path)
    long = [every.ids(question).length + 1 > lengths[-2] for question in asked.questions]
    assert 0 < sum(long) == found.attributes['too_long'] < len(long)
    assert [row['correct'] for row in rows] == [not beyond for beyond in long]
    assert {row['prediction'] for row, beyond in zip(rows, long, strict=True) if beyond} == {''}
    assert written.scored == len(long) - sum(long)
    with pytest.raises(ValueError, match=f'limit is {lengths[0] - 1}'):
        ask(data, None, lengths[0] - 1, keep_long=True)


def _right(asked: Asked) -> list[tuple[str, str]]:
    """Prompts as they are read again, and their targets."""
    tokenizer = asked.tokenizer
    return [(tokenizer.decode(asked.ids(q).prompt), q.example.target) for q in asked.questions]


@pytest.mark.parametrize('data', [COPYING, PARITY], ids=['whole targets', 'final answers'])
def test_a_model_may_write_ids_that_have_no_text(data: TaskData, tmp_path: pathlib.Path) -> None:
    """It may have more than its tokenizer, and untrained writes them."""
    more = data.load_tokenizer().vocab_size + 500
    model: ModelConfig = tiny.model(layers=1, vocab_size=more, attention=None)
    generator = Generator(model, tiny.variables(model), tiny.mesh(), batch_tokens=4096)
    asked = ask(data, 2, LIMIT)
    prompts = [asked.ids(question).prompt for question in asked.questions]
    made = generator.generate(prompts, Options(new_tokens=4))
    assert max(ids.max() for ids in made) >= data.load_tokenizer().vocab_size
    _, rows = run(generator, asked, tmp_path)
    assert not any(row['correct'] for row in rows)


def test_sequence_accuracy_is_the_share_of_targets_that_decoding_writes() -> None:
    generator, asked = half_trained(PARITY, WIDTH, 40), ask(PARITY, None, LIMIT)
    examples = exact_match.validation(PARITY, 1.0)
    options = Options(new_tokens=LIMIT - 40, stop_ids=(asked.tokenizer.eos_id,))
    made = generator.generate([example.prompt for example in examples], options)
    right = [list(ids) == list(x.target[:-1]) for ids, x in zip(made, examples, strict=True)]
    assert 0 < sum(right) < len(right), 'it takes both to tell'
    assert exact_match.sequence_accuracy(generator, examples) == np.mean(right)


class Written:
    """Model that writes what a function of the prompt says, and EOS."""

    def __init__(self, asked: Asked, answer: Callable[[str], str]) -> None:
        self._tokenizer = asked.tokenizer
        self._answer = answer
        self.scored = self.generated = 0
        self.rooms: set[int] = set()

    def _ids(self, prompt: np.ndarray) -> np.ndarray:
        made = self._tokenizer.encode(self._answer(self._tokenizer.decode(prompt)))
        return np.append(made, self._tokenizer.eos_id)

    def score(
        self, prompts: Sequence[np.ndarray], targets: Sequence[np.ndarray], written: bool
    ) -> list[Score]:
        assert written  # as decoding would write the targets
        self.scored += len(prompts)
        return [self._score(*pair) for pair in zip(prompts, targets, strict=True)]

    def _score(self, prompt: np.ndarray, target: np.ndarray) -> Score:
        # Behind a token that it would not have written it is lost: EOS.
        made = np.full(len(target), self._tokenizer.eos_id, np.int32)
        own = self._ids(prompt)[: len(target)]
        held = np.logical_and.accumulate(own == target[: len(own)])
        until = int(held.sum()) + 1
        made[:until] = own[:until]
        return Score(np.zeros(len(target), np.float32), made == target, made)

    def generate(self, prompts: Sequence[np.ndarray], options: Options) -> list[np.ndarray]:
        self.generated += len(prompts)
        self.rooms.add(options.new_tokens)
        return [self._ids(prompt)[:-1][: options.new_tokens] for prompt in prompts]


def test_sequence_accuracy_counts_the_targets_that_are_written_to_their_eos() -> None:
    tokenizer = PARITY.load_tokenizer()
    by_prompt = {tokenizer.decode(x.prompt): x for x in exact_match.validation(PARITY, 1.0)}
    endless = [*by_prompt][::2]  # one token more in the place of EOS

    def answer(prompt: str) -> str:
        return tokenizer.decode(by_prompt[prompt].target) + ' .' * (prompt in endless)

    written: Any = Written(ask(PARITY, None, LIMIT), answer)
    assert exact_match.sequence_accuracy(written, [*by_prompt.values()]) == 0.5


def total(prompt: str) -> int:
    return sum(int(c) for c in prompt if c.isdigit()) % 10


def test_another_text_with_the_same_answer_is_right(tmp_path: pathlib.Path) -> None:
    asked = ask(SUMS, None, LIMIT)
    model = Written(asked, lambda prompt: f'The answer is 0 {total(prompt)} .')
    found, rows = run(model, asked, tmp_path)
    wrong = [row for row in rows if row['reference'] != 'The answer is 0 .']
    assert found.attributes['inside'] == found.attributes['beyond'] == 1.0
    assert model.generated >= len(wrong) > 0 and all(row['matched'] == 3 for row in wrong)


def padded(prompt: str, wrong: int = 0) -> str:
    """The right target of a sum with its full scratchpad, whose last output is off by `wrong`."""
    task = PADS.task
    assert isinstance(task, SteppedTask)
    steps = task.steps(prompt.removesuffix('[SEP]').strip())
    output = str(int(steps[-1].output.replace(' ', '')) + wrong)
    steps[-1] = dataclasses.replace(steps[-1], output=' '.join(output))
    return scratchpad.write(steps, FULL, f'The answer is {total(prompt)} .')


def test_with_a_scratchpad_the_final_answer_alone_counts(tmp_path: pathlib.Path) -> None:
    asked = ask(PADS, None, PADDED_LIMIT)
    found, rows = run(Written(asked, lambda prompt: padded(prompt, 1)), asked, tmp_path)
    assert found.attributes['beyond'] == found.attributes['inside'] == 1.0
    assert found.attributes['scratchpad'] == 'full' and found.attributes['right_unparsed'] == 0
    assert set(found['parsed']) == {1.0} and set(found['reasoned']) == {0.0}
    for row in rows:
        assert (row['steps'], row['right_steps']) == (row['length'], row['length'] - 1)
        assert row['problem'].startswith(f'step {row["length"]}: output is')
    right, _ = run(Written(asked, padded), asked, tmp_path / 'right')
    assert set(right['reasoned']) == {1.0}


def test_answers_have_the_same_room_whichever_are_asked_first(tmp_path: pathlib.Path) -> None:
    asked = ask(PADS, None, PADDED_LIMIT)
    first, _ = run(Written(asked, lambda prompt: padded(prompt, 1)), asked, tmp_path)
    path = tmp_path / 'samples.jsonl'
    lines = path.read_text().splitlines()
    shortest = [line for line in lines if json.loads(line)['length'] == 2]
    path.write_text(''.join(f'{line}\n' for line in lines if line not in shortest))
    model = Written(asked, lambda prompt: padded(prompt, 1))
    again, _ = run(model, asked, tmp_path)
    assert model.scored == len(shortest) < len(lines)
    assert model.rooms == {asked.room}
    assert np.array_equal(first['reasoned'], again['reasoned'])


def test_accuracy_is_by_length(tmp_path: pathlib.Path) -> None:
    asked = ask(SUMS, 2, LIMIT)
    even = Written(
        asked, lambda p: f'The answer is {total(p) if p.count("+") % 2 else (total(p) + 1) % 10} .'
    )
    found, rows = run(even, asked, tmp_path)
    assert rows[0]['prompt'].startswith('Compute: ')
    assert found.coordinates['length'].tolist() == [2, 3, 4, 5, 6]
    assert found['accuracy'].tolist() == [1, 0, 1, 0, 1]
    assert found['samples'].tolist() == [2, 2, 2, 2, 2]
    assert found.attributes['inside'] == 0.5 and found.attributes['beyond'] == pytest.approx(2 / 3)


def test_examples_beyond_the_limit_are_named() -> None:
    asked = ask(SUMS, None, LIMIT)
    longest = max(asked.ids(question).length + 1 for question in asked.questions)
    ask(SUMS, None, longest)
    with pytest.raises(ValueError, match=rf'limit is {longest - 1}; the test example .* length 6'):
        ask(SUMS, None, longest - 1)
