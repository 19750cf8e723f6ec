from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import re
from typing import Any

import pytest

from nope.data.tokenizers import ByteTokenizer
from nope.evals.ruler import FREE, TASKS, Corpora, RulerPlan, prompts
from nope.evals.ruler.fitting import Sample
from nope.evals.ruler.needles import DEPTHS
from tests.evals.ruler.pieces import pieces, vocabulary, write_files

WORDS = vocabulary()


@pytest.fixture(scope='module')
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Corpora:
    return Corpora(write_files(tmp_path_factory.mktemp('files')))


def plan(task: str, length: int = 2048, **changes: Any) -> RulerPlan:
    settings: dict[str, Any] = {'samples': 3, 'words': WORDS, **changes}
    return RulerPlan(settings.pop('tokenizer', pieces()), (task,), (length,), **settings)


def made(task: str, length: int = 2048, **changes: Any) -> list[Sample]:
    return plan(task, length, **changes).prompts(length, task)


# Of the first five prompts that NVIDIA/RULER c3f5e3b makes with this tokenizer and seed 42.
PUBLISHED = json.loads(pathlib.Path(__file__).with_name('published.json').read_text())


@pytest.mark.parametrize('name', [name for name in PUBLISHED if not TASKS[name].needs_words])
def test_prompts_are_the_published_ones(name: str) -> None:
    assert digests(name) == PUBLISHED[name]


@pytest.mark.parametrize('name', [name for name in PUBLISHED if TASKS[name].needs_words])
def test_prompts_of_english_words_are_the_published_ones(name: str) -> None:
    assert digests(name, words=None) == PUBLISHED[name]


def digests(name: str, **changes: Any) -> dict[str, str]:
    return {
        str(length): hashlib.sha256(
            json.dumps(
                [[s.text, s.answers] for s in made(name, length, samples=5, **changes)]
            ).encode()
        ).hexdigest()
        for length in (2048, 4096)
    }


@pytest.mark.parametrize('tokenizer', [pieces(), ByteTokenizer()], ids=['pieces', 'bytes'])
@pytest.mark.parametrize('name', TASKS)
def test_prompt_and_answer_keep_within_the_length(
    name: str, tokenizer: Any, corpora: Corpora
) -> None:
    length = 8192
    for sample in made(name, length, tokenizer=tokenizer, corpora=corpora):
        assert sample.tokens == len(tokenizer.encode(sample.text))
        assert length / 3 < sample.tokens + TASKS[name].budget <= length


@pytest.mark.parametrize('name', TASKS)
def test_prompts_follow_the_seed_alone(name: str, corpora: Corpora) -> None:
    first = made(name, corpora=corpora)
    assert made(name, corpora=corpora) == first
    assert made(name, corpora=corpora, samples=2) == first[:2]
    assert made(name, corpora=corpora, seed=1) != first
    assert len({sample.text for sample in first}) == 3


@pytest.mark.parametrize('name', [name for name in TASKS if name not in ('fwe', 'cwe')])
def test_answers_stand_in_the_prompt(name: str, corpora: Corpora) -> None:
    for sample in made(name, corpora=corpora):
        assert all(answer in sample.text for answer in sample.answers)


def test_several_queries_are_asked_for_in_the_plural(corpora: Corpora) -> None:
    text, answers, _ = made('niah_multiquery', corpora=corpora)[0]
    asked = re.search(r'What are all the special magic numbers for (.*?) mentioned in', text)
    assert asked is not None
    keys = asked[1].replace(', and ', ', ').split(', ')
    assert len(keys) == len(answers) == 4
    for key, value in zip(keys, answers, strict=True):
        assert f'One of the special magic numbers for {key} is: {value}.' in text
    assert text.startswith('Some special magic numbers are hidden')
    assert text.endswith(f'for {asked[1]} mentioned in the provided text are')


def test_several_values_belong_to_one_key(corpora: Corpora) -> None:
    text, answers, _ = made('niah_multivalue', corpora=corpora)[0]
    stated = re.findall(r'One of the special magic numbers for (\S+) is: (\d+)\.', text)
    assert len({key for key, _ in stated}) == 1
    assert sorted(value for _, value in stated) == sorted(answers)


def test_needles_lie_at_forty_depths(corpora: Corpora) -> None:
    assert len(DEPTHS) == len(set(DEPTHS)) == 40
    assert DEPTHS[:4] == [0, 3, 5, 8] and DEPTHS[-1] == 100
    places = []
    for sample in made('niah_single_2', corpora=corpora, samples=200, seed=1):
        context = sample.text.split('\n')[1]
        before, _, _ = context.partition('One of the special')
        places.append(before.count('.') / (context.count('.') - 1))
    assert len({round(100 * place) for place in places}) > 30
    assert min(places) == 0 and max(places) == 1


def test_the_documents_of_a_question_are_among_the_others(corpora: Corpora) -> None:
    for name, own in (('qa_1', 1), ('qa_2', 10)):
        data = corpora.questions({'qa_1': 'squad.json', 'qa_2': 'hotpotqa.json'}[name])
        for i, sample in enumerate(made(name, corpora=corpora)):
            question = data.asked[i]
            assert len(question.own) == own
            assert all(data.documents[n] in sample.text for n in question.own)
            assert sample.text.endswith(f'Question: {question.text} Answer:')
            assert 'Impossible?' not in sample.text


