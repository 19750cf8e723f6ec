"""LongPPL of models whose losses are written down: pooled, resumed, judged by another model."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nope.data import DataConfig
from nope.data.documents import Documents, open_documents
from nope.data.sources import Text
from nope.data.tokenizers import ByteTokenizer, load_tokenizer
from nope.evals import longppl
from nope.evals.longppl import Evaluator, Rule
from nope.evals.samples import SampleLog
from nope.evals.scoring import Score
from nope.records import Records
from tests.data.documents import whole
from tests.data.tokenizers_test import hugging_face_json

BYTES = ByteTokenizer()
RULE = Rule(short=8, stride=4)
SIZES = (40, 20, 33, 12, 47)
SETTINGS: dict[str, Any] = {'budget': 66, 'batch_size': 2}


class Rereader:
    """A model that predicts a token with a loss of `known` where the same one is among those it
    reads before, else with `new`, and writes down what it is asked."""

    def __init__(self, known: float = 0.5, new: float = 4.0, kill_after: int = 10**6) -> None:
        self.known, self.new = known, new
        self.asked: list[tuple[int, int]] = []
        self._kill_after = kill_after

    def score(
        self, prompts: Sequence[np.ndarray], continuations: Sequence[np.ndarray]
    ) -> list[Score]:
        if len(self.asked) >= self._kill_after:
            raise KeyboardInterrupt
        self.asked += [(len(p), len(c)) for p, c in zip(prompts, continuations, strict=True)]
        return [self._score(*each) for each in zip(prompts, continuations, strict=True)]

    def _score(self, prompt: np.ndarray, continuation: np.ndarray) -> Score:
        read = np.concatenate([prompt, continuation])
        losses = [
            self.known if read[t] in read[:t] else self.new for t in range(len(prompt), len(read))
        ]
        n = len(continuation)
        return Score(-np.array(losses, np.float32), np.zeros(n, bool), np.zeros(n, np.int32))


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp('longppl')
    draw = np.random.default_rng(1)
    for split in ('train', 'test'):
        (folder / 'books' / split).mkdir(parents=True)
        for i, size in enumerate(SIZES):
            text = draw.integers(97, 123, size).astype(np.uint8).tobytes()
            (folder / 'books' / split / f'{i}.txt').write_bytes(text)
    content = json.loads(hugging_face_json(['<s>', '</s>']))
    content['model']['merges'] = []
    (folder / 'tokenizer.json').write_text(json.dumps(content))
    return folder


@pytest.fixture(scope='module')
def documents(folder: pathlib.Path) -> Documents:
    config = DataConfig((Text(str(folder / 'books')),))
    return open_documents(config, split='test', cache=folder, bos=False)


def run(documents: Documents, log: pathlib.Path, model: Any = None, **changes: Any) -> Records:
    settings = {'lengths': (16, 32), 'rule': RULE, **SETTINGS, **changes}
    return longppl.run(
        model or Rereader(), BYTES, documents, log=SampleLog(log / 'samples.jsonl'), **settings
    )


def direct(tokens: np.ndarray, model: Rereader) -> tuple[list[float], list[int]]:
    """Loss of every token but the first, and which are key, token by token."""
    full = [model.known if tokens[t] in tokens[:t] else model.new for t in range(1, len(tokens))]
    keys = []
    for t in range(RULE.short, len(tokens)):
        begin = (t - RULE.short) // RULE.stride * RULE.stride
        short = model.known if tokens[t] in tokens[begin:t] else model.new
        if short - full[t - 1] > 2 and full[t - 1] < 2:
            keys.append(t)
    return full, keys


def test_key_tokens_of_all_documents_count_alike(
    documents: Documents, tmp_path: pathlib.Path
) -> None:
    found = run(documents, tmp_path)
    for index, length in enumerate((16, 32)):
        taken = [d for d in whole(documents) if len(d) >= length][: 66 // length]
        results = [direct(d[:length], Rereader()) for d in taken]
        losses = np.concatenate([full for full, _ in results])
        keys = np.concatenate([np.array(full)[np.array(k) - 1] for full, k in results if k])
        assert found['documents'][index] == len(taken)
        assert found['tokens'][index] == len(losses)
        assert found['key_tokens'][index] == len(keys) > 0
        np.testing.assert_allclose(found['loss'][index], losses.mean(), rtol=1e-6)
        np.testing.assert_allclose(found['longppl'][index], np.exp(keys.mean()), rtol=1e-6)
    np.testing.assert_array_equal(found['perplexity'], np.exp(found['loss']))
    assert found.along('length', 2).tolist() == [16, 32]
    assert dict(found.attributes) == {
        'evaluation': 'longppl',
        'short': 8,
        'stride': 4,
        'gain': 2.0,
        'ceiling': 2.0,
        'scored': 66,
        'evaluator': 'itself',
        'bos': False,
        'corpus': 'books',
    }


def test_another_model_of_the_same_tokens_says_which_are_key(
    documents: Documents, tmp_path: pathlib.Path
) -> None:
    flat = Rereader(known=3.0, new=3.0)  # of its own it has no key token
    own = run(documents, tmp_path / 'own', flat)
    assert own['key_tokens'].tolist() == [0, 0]
    assert np.isnan(own['longppl']).all()
    judge = Evaluator(Rereader(), BYTES, 'the judge')
    found = run(documents, tmp_path / 'judged', flat, evaluator=judge)
    np.testing.assert_array_equal(
        found['key_tokens'], run(documents, tmp_path / 'judge')['key_tokens']
    )
    np.testing.assert_allclose(found['longppl'], np.exp(3.0), rtol=1e-6)
    assert found.attributes['evaluator'] == 'the judge'


def test_key_tokens_cross_over_to_another_tokenizer_by_their_characters(
    documents: Documents, folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Letters without merges: the other tokenizer's tokens are the same letters under other ids."""
    other = load_tokenizer(str(folder / 'tokenizer.json'))
    first, *_ = whole(documents)
    text = BYTES.decode(first)
    assert len(other.encode(text)) == len(text)
    assert other.encode(text).tolist() != first.tolist()
    found = run(documents, tmp_path / 'a', evaluator=Evaluator(Rereader(), other, 'other'))
    same = run(documents, tmp_path / 'b')
    for name in ('key_tokens', 'longppl', 'loss', 'tokens'):
        np.testing.assert_array_equal(found[name], same[name])


