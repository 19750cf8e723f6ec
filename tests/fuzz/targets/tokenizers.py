"""Files of tokenizers: SentencePiece models, the tokenizers library's JSON, what is beside it."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np

from nope.data import load_tokenizer
from tests.data.tokenizers_test import hugging_face_json
from tests.data.words import sentencepieces
from tests.fuzz.case import Case, Target, attempt, expect
from tests.fuzz.mutation import Draw, choice, json_bytes, mutated, one_in

PROBE = 'the lazy fox → \U0001f98a </s> 12\t\n naïve \ufffd'


def sentencepiece_model(kind: str) -> bytes:
    return sentencepieces(
        [f'the quick brown fox number {i} jumps' for i in range(60)],
        vocab_size=290 if kind == 'bpe' else 60,
        model_type=kind,
        byte_fallback=kind == 'bpe',
        hard_vocab_limit=False,
    )


def _probe(path: pathlib.Path) -> Any:
    tokenizer = load_tokenizer(str(path))
    ids = tokenizer.encode(PROBE)
    expect(ids.dtype == np.int32 and (ids >= 0).all(), f'ids {ids[:10]}')
    expect((ids < tokenizer.vocab_size).all(), 'an id above the vocabulary')
    expect(0 <= tokenizer.eos_id < tokenizer.vocab_size, f'EOS {tokenizer.eos_id}')
    expect(isinstance(tokenizer.decode(ids), str), 'no text')
    return ids.tolist()


def _sentencepiece(folder: pathlib.Path) -> Case:
    import sentencepiece

    files = [sentencepiece_model('bpe'), sentencepiece_model('unigram')]
    path = folder / 'tokenizer.model'

    def case(draw: Draw) -> bool:
        sound = one_in(draw, 16)
        data = choice(draw, files) if sound else mutated(draw, choice(draw, files), files)
        path.write_bytes(data)
        accepted, found = attempt(lambda: _probe(path), path)
        expect(accepted or not sound, f'a sound model is refused: {found}')
        if accepted:
            plain = sentencepiece.SentencePieceProcessor(model_proto=data)
            expect(found == plain.encode(PROBE), 'other ids than of the library')
        return accepted

    return case


def tokenizer_files() -> list[dict[str, Any]]:
    """A byte-level BPE, a word-level and a word-piece vocabulary, and a unigram one."""
    base = json.loads(hugging_face_json(['<s>', '</s>']))
    words = {word: i for i, word in enumerate(['<s>', '</s>', '<unk>', 'the', 'fox', '##y', 't'])}
    plain = {**base, 'pre_tokenizer': {'type': 'Whitespace'}, 'decoder': None, 'added_tokens': []}
    level = {'type': 'WordLevel', 'vocab': words, 'unk_token': '<unk>'}
    piece = {
        **{'type': 'WordPiece', 'vocab': words, 'unk_token': '<unk>'},
        **{'continuing_subword_prefix': '##', 'max_input_chars_per_word': 100},
    }
    pieces = [[word, -float(i)] for word, i in words.items()]
    unigram = {'type': 'Unigram', 'unk_id': 2, 'vocab': pieces, 'byte_fallback': False}
    return [base, *({**plain, 'model': model} for model in (level, piece, unigram))]


def _json(folder: pathlib.Path) -> Case:
    import tokenizers

    files = tokenizer_files()
    path = folder / 'tokenizer.json'

    def case(draw: Draw) -> bool:
        sound = one_in(draw, 16)
        value = choice(draw, files)
        data = json.dumps(value).encode() if sound else json_bytes(draw, value)
        path.write_bytes(data)
        accepted, found = attempt(lambda: _probe(path), path)
        expect(accepted or not sound, f'a sound tokenizer is refused: {found}')
        if accepted:
            plain = tokenizers.Tokenizer.from_str(data.decode())
            plain.no_truncation()
            plain.no_padding()
            plain.encode_special_tokens = True
            expect(found == plain.encode(PROBE, add_special_tokens=False).ids, 'other ids')
        return accepted

    return case


def _beside(folder: pathlib.Path) -> Case:
    """tokenizer_config.json, which declares the marks."""
    marks = {'eos_token': '</s>', 'bos_token': {'content': '<s>', 'special': True}, 'more': [1]}
    path = folder / 'tokenizer.json'
    path.write_text(hugging_face_json(['<s>', '</s>']))
    wanted = _probe(path)

    def case(draw: Draw) -> bool:
        path.with_name('tokenizer_config.json').write_bytes(json_bytes(draw, marks))
        accepted, found = attempt(lambda: _probe(path), path)
        expect(not accepted or found == wanted, 'other ids')
        return accepted

    return case


TARGETS: tuple[Target, ...] = (
    Target('tokenizers.sentencepiece', 60, _sentencepiece),
    Target('tokenizers.json', 60, _json),
    Target('tokenizers.beside', 40, _beside),
)