def test_more_samples_than_questions_are_refused(corpora: Corpora) -> None:
    with pytest.raises(ValueError, match=r'qa_2: samples: hotpotqa\.json has 20 questions'):
        made('qa_2', corpora=corpora, samples=21)


@pytest.mark.parametrize('name', [name for name in FREE if name != 'cwe'])
def test_a_length_that_is_too_short_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf'{name}: length is 200'):
        made(name, 200)


def test_a_length_beyond_the_words_that_there_are_is_refused(corpora: Corpora) -> None:
    """With the published list there are more."""
    with pytest.raises(ValueError, match=r'cwe: length is 65536 .*english_words\.json of RULER'):
        made('cwe', 65_536)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'tasks': ('niah',)}, 'tasks is niah; it must be one or more of niah_single_1'),
        ({'tasks': ('vt', 'vt')}, 'tasks is vt, vt'),
        ({'tasks': ()}, 'tasks is empty'),
        ({'lengths': ()}, r'lengths are \(\)'),
        ({'samples': 0}, 'samples is 0'),
    ],
)
def test_bad_fields_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(plan('vt'), **changes)


def test_files_are_asked_for_before_any_work(tmp_path: pathlib.Path) -> None:
    message = r"folder is '.*': PaulGrahamEssays.json, squad.json missing \(.*\{\"text\""
    with pytest.raises(FileNotFoundError, match=message):
        tasks = 'niah_single_2', 'qa_1'
        RulerPlan(pieces(), tasks, (2048,), corpora=Corpora(tmp_path), words=WORDS)
    with pytest.raises(FileNotFoundError, match=r'no folder was given: hotpotqa.json missing'):
        RulerPlan(pieces(), ('qa_2',), (2048,))


def test_prompts_are_made_once_for_a_tokenizer_and_a_length(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made('vt', cache=tmp_path)
    (path,) = tmp_path.iterdir()
    monkeypatch.setattr(prompts.RulerPlan, '_made', None)
    assert made('vt', cache=tmp_path) == first
    assert made('vt', cache=tmp_path, samples=2) == first[:2]
    monkeypatch.undo()
    assert len(made('vt', cache=tmp_path, samples=4)) == 4
    assert made('vt', cache=tmp_path, tokenizer=ByteTokenizer(), length=4096) != first
    assert made('vt', cache=tmp_path, seed=2) != first
    assert len([*tmp_path.iterdir()]) == 3
    path.write_text('["cut', 'utf-8')
    assert made('vt', cache=tmp_path) == first


def test_tasks_that_a_length_has_no_room_for_are_left_out() -> None:
    whole = RulerPlan(pieces(), ('niah_single_1', 'vt'), (512, 4096), samples=1, words=WORDS)
    found, misfits = whole.fitting()
    assert found == dataclasses.replace(whole, tasks=('niah_single_1',))
    assert [*misfits] == ['vt'] and 'vt: length is 512 tokens; the shortest' in misfits['vt']
    with pytest.raises(ValueError, match='vt: length is 512 tokens'):
        dataclasses.replace(whole, tasks=('vt',)).fitting()


def test_common_words_have_room_in_2048_bytes_and_none_in_4096() -> None:
    """From 4,096 tokens on a prompt has more words, more often: the longer one has no room."""
    given = ByteTokenizer(), ('niah_single_1', 'cwe'), (2048, 4096)
    whole = RulerPlan(*given, samples=1, words=WORDS)
    dataclasses.replace(whole, tasks=('cwe',), lengths=(2048,)).check()
    found, misfits = whole.fitting()
    found.check()
    assert [*misfits] == ['cwe'] and 'cwe: length is 4096 tokens' in misfits['cwe']


@pytest.mark.parametrize('name', TASKS)
def test_an_answer_begins_where_its_task_says(name: str, corpora: Corpora) -> None:
    """As in the published templates, whose answer_prefix a chat leaves to the assistant."""
    (sample,) = made(name, 8192, samples=1, corpora=corpora)
    question, opening, answer = sample.text.rpartition(TASKS[name].opening)
    assert opening and len(answer) < 200 and question.rstrip()[-1] in '?.\'"'


def of_two(cache: pathlib.Path | None, lengths: tuple[int, ...] = (1024, 2048)) -> RulerPlan:
    settings: dict[str, Any] = {'samples': 3, 'words': WORDS, 'cache': cache}
    return RulerPlan(pieces(), ('vt', 'niah_multikey_3'), lengths, **settings)


def test_what_a_cache_lacks_is_built_alike_by_any_number_of_processes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def contents(name: str) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}

    prompts.build(of_two(tmp_path / 'one'), workers=1)
    kept = contents('one')
    assert len(kept) == 4
    monkeypatch.setattr(prompts, 'LEAST_TOKENS', 0)
    prompts.build(of_two(tmp_path / 'two'), workers=2)
    assert contents('two') == kept
    with pytest.raises(ValueError, match='length is 200'):  # as the process that finds it says
        prompts.build(of_two(tmp_path, (200, 1024)), workers=2)
    prompts.build(of_two(None), workers=2)  # without a cache there is nothing to keep
    made: list[str] = []

    def make(self: RulerPlan, length: int, task: str, *, write: bool) -> list:
        made.append(f'{task}-{length}')
        return []

    monkeypatch.setattr(RulerPlan, 'make', make)
    (tmp_path / 'one' / min(kept)).unlink()
    prompts.build(of_two(tmp_path / 'one'), workers=2)
    assert len(made) == 1 and min(kept).startswith(made[0])
