"""Text to token ids and back: raw bytes, SentencePiece models, Hugging Face tokenizers.

No tokenizer here adds BOS or EOS by itself: the framing of documents (the paper: EOS after each,
no BOS) is decided where they are joined. Text that spells a special token, like a literal `</s>`,
is encoded as ordinary characters wherever the library allows it, so that a separator in the token
stream always is one.
"""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, Protocol

import numpy as np

from nope.data import digest, sentencepiece_file
from nope.runtime import files
from nope.runtime.errors import FieldError

BYTE_VALUES = 256
EOS_PIECES = ('</s>', '<|endoftext|>', '<|end_of_text|>', '<eos>', '<|im_end|>')
BOS_PIECES = ('<s>', '<|endoftext|>', '<|begin_of_text|>', '<bos>', '<|im_start|>')


class Tokenizer(Protocol):
    """Interface of tokenizers. Ids are int32 in [0, vocab_size)."""

    @property
    def vocab_size(self) -> int: ...

    @property
    def eos_id(self) -> int: ...

    @property
    def bos_id(self) -> int | None: ...

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Tokens that end a generated text: EOS, and what its model's files name besides, such as
        the end of a turn."""
        ...

    @property
    def fingerprint(self) -> str:
        """Digest of everything that determines the ids; not of where the file lies."""
        ...

    def encode(self, text: str | bytes) -> np.ndarray:
        """Token ids, int32 [n], without BOS and EOS. Invalid UTF-8 survives the byte tokenizer
        and becomes U+FFFD for the others."""
        ...

    def decode(self, ids: Any) -> str:
        """Text of `ids`; special tokens are left out, as are ids from `vocab_size` on, which a
        model may have more than its tokenizer; invalid UTF-8 becomes U+FFFD."""
        ...


@dataclasses.dataclass(frozen=True)
class ByteTokenizer:
    """Byte tokenizer: the 256 byte values, EOS and BOS."""

    vocab_size: int = BYTE_VALUES + 2
    eos_id: int = BYTE_VALUES
    bos_id: int | None = BYTE_VALUES + 1
    stop_ids: tuple[int, ...] = (BYTE_VALUES,)
    fingerprint: str = 'bytes-258'

    def encode(self, text: str | bytes) -> np.ndarray:
        return np.frombuffer(_to_bytes(text), np.uint8).astype(np.int32)

    def decode(self, ids: Any) -> str:
        ids = np.asarray(ids, np.int64)
        return ids[ids < BYTE_VALUES].astype(np.uint8).tobytes().decode('utf-8', 'replace')


@dataclasses.dataclass(frozen=True)
class SentencePieceTokenizer:
    """A SentencePiece model."""

    processor: Any
    vocab_size: int
    eos_id: int
    bos_id: int | None
    stop_ids: tuple[int, ...]
    fingerprint: str

    def encode(self, text: str | bytes) -> np.ndarray:
        return np.asarray(self.processor.encode(_to_str(text), out_type=int), np.int32)

    def decode(self, ids: Any) -> str:
        return self.processor.decode([int(i) for i in ids if i < self.vocab_size])


@dataclasses.dataclass(frozen=True)
class HuggingFaceTokenizer:
    """A `tokenizer.json` of the Hugging Face tokenizers library. named: what named its file, and
    the file, for messages."""

    named: str
    tokenizer: Any
    vocab_size: int
    eos_id: int
    bos_id: int | None
    stop_ids: tuple[int, ...]
    fingerprint: str

    def encode(self, text: str | bytes, *, special: bool = False) -> np.ndarray:
        """As `Tokenizer.encode`. special: what spells a special token becomes that token."""
        return np.asarray(self.encoding(_to_str(text), special=special).ids, np.int32)

    def encoding(self, text: str, *, special: bool = False) -> Any:
        """The library's encoding of a text, with ids and offsets."""
        self.tokenizer.encode_special_tokens = not special  # which the library does not pickle
        try:
            return self.tokenizer.encode(text, add_special_tokens=False)
        except Exception as error:  # the library raises plain Exception
            raise ValueError(f'{self.named}: it cannot encode every text ({error})') from error

    def decode(self, ids: Any) -> str:
        known = [int(i) for i in ids if i < self.vocab_size]
        return self.tokenizer.decode(known, skip_special_tokens=True)


