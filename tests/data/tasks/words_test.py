"""The closed word vocabulary: what it has, and that every example survives it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nope.data.tasks import TASKS, SteppedTask, WordTokenizer, named, symbols, vocabulary
from nope.data.tasks.scratchpad import FORMATS

GENERATED = [name for name in TASKS if name != 'pcfg']
TOKENIZERS = {name: WordTokenizer.of(TASKS[name]) for name in TASKS}


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(GENERATED), st.sampled_from(sorted(FORMATS)), st.data())
def test_every_example_round_trips(name: str, style: str, data: st.DataObject) -> None:
    """The vocabulary of a task does for every scratchpad of it; only runs of blanks are joined."""
    task, tokenizer = TASKS[name], TOKENIZERS[name]
    if isinstance(task, SteppedTask):
        task = named(name, scratchpad=FORMATS[style])
    split = data.draw(st.sampled_from(('train', 'test')))
    bin = data.draw(st.sampled_from(task.bins(split)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    for example in task.examples(bin, rng, count=max(2, max(bin) // 2))[:5]:
        whole = task.prompt(example) + example.target
        for text in (whole, task.prompt(example), example.target):
            assert tokenizer.decode(tokenizer.encode(text)) == ' '.join(text.split())
        prompt, target = tokenizer.encode(task.prompt(example)), tokenizer.encode(example.target)
        assert np.array_equal(tokenizer.encode(whole), np.concatenate([prompt, target]))
        assert task.form.parse(tokenizer.decode(target)) == task.form.parse(example.target)


@pytest.mark.parametrize('name', GENERATED)
def test_no_piece_is_one_that_examples_never_have(name: str) -> None:
    """But for brackets of scratchpads in tasks whose steps have no variables."""
    changes: dict[str, object] = {}
    if hasattr(TASKS[name], 'symbols'):
        changes['symbols'] = symbols.closed(20)
    if isinstance(TASKS[name], SteppedTask):
        changes['scratchpad'] = FORMATS['full']
    task = named(name, **changes)
    tokenizer, rng = WordTokenizer.of(task), np.random.default_rng(3)
    count = {'rdc': 20 * 19, 'rsc': 20, 'rsc2x': 20, 'addition': 20}.get(name, 300)
    used: set[int] = set()
    for bin in task.bins('train'):
        for example in task.examples(bin, rng, count):
            used |= set(tokenizer.encode(task.prompt(example) + example.target).tolist())
    unused = {tokenizer.pieces[i] for i in set(range(4, tokenizer.vocab_size)) - used}
    assert unused <= ({' [', ' ]'} if name == 'lego' else set())


def test_specials_come_first() -> None:
    assert vocabulary(TASKS['cmc'])[:4] == ('<pad>', '<bos>', '<eos>', ' [SEP]')
    assert vocabulary(TASKS['scan'])[:4] == ('<pad>', '<bos>', '<eos>', '[SEP]')
    assert vocabulary(TASKS['parity'])[:4] == ('<pad>', '<bos>', '<eos>', '[SEP]')
    for name, tokenizer in TOKENIZERS.items():
        assert len(set(tokenizer.pieces)) == tokenizer.vocab_size
        prompt = TASKS[name].separator
        if prompt:
            assert sum(piece.strip() == '[SEP]' for piece in tokenizer.pieces) == 1
    ids = TOKENIZERS['cmc'].encode('Copy: 0 1 [SEP] 0 1')
    assert ids.tolist().count(TOKENIZERS['cmc'].pieces.index(' [SEP]')) == 1
    assert ids.dtype == np.int32


def test_specials_are_not_decoded() -> None:
    tokenizer = TOKENIZERS['cmc']
    ids = [tokenizer.bos_id, *tokenizer.encode('0 1'), tokenizer.eos_id, tokenizer.pad_id]
    assert tokenizer.decode(ids) == '0 1'


def test_the_number_of_symbols_sets_the_size() -> None:
    small, large = (vocabulary(named('cmc', symbols=symbols.closed(n))) for n in (50, 100))
    assert len(large) - len(small) == 50
    assert WordTokenizer(small).fingerprint != WordTokenizer(large).fingerprint


def test_an_unknown_word_is_named() -> None:
    with pytest.raises(ValueError, match=r"word ' zebra' is not among the 47 of the vocabulary"):
        TOKENIZERS['addition'].encode('Compute zebra')
    assert TOKENIZERS['addition'].encode(b'Compute 1').tolist() == (
        TOKENIZERS['addition'].encode('Compute 1').tolist()
    )


def test_a_symbol_that_is_no_word_is_refused() -> None:
    with pytest.raises(ValueError, match="symbol '\\$' is no word"):
        vocabulary(named('cmc', symbols=('a', '$')))
