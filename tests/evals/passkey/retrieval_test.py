"""The paper's prompts token for token, and a model's answers to them."""

from __future__ import annotations

import json
import pathlib
import re

import numpy as np
import pytest

from nope.data import Tokenizer
from nope.data.templates import BRIEF, PAPER, Template
from nope.evals import passkey
from nope.evals.passkey import keys
from nope.evals.passkey.keys import PieceCounts
from nope.evals.passkey.retrieval import answer_ids, piece_counts, plan
from nope.evals.samples import SampleLog
from tests.evals.passkey import fakes
from tests.evals.passkey.fakes import BYTES, Model, Pieces
from tests.vectors import VECTORS

COUNTS = VECTORS['passkey_token_counts_llama_tokenizer']
LLAMA = Pieces(fakes.llama_pieces)


@pytest.fixture(scope='module', params=['bytes', 'sentencepiece'])
def tokenizer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Tokenizer:
    if request.param == 'bytes':
        return BYTES
    return fakes.sentencepiece_tokenizer(tmp_path_factory.mktemp('tokenizer'))


def test_vector_pieces_measured_alone() -> None:
    assert piece_counts(PAPER, LLAMA, '47194', bos=True) == PieceCounts(
        task=COUNTS['task_with_bos'],
        filler=COUNTS['garbage_measured_alone'],
        info=COUNTS['info_measured_with_bos'],
        question=COUNTS['question_measured_alone'],
        answer=COUNTS['key'],
    )


@pytest.mark.parametrize('max_length', [4096, 32768])
def test_vector_real_tokens_of_a_length(max_length: int) -> None:
    made = plan(PAPER, LLAMA, max_length, bos=True, tests=1)
    known = COUNTS['prompt_tokens_for_nominal_length']
    checked = 0
    for question in {q.length: q for q in made.questions}.values():
        expected = known.get(str(question.length))
        if expected is not None:
            assert len(made.prompt(question).ids) == expected
            checked += 1
    assert checked == 5  # max_length and its half, quarter, eighth and sixteenth


@pytest.mark.parametrize('bos', [True, False])
@pytest.mark.parametrize('template', [PAPER, BRIEF], ids=lambda template: template.name)
@pytest.mark.parametrize('tokenizer', [LLAMA, BYTES], ids=['llama', 'bytes'])
def test_every_prompt_of_a_length_has_the_tokens_of_its_pieces(
    tokenizer: Tokenizer, template: Template, bos: bool
) -> None:
    made = plan(template, tokenizer, 1600, bos=bos, tests=2)
    alone = piece_counts(template, tokenizer, '12345', bos)
    assert alone.task - piece_counts(template, tokenizer, '12345', False).task == bos
    texts = [template.prompt('12345', repeats, 0) for repeats in (0, 1)]
    none, one = (len(tokenizer.encode(text)) + bos for text in texts)
    for question in made.questions:
        expected = none + keys.repeats(question.length, alone) * (one - none)
        assert len(made.prompt(question).ids) == expected


def test_a_prompt_hides_its_key_at_its_position(tokenizer: Tokenizer) -> None:
    made = plan(PAPER, tokenizer, 4800, bos=tokenizer.bos_id is not None, tests=1)
    for question in made.questions:
        ids = made.prompt(question).ids
        text = tokenizer.decode(ids)
        assert text.endswith(PAPER.question)
        counts = piece_counts(PAPER, tokenizer, question.key, made.bos)
        before, after = keys.fillers(question.length, question.position, counts)
        assert text == PAPER.prompt(question.key, before, after)
        assert ids.dtype == np.int32
        assert len(ids) + counts.answer <= question.length
        if made.bos:
            assert ids[0] == tokenizer.bos_id
            assert tokenizer.bos_id not in ids[1:]


def test_the_answer_is_what_follows_the_prompt(tokenizer: Tokenizer) -> None:
    made = plan(PAPER, tokenizer, 4800, bos=False, tests=2)
    for question in made.questions[-40:]:
        ids, answer = made.prompt(question)
        text = tokenizer.decode(ids) + ' ' + question.key
        assert np.concatenate([ids, answer]).tolist() == tokenizer.encode(text).tolist()
        assert answer.dtype == np.int32


def test_the_answer_of_a_tokenizer_with_a_space_in_front_is_the_key_alone(
    tmp_path: pathlib.Path,
) -> None:
    trained = fakes.sentencepiece_tokenizer(tmp_path)
    for tokenizer in (LLAMA, trained):
        answer = answer_ids(PAPER, tokenizer, '47194')
        assert answer.tolist() == tokenizer.encode('47194').tolist()
        assert len(answer) == COUNTS['key']


def test_an_answer_that_shares_a_token_with_the_question_is_refused() -> None:
    tokenizer = Pieces(lambda text: re.findall(r'is \d|.|\n', text), fingerprint='greedy')
    with pytest.raises(ValueError, match=r"fingerprint greedy.*pass key is' with .*' 47194'"):
        answer_ids(PAPER, tokenizer, '47194')