def load_tokenizer(spec: str, field: str = 'data.tokenizer') -> Tokenizer:
    """The tokenizer that `field` names: `bytes`, a `*.model` or a `*.json` file.

    Raises FileNotFoundError for a missing file and ValueError for one that is of another
    kind, cannot be read, or has no end-of-document token.
    """
    if spec == 'bytes':
        return ByteTokenizer()
    path = pathlib.Path(spec)
    if path.suffix not in ('.model', '.json'):
        raise ValueError(
            f"{field}={spec!r}: must be 'bytes', a SentencePiece *.model file or a "
            'Hugging Face tokenizer.json file'
        )
    if not path.is_file():
        raise FileNotFoundError(f'{field}={spec!r}: there is no such file')
    try:
        if path.suffix == '.model':
            return _load_sentencepiece(path)
        return _load_hugging_face(path, f'{field}={spec!r}')
    except _Unusable as error:
        raise ValueError(f'{field}={spec!r}: {error}') from error


def ids_in_use(tokenizer: Tokenizer) -> int:
    """One more than the greatest id of a text, BOS or EOS: what a model's vocabulary has to hold.

    Special tokens that text never becomes, such as those in the place of images, may lie beyond it.
    """
    if not isinstance(tokenizer, HuggingFaceTokenizer):
        return tokenizer.vocab_size
    library = tokenizer.tokenizer
    added = library.get_added_tokens_decoder()
    plain = set(library.get_vocab(with_added_tokens=False).values())
    unused = {i for i, token in added.items() if token.special} - plain
    used = set(library.get_vocab(with_added_tokens=True).values()) - unused
    return max({*used, tokenizer.eos_id, tokenizer.bos_id or 0}) + 1


def takes_bos(tokenizer: Tokenizer) -> bool:
    """Whether texts begin with BOS where nobody says so: if the tokenizer has one, but not of
    single bytes or of the words of a task, whose models have never seen it."""
    probe = 'The é'  # the same ids as of bytes, though the tokenizer may be a file
    try:
        bytewise = np.array_equal(tokenizer.encode(probe), ByteTokenizer().encode(probe))
    except ValueError:  # the words of a task do not spell it
        return False
    return tokenizer.bos_id is not None and not bytewise


def begins_with_bos(tokenizer: Tokenizer, bos: bool | None) -> bool:
    """Whether sequences begin with BOS; None: as `takes_bos` says. FieldError for other values, and
    for True where the tokenizer has no BOS."""
    if not isinstance(bos, bool | None):
        rule = 'accepted: True, False, or None for what the tokenizer says'
        raise FieldError('bos', bos, rule)
    if bos and tokenizer.bos_id is None:
        raise FieldError('bos', bos, 'accepted: False or None; the tokenizer has no BOS')
    return takes_bos(tokenizer) if bos is None else bos


def spells_special(tokenizer: Tokenizer, text: str) -> bool:
    """Whether a text spells a special token, which `encode` reads as plain text."""
    found = isinstance(tokenizer, HuggingFaceTokenizer)
    return found and not np.array_equal(tokenizer.encode(text), _with_special(tokenizer, text))


def encode_with_bos(
    tokenizer: Tokenizer, text: str | bytes, bos: bool, *, special: bool = False
) -> np.ndarray:
    """Token ids of `text`, int32 [n], after BOS where `bos` is on. special: what the text spells of
    special tokens becomes these tokens; a BOS that it begins with is the only one then.

    ValueError where `bos` is on and the tokenizer has no BOS, and where it cannot read special
    tokens.
    """
    ids = _with_special(tokenizer, text) if special else tokenizer.encode(text)
    if not bos or (special and len(ids) and ids[0] == tokenizer.bos_id):
        return ids
    if tokenizer.bos_id is None:
        raise ValueError(
            f'bos=True, but the tokenizer ({type(tokenizer).__name__}, fingerprint '
            f'{tokenizer.fingerprint}) has no BOS; use bos=False'
        )
    return np.concatenate([np.array([tokenizer.bos_id], np.int32), ids])


def _with_special(tokenizer: Tokenizer, text: str | bytes) -> np.ndarray:
    if isinstance(tokenizer, HuggingFaceTokenizer):
        return tokenizer.encode(text, special=True)
    if isinstance(tokenizer, SentencePieceTokenizer):
        raise ValueError(
            'a SentencePiece model reads no special tokens in a text; a tokenizer.json does'
        )
    return tokenizer.encode(text)  # bytes: no text spells their EOS or BOS


class _Unusable(Exception):
    """Reason that a tokenizer file cannot be used."""


