from __future__ import annotations

import collections
import itertools
import re

import numpy as np
import pytest

from nope.data import (
    SPLITS,
    DataConfig,
    bpe,
    from_section,
    identity,
    load_tokenizer,
    prepare,
    training_batches,
)
from nope.data.sources import Retrieval, Stdlib, of_split, retrieval
from nope.data.sources import Text as SomeText
from nope.data.sources.retrieval import DOCUMENTS, RECORDS
from nope.data.sources.retrieval_records import Text, record
from nope.data.templates import (
    BRIEF,
    BRIEF_NAMED,
    HAYSTACKS,
    KEYS,
    NAMES,
    PAPER_NAMED,
    shortest_named,
)

SIZE = 128
SOURCE = Retrieval(SIZE)
EOS = 256


@pytest.fixture
def few(monkeypatch) -> dict[str, int]:
    """Fewer documents than there are, for what reads them all."""
    counts = {'train': 3, 'validation': 1, 'test': 2}
    monkeypatch.setattr(retrieval, 'DOCUMENTS', counts)
    return counts


def keys_of(text: str) -> list[str]:
    """The keys that info and answers name whole, in order."""
    return re.findall(r'(?<!\d)\d{5}(?!\d)', text)


def key_of(text: str) -> str:
    return keys_of(text)[0]


def first_fillers(text: str) -> tuple[int, int]:
    """Fillers before the info and between the info and the first question."""
    head, info, _ = re.split(r'(\nKey: \d+\. \d+\.\n)', text)
    tail = text.split(info)[1]
    return head.count(BRIEF.filler), tail.split(BRIEF.question)[0].count(BRIEF.filler)


@pytest.mark.parametrize('size', [BRIEF.shortest, BRIEF.shortest + 1, 128, 257])
@pytest.mark.parametrize('split', SPLITS)
def test_a_document_is_its_records_but_for_the_last_byte_which_eos_replaces(size, split):
    for index in range(3):
        text = Retrieval(size).document(split, index)
        assert len(text) == RECORDS * (size + 1) - 1
        whole = text.decode() + record(split, (index + 1) * RECORDS - 1, size)[-1]
        for k in range(RECORDS):
            part = whole[k * (size + 1) : (k + 1) * (size + 1)]
            assert part == record(split, index * RECORDS + k, size)


def test_a_record_is_the_same_on_every_call():
    # Pinned: other documents under the same version would pass for the same data.
    filler = ' The sky is blue.'
    expected = 'Find the key.\n\nKey: 38391. 38391.\n' + 4 * filler + '\nKey: 38391' + filler[:-1]
    assert record('train', 0, SIZE) == record('train', 0, SIZE) == expected
    assert record('train', 1, SIZE) != expected


@pytest.mark.parametrize('size', [BRIEF.shortest, 64, 128, 256])
def test_a_record_begins_with_a_whole_prompt_and_its_answer(size):
    for index in range(100):
        text = record('train', index, size)
        key = key_of(text)
        prompt = BRIEF.prompt(key, *first_fillers(text)) + BRIEF.answer(key)
        assert text.startswith(prompt)
        assert len(prompt) <= size


@pytest.mark.parametrize('size', [64, 128, 256])
def test_every_question_is_answered_with_the_key_of_its_record(size):
    questions = 0
    for index in range(100):
        text = record('train', index, size)
        assert len(set(keys_of(text))) == 1
        key = key_of(text)
        _, info, *answers = text.split(BRIEF.question)
        assert info.startswith(f' {key}. {key}.')
        for answer in answers:
            assert answer[:6] == BRIEF.answer(key)[: len(answer)]  # the last may be cut
        questions += len(answers)
    assert questions > 100


def test_records_end_anywhere():
    """What always stood at the end would be learned from the position."""
    ends = collections.Counter(record('train', index, SIZE)[-1] for index in range(1000))
    assert len(ends) > 15
    assert max(ends.values()) < 300