def test_a_length_with_room_for_no_filler_is_kept() -> None:
    counts = piece_counts(PAPER, BYTES, '12345', True)
    least = counts.task + counts.info + counts.question + counts.answer
    (shortest,) = {q.length for q in plan(PAPER, BYTES, 16 * least, bos=True).questions[-10:]}
    assert shortest == least
    lengths = {q.length for q in plan(PAPER, BYTES, 16 * (least - 1), bos=True).questions}
    assert min(lengths) == 2 * (least - 1)


def test_a_tokenizer_without_begin_mark_is_refused_with_the_switch() -> None:
    with pytest.raises(ValueError, match='bos is True; accepted: False or None; the tok'):
        plan(PAPER, Pieces(list, bos_id=None), 4096, bos=True)


def test_a_prompt_longer_than_its_room_is_refused_before_anything_runs() -> None:
    def cut(text: str) -> list[str]:  # double from the second filler on
        once, sign, rest = text.partition(PAPER.filler)
        return [*once, *sign, *rest, *rest]

    with pytest.raises(ValueError, match=r'prompt 8192/0\.\d/0 has \d+ tokens, more than the \d+'):
        plan(PAPER, Pieces(cut), 8192, bos=True, tests=1)


def keys_read(text: str) -> str:
    return ' ' + re.findall(r'Key: (\d+)', text)[0]


def short_plan(tests: int = 2) -> passkey.PasskeyPlan:
    return plan(BRIEF, BYTES, 1600, seed=3, bos=True, tests=tests)


def test_records_of_a_model_that_reads_the_first_half(tmp_path: pathlib.Path) -> None:
    def first_half(text: str) -> str:
        return keys_read(text) if text.index('Key: ') < len(text) / 2 else ' 99999'

    made, log = short_plan(), SampleLog(tmp_path / 'samples.jsonl')
    records = passkey.run(Model(BYTES, first_half), made, log, window=400)
    assert records.attributes == {
        'evaluation': 'passkey',
        'max_length': 1600,
        'plan_seed': 3,
        'template': 'brief',
        'tests': 2,
        'bos': True,
        'window': 400,
    }
    assert records['accuracy'].shape == (16, 10)
    np.testing.assert_array_equal(records['accuracy'][-1], [1] * 5 + [0] * 5)
    assert records.coordinates['length'].tolist() == list(range(100, 1601, 100))
    tokens = {q.length: len(made.prompt(q).ids) for q in made.questions}
    assert records['tokens'].tolist() == [tokens[n] for n in range(100, 1601, 100)]
    row = log['1600/0.9/1']
    assert {k: row[k] for k in ('correct', 'length', 'depth', 'test', 'tokens')} == {
        'correct': False,
        'length': 1600,
        'depth': 0.9,
        'test': 1,
        'tokens': tokens[1600],
    }
    json.dumps(dict(records.attributes))


@pytest.mark.parametrize(
    ('change', 'matched'),
    [(lambda key: key, 6), (lambda key: f'{key[:3]}x{key[4:]}', 3), (lambda key: '-' + key[1:], 0)],
    ids=['right', 'a wrong digit', 'wrong from the start'],
)
def test_an_answer_is_right_when_all_of_it_is(tmp_path: pathlib.Path, change, matched: int) -> None:
    made, log = short_plan(tests=1), SampleLog(tmp_path / 'samples.jsonl')
    model = Model(BYTES, lambda text: change(keys_read(text)))
    records = passkey.run(model, made, log, window=400)
    assert {log[q.name]['matched'] for q in made.questions} == {matched}
    assert np.unique(records['accuracy']).tolist() == [float(matched == 6)]


def test_the_model_is_asked_the_plan_longest_first(tmp_path: pathlib.Path) -> None:
    made = short_plan()
    model = Model(BYTES, keys_read)
    passkey.run(model, made, SampleLog(tmp_path / 'samples.jsonl'), window=400)
    expected = [made.prompt(q).ids.tolist() for q in made.questions]
    assert [ids.tolist() for ids in model.asked] == expected
    assert [len(ids) for ids in expected] == sorted(map(len, expected), reverse=True)


def test_chosen_lengths_are_asked_and_recorded_in_place_of_the_plan(tmp_path: pathlib.Path) -> None:
    made = plan(BRIEF, BYTES, 512, seed=3, bos=False, tests=2, lengths=(128, 512))
    records = passkey.run(
        Model(BYTES, keys_read), made, SampleLog(tmp_path / 'samples.jsonl'), window=128
    )
    assert records.coordinates['length'].tolist() == [128, 512]
    np.testing.assert_array_equal(records['accuracy'], np.ones((2, 10)))
    assert np.all(records['tokens'] + 6 <= [128, 512])
    for question in made.questions:
        assert question.key in BYTES.decode(made.prompt(question).ids)


def test_a_chosen_length_without_room_is_refused_with_what_a_prompt_takes() -> None:
    least = passkey.shortest(BRIEF, BYTES, bos=False)
    assert least == BRIEF.shortest
    plan(BRIEF, BYTES, 256, bos=False, tests=1, lengths=(least, 256))
    with pytest.raises(ValueError, match=rf'lengths are \({least - 1}, 256\); .* take {least} tok'):
        plan(BRIEF, BYTES, 256, bos=False, tests=1, lengths=(least - 1, 256))