def _load_sentencepiece(path: pathlib.Path) -> SentencePieceTokenizer:
    import sentencepiece

    content = files.read_bytes(path)
    processor = sentencepiece.SentencePieceProcessor()
    try:
        sentencepiece_file.check(content)
        processor.LoadFromSerializedProto(content)
    except (RuntimeError, ValueError) as error:
        raise _Unusable(f'not a SentencePiece model, or a damaged one ({error})') from error

    def piece_id(piece: str) -> int | None:
        found = processor.piece_to_id(piece)
        return None if found == processor.unk_id() else found

    eos = processor.eos_id() if processor.eos_id() >= 0 else _first(piece_id, EOS_PIECES)
    bos = processor.bos_id() if processor.bos_id() >= 0 else _first(piece_id, BOS_PIECES)
    return SentencePieceTokenizer(
        processor=processor,
        vocab_size=processor.vocab_size(),
        eos_id=_require_eos(eos),
        bos_id=bos,
        stop_ids=_stop_ids(path, _require_eos(eos)),
        fingerprint=digest.of_json(['sentencepiece', digest.of_bytes(content), eos, bos]),
    )


def _load_hugging_face(path: pathlib.Path, named: str) -> HuggingFaceTokenizer:
    import tokenizers

    content = files.read_bytes(path)
    try:
        tokenizer = tokenizers.Tokenizer.from_str(content.decode())
    except Exception as error:  # the library raises plain Exception
        raise _Unusable(f'not a tokenizer of the tokenizers library ({error})') from error
    # A saved truncation length would cut documents, padding would lengthen them.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    declared = _declared_pieces(path.with_name('tokenizer_config.json'))
    eos = _first(tokenizer.token_to_id, (*declared.get('eos_token', ()), *EOS_PIECES))
    # A null says that there is none; what a file leaves out may be there all the same.
    declares_bos = declared.get('bos_token', BOS_PIECES)
    bos = _first(tokenizer.token_to_id, (*declares_bos, *BOS_PIECES) if declares_bos else ())
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    return HuggingFaceTokenizer(
        named=named,
        tokenizer=tokenizer,
        vocab_size=max(vocabulary.values(), default=-1) + 1,  # ids may have gaps
        eos_id=_require_eos(eos),
        bos_id=bos,
        stop_ids=_stop_ids(path, _require_eos(eos)),
        fingerprint=digest.of_json(['tokenizers', digest.of_bytes(content), eos, bos]),
    )


def _declared_pieces(path: pathlib.Path) -> dict[str, tuple[str, ...]]:
    """eos_token and bos_token as a tokenizer_config.json beside the tokenizer declares them: () for
    null, missing where it leaves one out."""
    config = _object_beside(path)
    pieces: dict[str, tuple[str, ...]] = {}
    for key in ('eos_token', 'bos_token'):
        value = config.get(key)
        if key in config and value is None:
            pieces[key] = ()
        value = value.get('content') if isinstance(value, dict) else value
        if isinstance(value, str) and _is_unicode(value):
            pieces[key] = (value,)
    return pieces


def _stop_ids(tokenizer: pathlib.Path, eos: int) -> tuple[int, ...]:
    """EOS, and the eos_token_id of the generation_config.json beside the tokenizer or, where that
    names none, of the config.json: an id, or a list of them."""
    for name in ('generation_config.json', 'config.json'):
        value = _object_beside(tokenizer.with_name(name)).get('eos_token_id')
        if value is None:
            continue
        ids = value if isinstance(value, list) else [value]
        if any(type(i) is not int or i < 0 for i in ids):
            raise _Unusable(
                f'{name} beside it: eos_token_id is {value!r}; accepted: a token id, a list of '
                'them, or null'
            )
        return tuple(dict.fromkeys((eos, *ids)))
    return (eos,)


def _object_beside(path: pathlib.Path) -> dict[str, Any]:
    """JSON object of a file beside the tokenizer; {} where there is no such file."""
    if not path.is_file():
        return {}
    try:
        return files.read_object(path) or {}
    except ValueError as error:
        raise _Unusable(f'{path.name} beside it is not a JSON object ({error})') from error


def _is_unicode(text: str) -> bool:
    """False for what JSON can spell and UTF-8 cannot, a lone surrogate: no piece has one."""
    return text.encode('utf-8', 'replace').decode() == text


def _first(piece_id: Any, pieces: tuple[str, ...]) -> int | None:
    return next((i for i in map(piece_id, pieces) if i is not None), None)


def _require_eos(eos: int | None) -> int:
    if eos is None:
        raise _Unusable(
            'it has no end-of-document token: none is declared and none of '
            f'{", ".join(EOS_PIECES)} is in its vocabulary'
        )
    return eos


def _to_bytes(text: str | bytes) -> bytes:
    # JSON can spell lone surrogates, which UTF-8 cannot: they become '?'.
    return text if isinstance(text, bytes) else text.encode('utf-8', 'replace')


def _to_str(text: str | bytes) -> str:
    return _to_bytes(text).decode('utf-8', 'replace')
