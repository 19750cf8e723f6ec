"""Batches of a task: what has a loss, what is padding, order, resume, processes, identity."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib

import numpy as np
import pytest

from nope.data import identity, tokenizer_of
from nope.data.batch import Batch
from nope.data.tasks import (
    TASKS,
    Example,
    Sizes,
    TaskData,
    WordTokenizer,
    masked,
    named,
    padded,
    symbols,
    tokenised,
    training_batches,
    training_extents,
)
from nope.runtime.errors import FieldError

SIZES = Sizes(train=90, validation=30, test=30)
DATA = TaskData(named('cmc', longest=4, symbols=symbols.closed(5)), SIZES)
WIDTH = 11  # of the longest: Copy : a b c d [SEP] a b c d, without EOS, which is not read


def some(data: TaskData = DATA, batches: int = 4, **options: object) -> list[Batch]:
    given = {'length': WIDTH, 'batch_size': 8, 'seed': 3, 'start': 0} | options
    return list(itertools.islice(training_batches(data, **given), batches))


def same(a: Batch, b: Batch) -> bool:
    pairs = ((x, y) for x, y in zip(a, b, strict=True) if x is not None)
    return all(np.array_equal(x, y) for x, y in pairs)


@pytest.mark.parametrize('name', [n for n in TASKS if n not in ('pcfg', 'scan')])
def test_the_targets_with_a_weight_are_the_target_and_eos(name: str) -> None:
    task = TASKS[name]
    tokenizer = WordTokenizer.of(task)
    lengths = task.lengths('train')
    drawn = [
        task.examples(bin, np.random.default_rng(0), 60)[0]
        for bin in (task.bins('train')[0], task.bins('train')[-1])
    ]
    examples = [tokenised(task, tokenizer, example) for example in drawn]
    batch = padded(examples, max(e.length for e in examples))
    for row, (example, ids) in enumerate(zip(drawn, examples, strict=True)):
        scored = batch.targets[row][batch.weights[row] == 1]
        assert scored[-1] == tokenizer.eos_id
        assert tokenizer.decode(scored) == example.target.strip()
        read = batch.tokens[row][: ids.length]
        assert tokenizer.decode(read) == ' '.join((task.prompt(example) + example.target).split())
        assert set(np.unique(batch.weights[row])) <= {0.0, 1.0}
    assert lengths[0] <= drawn[0].length <= drawn[1].length <= lengths[-1]


def test_a_target_is_the_next_token_and_padding_has_no_weight() -> None:
    (batch,) = some(batches=1)
    for tokens, targets, weights in zip(batch.tokens, batch.targets, batch.weights, strict=True):
        end = int(np.flatnonzero(weights)[-1])
        assert np.array_equal(tokens[1 : end + 1], targets[:end])
        assert not tokens[end + 1 :].any() and not weights[end + 1 :].any()
        # One run of weights, from the token before the target's first to the last.
        assert np.all(np.diff(np.flatnonzero(weights)) == 1)
    assert (batch.tokens.dtype, batch.weights.dtype) == (np.int32, np.float32)
    assert batch.segments is None and batch.positions is None


def test_an_answer_is_masked_by_hand() -> None:
    """`Copy: 1 0 [SEP]` and two places, each of which predicts its own token of `1 0`."""
    task = named('cmc', longest=2, symbols=symbols.closed(2))
    tokenizer = WordTokenizer.of(task)
    batch = masked([tokenised(task, tokenizer, Example('Copy: 1 0 ', '1 0', 2, '1 0'))], 9)
    copy, colon, one, zero, separator = tokenizer.encode('Copy: 1 0 [SEP]')
    end = tokenizer.eos_id
    assert batch.tokens.tolist() == [[copy, colon, one, zero, separator, end, end, 0, 0]]
    assert batch.targets.tolist() == [[0, 0, 0, 0, 0, one, zero, 0, 0]]
    assert batch.weights.tolist() == [[0, 0, 0, 0, 0, 1, 1, 0, 0]]
    assert batch.segments.tolist() == [[1, 1, 1, 1, 1, 1, 1, 0, 0]]
    with pytest.raises(ValueError, match='an example has 7 tokens to read; a row has 6'):
        masked([tokenised(task, tokenizer, Example('Copy: 1 0 ', '1 0', 2, '1 0'))], 6)


def test_an_encoder_reads_the_examples_of_a_decoder_in_their_order() -> None:
    for decoder, encoder in zip(some(), some(causal=False), strict=True):
        assert encoder.tokens.shape == decoder.tokens.shape
        for row, end in enumerate((encoder.weights == 1).sum(axis=1)):
            answer = decoder.targets[row][decoder.weights[row] == 1]
            assert np.array_equal(encoder.targets[row][encoder.weights[row] == 1], answer[:-1])
            assert end == len(answer) - 1


def test_a_batch_depends_on_its_number_alone() -> None:
    whole = some(batches=30)
    for start in (0, 7, 11, 29):
        assert all(
            same(a, b) for a, b in zip(some(start=start, batches=1), whole[start:], strict=False)
        )
    assert not same(whole[0], whole[1])
    assert not same(some(seed=4, batches=1)[0], whole[0])


def test_every_epoch_has_each_example_once_in_another_order() -> None:
    epochs = [
        [
            tuple(row)
            for batch in some(batch_size=9, start=start, batches=10)
            for row in batch.tokens
        ]
        for start in (0, 10)
    ]
    assert sorted(epochs[0]) == sorted(epochs[1]) and epochs[0] != epochs[1]
    tokenizer = tokenizer_of(DATA)
    read = [
        tuple(padded([tokenised(DATA.task, tokenizer, e)], WIDTH).tokens[0])
        for e in DATA.dataset().train
    ]
    assert sorted(epochs[0]) == sorted(read)


def test_a_process_makes_its_own_rows() -> None:
    (whole,) = some(batches=1, start=5)
    rows = np.array([6, 1])
    (part,) = some(batches=1, start=5, rows=rows)
    assert same(part, Batch(*(None if array is None else array[rows] for array in whole)))


def test_examples_longer_than_the_sequences_are_refused() -> None:
    with pytest.raises(FieldError, match=r'length is 10; the longest .* cmc has 11 tokens'):
        some(length=WIDTH - 1)
    with pytest.raises(FieldError, match=r'length is 10; the longest .* cmc has 11 tokens'):
        some(length=WIDTH + 1, lengths=(WIDTH + 1, WIDTH - 1))
    assert same(*some(batches=1), *some(batches=1, lengths=(WIDTH,)))
    with pytest.raises(ValueError, match='an example has 11 tokens to read; a row has 10'):
        tokenizer = tokenizer_of(DATA)
        padded([tokenised(DATA.task, tokenizer, e) for e in DATA.dataset().train], WIDTH - 1)


@pytest.mark.parametrize('field, value', [('batch_size', 0), ('seed', -1)])
def test_numbers_out_of_range_are_named(field: str, value: int) -> None:
    with pytest.raises(FieldError, match=f'{field} is {value}'):
        some(**{field: value})


@pytest.mark.parametrize(
    'other',
    [
        dataclasses.replace(DATA, seed=1),
        dataclasses.replace(DATA, sizes=dataclasses.replace(SIZES, train=80)),
        dataclasses.replace(DATA, task=named('cmc', longest=3, symbols=symbols.closed(5))),
        dataclasses.replace(DATA, task=named('cmc', longest=4, symbols=symbols.closed(6))),
        dataclasses.replace(DATA, task=named('mc', longest=4, symbols=symbols.closed(5))),
    ],
)
def test_the_identity_tells_data_sets_apart(other: TaskData) -> None:
    assert identity(DATA) != identity(other)
    assert identity(DATA) == identity(dataclasses.replace(DATA))


def test_the_identity_of_files_is_their_content_and_not_their_place(tmp_path: pathlib.Path) -> None:
    for folder, target in (('a', 'A1 B1'), ('b', 'A1 B1'), ('c', 'A1 B2')):
        (tmp_path / folder).mkdir()
        for split in ('train', 'test'):
            (tmp_path / folder / f'{split}.src').write_text('copy A1 B1\n')
            (tmp_path / folder / f'{split}.tgt').write_text(f'{target}\n')
    found = [
        identity(TaskData(named('pcfg', path=str(tmp_path / folder)))) for folder in ('a', 'b', 'c')
    ]
    assert found[0] == found[1] != found[2]
    assert str(tmp_path) not in str(found)


def test_the_paper_s_sizes_are_the_default() -> None:
    task = DATA.task
    assert identity(TaskData(task)) == identity(TaskData(task, task.paper_sizes))


def test_held_out_examples_are_validation_and_then_the_test() -> None:
    found = list(DATA.held_out())
    splits = [split for split, _ in found]
    assert splits == ['validation'] * 30 + ['test'] * 28  # 7 for each of 4 lengths
    assert all((e.length > 4) == (split == 'test') for split, e in found)


MANY = Sizes(train=2000, validation=300, test=400)


@pytest.mark.parametrize('name', sorted(set(TASKS) - {'pcfg'}))  # which is read from files
def test_extents_are_those_of_all_training_examples(name: str) -> None:
    has_symbols = 'symbols' in vars(TASKS[name])
    task = named(name, **({'symbols': symbols.closed(200)} if has_symbols else {}))
    data = TaskData(task, Sizes(50, 5, 5) if task.exhaustive else MANY)
    found = data.dataset()
    tokenizer = data.load_tokenizer()
    read = [tokenised(task, tokenizer, example) for example in (*found.train, *found.validation)]
    prompts = [len(example.prompt) for example in read]
    longest = max(example.length for example in read)
    assert training_extents(data) == (min(prompts), max(prompts), longest)