def test_an_evaluator_with_another_tokenizer_begins_by_its_own_files(
    documents: Documents, folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """The documents have no prefix, the evaluator's texts and short contexts begin with <s>."""
    content = json.loads((folder / 'tokenizer.json').read_text())
    first = {'SpecialToken': {'id': '<s>', 'type_id': 0}}
    then = {'Sequence': {'id': 'A', 'type_id': 0}}
    identity = next(t['id'] for t in content['added_tokens'] if t['content'] == '<s>')
    content['post_processor'] = {
        'type': 'TemplateProcessing',
        'single': [first, then],
        'pair': [first, then],
        'special_tokens': {'<s>': {'id': '<s>', 'ids': [identity], 'tokens': ['<s>']}},
    }
    (tmp_path / 'tokenizer.json').write_text(json.dumps(content))
    begins = load_tokenizer(str(tmp_path / 'tokenizer.json'))
    judge, model = Rereader(), Rereader()
    run(documents, tmp_path / 'a', model, evaluator=Evaluator(judge, begins, 'begins'))
    assert model.asked[0] == (1, 15) and judge.asked[0] == (1, 16)


def test_a_killed_measurement_goes_on_and_measures_nothing_twice(
    documents: Documents, tmp_path: pathlib.Path
) -> None:
    whole = Rereader()
    expected = run(documents, tmp_path / 'whole', whole)
    killed = Rereader(kill_after=len(whole.asked) // 2)
    with pytest.raises(KeyboardInterrupt):
        run(documents, tmp_path / 'killed', killed)
    rest = Rereader()
    found = run(documents, tmp_path / 'killed', rest)
    assert 0 < len(rest.asked) < len(whole.asked)
    for name in expected.measures:
        np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'lengths': (8,)}, 'length 8: it must be above that of the short context, 8'),
        ({'lengths': (16, 16)}, 'lengths .* each of them once'),
        ({'lengths': ()}, 'lengths .* one or more'),
        ({'lengths': (48,)}, 'length 48: no document has so many tokens; the longest of 5 has 47'),
        ({'budget': 15}, 'budget 15: less than one text of 16 tokens'),
    ],
)
def test_what_cannot_be_measured_is_refused_first(
    documents: Documents, tmp_path: pathlib.Path, changes: dict, message: str
) -> None:
    model = Rereader()
    with pytest.raises(ValueError, match=message):
        run(documents, tmp_path, model, **changes)
    assert not model.asked


def test_a_loss_that_is_not_finite_is_no_result(
    documents: Documents, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(ValueError, match=r'the loss of the text 16/0 .* is nan'):
        run(documents, tmp_path, Rereader(known=float('nan')))