def test_prompts_of_all_lengths_and_depths_are_common():
    room = (SIZE - BRIEF.shortest) // len(BRIEF.filler)
    found = collections.Counter(
        first_fillers(record('train', index, SIZE)) for index in range(3000)
    )
    totals = collections.Counter()
    for (before, after), count in found.items():
        totals[before + after] += count
    assert set(totals) == set(range(room + 1))
    for total, count in totals.items():
        assert count == pytest.approx(3000 / (room + 1), rel=0.2)
        for before in range(total + 1):
            assert found[before, total - before] == pytest.approx(count / (total + 1), rel=0.4)


def test_keys_are_drawn_from_all_five_digit_numbers():
    keys = [int(key_of(record('train', index, SIZE))) for index in range(2000)]
    assert min(keys) >= KEYS.start and max(keys) < KEYS.stop
    counts = np.bincount(np.array(keys) // 10_000, minlength=10)[1:]
    assert np.all(np.abs(counts - 2000 / 9) < 60)
    assert len(set(keys)) > 1900


def test_splits_share_no_key_and_no_record():
    counts = {'train': 2000, 'validation': 200, 'test': 200}
    texts = {
        split: [record(split, index, SIZE) for index in range(count)]
        for split, count in counts.items()
    }
    keys = {split: {key_of(text) for text in found} for split, found in texts.items()}
    for one, other in itertools.combinations(SPLITS, 2):
        assert not keys[one] & keys[other]
        assert not set(texts[one]) & set(texts[other])


@pytest.mark.parametrize('part_bytes', [1, 1000, 1 << 26])
def test_parts_hold_every_document_once_in_order(few, tmp_path, part_bytes):
    parts = SOURCE.list_parts(tmp_path, part_bytes)
    found = [each for part in parts for each in part.documents()]
    assert found == [
        (split, SOURCE.document(split, index)) for split in SPLITS for index in range(few[split])
    ]
    assert sum(part.size for part in parts) == sum(len(text) for _, text in found)


def test_every_training_block_is_one_record(few, tmp_path):
    count = few['train'] * RECORDS
    batches = training_batches(
        DataConfig((SOURCE,)),
        length=SIZE,
        batch_size=count,
        seed=3,
        start=0,
        cache=tmp_path,
        threads=0,
    )
    batch = next(iter(batches))
    assert batch.tokens.shape == batch.targets.shape == (count, SIZE)
    assert np.all(batch.tokens < EOS)
    assert np.sum(batch.targets == EOS) == np.sum(batch.targets[:, -1] == EOS) == few['train']
    found = {bytes(row.astype(np.uint8)).decode() for row in batch.tokens}
    assert found == {record('train', index, SIZE)[:-1] for index in range(count)}


def test_identity_names_what_the_documents_follow_from():
    found = SOURCE.identity()
    assert found['kind'] == 'retrieval'
    assert found['bytes'] == SIZE
    assert (found['documents'], found['records']) == (DOCUMENTS, RECORDS)
    assert found['template']['filler'] == BRIEF.filler
    assert Retrieval(256).identity() != found
    assert identity(DataConfig((SOURCE,)))['sources'] == [{**found, 'weight': 1.0}]


def test_records_are_as_long_as_the_run_trains_unless_a_length_is_given():
    section = {'source': 'retrieval', 'record_length': None}
    assert from_section(section, 512).sources == (Retrieval(512),)
    assert from_section(section | {'record_length': SIZE}, 512).sources == (SOURCE,)


@pytest.mark.parametrize('length', [-128, 128.0, '128', True, BRIEF.shortest - 1])
def test_an_impossible_record_length_is_refused_by_field(length):
    with pytest.raises(ValueError, match=rf'data\.record_length is {length!r}; accepted'):
        from_section({'source': 'retrieval', 'record_length': length}, 64)


def test_a_training_length_below_the_shortest_record_is_refused():
    section = {'source': 'retrieval', 'record_length': None}
    with pytest.raises(ValueError, match=r'data\.record_length, here the training length, is 8;'):
        from_section(section, 8)


def test_a_length_in_place_of_a_path_is_answered_with_what_to_type():
    section = {'mixture': (('stdlib', 0.5), ('retrieval:128', 0.5)), 'record_length': None}
    with pytest.raises(
        ValueError,
        match=r"data\.mixture\[1\]: .* no path, '128'; .*data\.record_length=128 with it",
    ):
        from_section(section, 64)


NAMED = re.compile(r'\n([A-Z]): (\d{5})\.')
ASKED = re.compile(r'\n([A-Z]): (\d{5})(?!\d|\.)')


@pytest.mark.parametrize('size', [shortest_named(4), 128, 257])
def test_every_question_for_a_named_key_is_answered_with_that_key(size):
    asked = collections.Counter()
    for index in range(300):
        text = record('train', index, size, 4)
        assert len(text) == size + 1
        keys = dict(NAMED.findall(text))
        if not keys:
            continue
        assert 2 <= len(keys) == len(set(keys.values())) <= 4
        questions = ASKED.findall(text)
        assert questions and all(keys[name] == answer for name, answer in questions)
        order = list(keys)
        asked.update((len(order), order.index(name)) for name, _ in questions)
    for count in (2, 3, 4):
        of_count = [asked[count, place] for place in range(count)]
        assert min(of_count) > 0.5 * sum(of_count) / count  # not the nearest one alone


def test_records_state_every_number_of_keys_up_to_the_most():
    counts = collections.Counter(
        len(NAMED.findall(record('train', index, SIZE, 4))) for index in range(800)
    )
    assert set(counts) == {0, 2, 3, 4}
    assert all(count == pytest.approx(200, rel=0.25) for count in counts.values())
    for index in range(50):
        text = record('train', index, SIZE, 4)
        if not NAMED.search(text):  # a record of one key is as ever
            prompt = BRIEF.prompt(key_of(text), *first_fillers(text))
            assert text.startswith(prompt + BRIEF.answer(key_of(text)))


def test_splits_share_no_named_key():
    keys = {
        split: {k for i in range(300) for k in keys_of(record(split, i, SIZE, 4))}
        for split in SPLITS
    }
    for one, other in itertools.combinations(SPLITS, 2):
        assert not keys[one] & keys[other]


def test_names_are_as_long_as_each_other_and_ask_for_their_key():
    assert {len(name) for name in NAMES} == {1} and len(set(NAMES)) == 26
    for template in (BRIEF_NAMED, PAPER_NAMED):
        stated = template.state('12345', 'Q')
        assert template.ask('Q').split('\n')[-1].split('? ')[-1] in stated
        assert f'{template.ask("Q")} 12345'.split('? ')[-1].strip() in stated


def test_several_keys_are_asked_for_by_a_field(few, tmp_path):
    section = {'source': 'retrieval', 'record_length': None, 'needles': 4}
    (source,) = from_section(section, SIZE).sources
    assert source == Retrieval(SIZE, 4)
    assert source.describe() == 'synthetic retrieval prompts of 1 to 4 keys within 128 bytes'
    found = [text for part in source.list_parts(tmp_path) for _, text in part.documents()]
    assert found == [
        source.document(split, index) for split in SPLITS for index in range(few[split])
    ]


@pytest.mark.parametrize('needles', [0, 27, -1, 2.0, '2', True])
def test_an_impossible_number_of_keys_is_refused_by_field(needles):
    with pytest.raises(ValueError, match=rf'data\.needles is {needles!r}; accepted: .* 1 to 26'):
        from_section({'source': 'retrieval', 'record_length': None, 'needles': needles}, 128)


def test_records_too_short_for_their_keys_are_refused_with_both_fields():
    least = shortest_named(4)
    Retrieval(least, 4)
    message = rf'data\.record_length is {least - 1}; .* least {least} .* of data\.needles = 4 keys'
    with pytest.raises(ValueError, match=message):
        Retrieval(least - 1, 4)


WORDS = ' '.join(f'w{i}' for i in range(3000))
BOTH = Retrieval(SIZE, 4, HAYSTACKS)


def hay_of(text: str) -> str:
    """What is left of a record without the sentences of its keys and what follows the first
    question."""
    head = text.removeprefix(BRIEF.task)
    named = re.sub(NAMED, '', head)
    if named != head:
        return re.split(r'\n[A-Z]:', named)[0]
    return re.sub(r'\nKey: \d+\. \d+\.\n', '', head).split(BRIEF.question)[0]


@pytest.mark.parametrize('needles', [1, 4])
@pytest.mark.parametrize('size', [128, 257])
def test_the_hay_of_a_record_in_text_is_a_part_of_it(needles: int, size: int) -> None:
    lengths = []
    for index in range(300):
        text = record('train', index, size, needles, ('text',), WORDS)
        assert len(text) == size + 1 and text.startswith(BRIEF.task)
        hay = hay_of(text)
        assert hay in WORDS + WORDS and BRIEF.filler not in text
        lengths.append(len(hay))
        keys = dict(NAMED.findall(text)) or {'Key': key_of(text)}
        asked = re.findall(r'\n(Key|[A-Z]): (\d{5})(?!\d|\.)', text)
        assert asked and all(keys[name] == answer for name, answer in asked)
    assert min(lengths) < 10 and max(lengths) > size / 3 and len(set(lengths)) > 40


def test_each_haystack_is_as_likely() -> None:
    texts = [record('train', index, SIZE, 4, HAYSTACKS, WORDS) for index in range(400)]
    in_text = [bool(re.search(r'w\d', text)) for text in texts]
    assert sum(in_text) == pytest.approx(200, rel=0.2)
    assert not any(BRIEF.filler in text for text, yes in zip(texts, in_text, strict=True) if yes)
    assert texts == [record('train', index, SIZE, 4, HAYSTACKS, WORDS) for index in range(400)]


def test_text_begins_anew_behind_its_end() -> None:
    hay = Text('abcde', 3)
    assert [hay.take(count) for count in (0, 1, 3, 12, 2)] == ['', 'd', 'eab', 'cdeabcdeabcd', 'ea']


def test_records_hide_keys_in_the_standard_library_of_their_split(few, tmp_path) -> None:
    parts = BOTH.list_parts(tmp_path)
    library = Stdlib().list_parts(tmp_path)
    for part in parts:
        texts = [text for each in of_split(library, part.split) for _, text in each.documents()]
        text = ''.join(found.decode('ascii', 'ignore') for found in texts)
        found = list(part.documents())
        assert found == [
            (part.split, BOTH.document(part.split, i, text)) for i in range(len(found))
        ]
        assert len(found) == few[part.split]
        size = SIZE + 1
        records = [found[0][1].decode()[k * size : (k + 1) * size] for k in range(RECORDS)]
        hays = [hay_of(each) for each in records if BRIEF.filler not in each]
        assert len(hays) > 15 and all(hay in text + text[:SIZE] for hay in hays)


def test_hay_is_part_of_the_identity_and_of_the_description() -> None:
    found = BOTH.identity()
    assert found['haystacks'] == ['filler', 'text'] and found['text'] == Stdlib().identity()
    assert Retrieval(SIZE, 4, ('text',)).identity() != found
    assert BOTH.describe() == (
        'synthetic retrieval prompts of 1 to 4 keys in filler or text within 128 bytes'
    )
    section = {'source': 'retrieval', 'record_length': None, 'needles': 4, 'haystacks': HAYSTACKS}
    assert from_section(section, SIZE).sources == (BOTH,)


@pytest.mark.parametrize('hay', ['text', (), ('hay',), ('text', 'filler'), ('text', 'text')])
def test_an_unknown_haystack_is_refused_by_field(hay) -> None:
    section = {'source': 'retrieval', 'record_length': None, 'haystacks': hay}
    with pytest.raises(
        ValueError, match=rf'^data\.haystacks is {re.escape(repr(hay))}; accepted: '
    ):
        from_section(section, SIZE)


@pytest.fixture(scope='module')
def pieces(tmp_path_factory) -> str:
    """A tokenizer of 290 entries, some of several letters."""
    folder = tmp_path_factory.mktemp('pieces')
    (folder / 'corpus').mkdir()
    for i in range(40):
        text = f'{BRIEF.task}{BRIEF.filler * 9} Some other words of number {i}.'
        (folder / 'corpus' / f'{i}.txt').write_text(text)
    bpe.train(
        SomeText(str(folder / 'corpus')),
        folder / 'made',
        vocab_size=290,
        cache=folder / 'cache',
        field='vocab_size',
    )
    return str(folder / 'made' / 'tokenizer.json')


@pytest.mark.parametrize('needles', [1, 4])
def test_records_of_another_tokenizer_fill_blocks_of_its_tokens(pieces, needles):
    """Each begins with a whole prompt and its answer; most hold more text than as many bytes."""
    source, loaded = Retrieval(SIZE, needles, tokenizer=pieces), load_tokenizer(pieces)
    ids = source.document('train', 0)
    assert ids.dtype == np.int32 and len(ids) == RECORDS * (SIZE + 1) - 1
    blocks = np.append(ids, loaded.eos_id).reshape(RECORDS, SIZE + 1)
    characters, depths = [], set()
    for block in blocks:
        text = loaded.decode(block[:-1])
        assert text.startswith(BRIEF.task)
        stated = re.findall(r'\n(?:Key|[A-Z]): (\d{5})(?=\.)', text)
        asked = re.findall(r'\n(Key|[A-Z]): (\d{5})(?![\d.])', text)
        assert asked and all(key in stated for _, key in asked)
        characters.append(len(text))
        depths.add(text.index(stated[0]))
    assert np.mean(characters) > 1.5 * SIZE and len(depths) > 10


def test_training_reads_a_record_a_block(pieces, few, tmp_path):
    data = from_section({'source': 'retrieval', 'tokenizer': pieces}, SIZE)
    assert data.sources == (Retrieval(SIZE, tokenizer=pieces),)
    assert 'within 128 tokens' in data.sources[0].describe()
    loaded = load_tokenizer(pieces)
    batches = training_batches(
        data, length=SIZE, batch_size=8, seed=0, start=0, cache=tmp_path, threads=0
    )
    for row in next(iter(batches)).tokens:
        assert loaded.decode(row).startswith(BRIEF.task)


def test_the_tokenizer_is_part_of_the_identity_unless_it_is_bytes(pieces):
    found = Retrieval(SIZE, tokenizer=pieces).identity()
    assert found['tokenizer'] == load_tokenizer(pieces).fingerprint
    assert 'tokenizer' not in Retrieval(SIZE, tokenizer='bytes').identity()


def test_what_other_tokenizers_cannot_do_is_refused(pieces, tmp_path, cache):
    with pytest.raises(ValueError, match=r"haystacks is \('text',\); accepted with the tokenizer"):
        Retrieval(SIZE, haystacks=('text',), tokenizer=pieces)
    with pytest.raises(
        ValueError, match=r'record_length is 9 tokens; a prompt without filler .* \d+'
    ):
        Retrieval(9, tokenizer=pieces).document('train', 0)
    source = Retrieval(SIZE, tokenizer=pieces)
    with pytest.raises(ValueError, match=r"'bytes'; .* is made for another tokenizer"):
        prepare.prepare(source, 'bytes', tmp_path / 'out', cache=cache)
