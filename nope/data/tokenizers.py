"""Text to token ids and back: raw bytes, SentencePiece models, Hugging Face tokenizers.

`encode` adds no BOS and no EOS: documents are framed where they are joined (the paper: EOS after
each, no BOS), texts by `nope.data.prefix`. Text that spells a special token, like a literal `</s>`,
is encoded as ordinary characters if the library allows it. So every separator in the token stream
is one, unless a Unigram vocabulary has the separator among its pieces.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import logging
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from nope.data import digest, sentencepiece_file, special_tokens
from nope.data.special_tokens import BOS, EOS, Declared, Unusable
from nope.runtime import files
from nope.runtime.saying import say

BYTE_VALUES = 256
ADDED_FLAGS = ('special', 'single_word', 'lstrip', 'rstrip', 'normalized')


class Tokenizer(Protocol):
    """Interface of tokenizers. Ids are int32 in [0, vocab_size)."""

    @property
    def vocab_size(self) -> int: ...

    @property
    def eos_id(self) -> int: ...

    @property
    def bos_id(self) -> int | None: ...

    @property
    def prefix(self) -> tuple[int, ...]:
        """Tokens that its own files put before every text; most often BOS, or none."""
        ...

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Tokens that end a generated text: EOS, and what its model's files name besides, such as
        the end of a turn."""
        ...

    @property
    def fingerprint(self) -> str:
        """Digest of all that determines the ids. The place of the file does not."""
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
    prefix: tuple[int, ...] = ()
    stop_ids: tuple[int, ...] = (BYTE_VALUES,)
    fingerprint: str = 'bytes-258'

    def encode(self, text: str | bytes) -> np.ndarray:
        return np.frombuffer(_to_bytes(text), np.uint8).astype(np.int32)

    def decode(self, ids: Any) -> str:
        ids = np.asarray(ids, np.int64)
        return ids[ids < BYTE_VALUES].astype(np.uint8).tobytes().decode('utf-8', 'replace')


@dataclasses.dataclass(frozen=True)
class SentencePieceTokenizer:
    """A SentencePiece model. added: ids of special tokens that the files beside it add."""

    processor: Any
    added: Mapping[str, int]
    vocab_size: int
    eos_id: int
    bos_id: int | None
    prefix: tuple[int, ...]
    stop_ids: tuple[int, ...]
    fingerprint: str

    def encode(self, text: str | bytes) -> np.ndarray:
        return np.asarray(self.processor.encode(_to_str(text), out_type=int), np.int32)

    def decode(self, ids: Any) -> str:
        return self.processor.decode([int(i) for i in ids if i < self.processor.vocab_size()])


@dataclasses.dataclass(frozen=True)
class HuggingFaceTokenizer:
    """A `tokenizer.json` of the Hugging Face tokenizers library. named: what named its file, and
    the file, for messages."""

    named: str
    tokenizer: Any
    vocab_size: int
    eos_id: int
    bos_id: int | None
    prefix: tuple[int, ...]
    stop_ids: tuple[int, ...]
    fingerprint: str

    def encode(self, text: str | bytes, *, special: bool = False) -> np.ndarray:
        """As `Tokenizer.encode`. special: text that spells a special token becomes it."""
        # Without offsets, which take ten times the memory.
        library = self._of_special if special else self._of_text
        found = self._encoded(library.encode_batch_fast, [_to_str(text)])[0]
        return np.asarray(found.ids, np.int32)

    def encoding(self, text: str) -> Any:
        """The library's encoding of a text, with ids and offsets."""
        return self._encoded(self._of_text.encode, text)

    def _encoded(self, encode: Callable[..., Any], what: Any) -> Any:
        try:
            return encode(what, add_special_tokens=False)
        except Exception as error:  # the library raises plain Exception
            raise ValueError(f'{self.named}: it cannot encode every text ({error})') from error

    @property
    def _of_text(self) -> Any:
        """The library's tokenizer; to it special tokens that a text spells are text."""
        self.tokenizer.encode_special_tokens = True  # which the library does not pickle
        return self.tokenizer

    @functools.cached_property
    def _of_special(self) -> Any:
        """Another that reads them. Threads share both, so that neither may change."""
        return type(self.tokenizer).from_str(self.tokenizer.to_str())

    @functools.cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids of special tokens; to list them takes milliseconds where there are thousands."""
        added = self.tokenizer.get_added_tokens_decoder()
        return frozenset(i for i, token in added.items() if token.special)

    @functools.cached_property
    def greatest_id(self) -> int:
        """Of the tokens that a text may become. Special ones that it never does, such as those in
        the place of images, may lie beyond it. -1 where there are none."""
        pieces = self.tokenizer.get_vocab(with_added_tokens=False).values()
        unused = self.special_ids.difference(pieces)
        every = self.tokenizer.get_vocab(with_added_tokens=True).values()
        return max(set(every) - unused, default=-1)

    def decode(self, ids: Any, *, special: bool = False) -> str:
        """As `Tokenizer.decode`. special: special tokens are spelled."""
        known = [int(i) for i in ids if i < self.vocab_size]
        return self.tokenizer.decode(known, skip_special_tokens=not special)


def load_tokenizer(spec: str, field: str = 'data.tokenizer') -> Tokenizer:
    """The tokenizer that `field` names: `bytes`, a `*.model` or a `*.json` file, also of the words
    of a task.

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
    if path.name == 'words.json':
        from nope.data.tasks.words import WordTokenizer  # tasks import this module

        return WordTokenizer.read(path)
    files_of = (path, *map(path.with_name, special_tokens.BESIDE))
    status = [(file.name, file.stat()) for file in files_of if file.is_file()]
    as_it_is = tuple((name, s.st_ino, s.st_size, s.st_mtime_ns) for name, s in status)
    try:
        return _load(path.absolute(), f'{field}={spec!r}', as_it_is)
    except Unusable as error:
        raise ValueError(f'{field}={spec!r}: {error}') from error


def ids_in_use(tokenizer: Tokenizer) -> int:
    """One more than the greatest id of a text, a prefix, BOS or EOS: what a model's vocabulary has
    to hold."""
    greatest = tokenizer.vocab_size - 1
    if isinstance(tokenizer, HuggingFaceTokenizer):
        greatest = tokenizer.greatest_id
    return max(greatest, tokenizer.eos_id, tokenizer.bos_id or 0, *tokenizer.prefix) + 1


def spells_special(tokenizer: Tokenizer, text: str) -> bool:
    """Whether a text spells a special token, which `encode` reads as plain text."""
    found = isinstance(tokenizer, HuggingFaceTokenizer)
    return found and not np.array_equal(tokenizer.encode(text), encode_special(tokenizer, text))


def is_read_whole(tokenizer: Tokenizer, text: str | bytes) -> bool:
    """False for bytes that are no UTF-8, of which a tokenizer of texts reads U+FFFD."""
    if isinstance(text, str) or isinstance(tokenizer, ByteTokenizer):
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def encode_special(tokenizer: Tokenizer, text: str | bytes) -> np.ndarray:
    """Token ids, int32 [n]. Special tokens that the text spells become these tokens. ValueError for
    a tokenizer that cannot read them."""
    if isinstance(tokenizer, HuggingFaceTokenizer):
        return tokenizer.encode(text, special=True)
    if isinstance(tokenizer, SentencePieceTokenizer):
        raise ValueError(
            'a SentencePiece model reads no special tokens in a text; a tokenizer.json does'
        )
    return tokenizer.encode(text)  # bytes: no text spells their EOS or BOS


def decode_special(tokenizer: Tokenizer, ids: Any) -> str:
    """The text of `ids` in which special tokens are spelled, where a tokenizer reads them so."""
    if isinstance(tokenizer, HuggingFaceTokenizer):
        return tokenizer.decode(ids, special=True)
    return tokenizer.decode(ids)


def piece_of(tokenizer: Tokenizer, token: int) -> str:
    """A token as its vocabulary spells it; its number where there are no spellings."""
    if isinstance(tokenizer, HuggingFaceTokenizer):
        return tokenizer.tokenizer.id_to_token(token) or f'[{token}]'
    if isinstance(tokenizer, SentencePieceTokenizer):
        added = {i: content for content, i in tokenizer.added.items()}
        if token < tokenizer.processor.vocab_size():
            return tokenizer.processor.id_to_piece(token)
        return added.get(token, f'[{token}]')
    return f'[{token}]'


def split_stops(
    tokenizer: Tokenizer, stops: Sequence[str]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Ids of the stop texts that are one special token each, which decoded text does not show, and
    the other texts."""
    ids = {stop: _special_id(tokenizer, stop) for stop in stops}
    found = tuple(dict.fromkeys(i for i in ids.values() if i is not None))
    return found, tuple(stop for stop, i in ids.items() if i is None)


def _special_id(tokenizer: Tokenizer, text: str) -> int | None:
    if isinstance(tokenizer, HuggingFaceTokenizer):
        ids = tokenizer.encode(text, special=True).tolist()
        return ids[0] if len(ids) == 1 and ids[0] in tokenizer.special_ids else None
    if isinstance(tokenizer, SentencePieceTokenizer):
        found = tokenizer.processor.piece_to_id(text)
        return found if tokenizer.processor.is_control(found) else tokenizer.added.get(text)
    return None


@functools.lru_cache(maxsize=2)
def _load(path: pathlib.Path, named: str, as_it_is: Any) -> Tokenizer:
    """The tokenizer of a file. as_it_is: sizes and times of the files that make it, as one process
    loads them once: a large vocabulary takes seconds."""
    del as_it_is
    load = _load_sentencepiece if path.suffix == '.model' else _load_hugging_face
    return load(path, named)


def _load_sentencepiece(path: pathlib.Path, named: str) -> SentencePieceTokenizer:
    import sentencepiece

    content = files.read_bytes(path)
    processor = sentencepiece.SentencePieceProcessor()
    try:
        sentencepiece_file.check(content)
        processor.LoadFromSerializedProto(content)
    except (RuntimeError, ValueError) as error:
        raise Unusable(f'not a SentencePiece model, or a damaged one ({error})') from error
    declared = special_tokens.read(path)
    size = processor.vocab_size()
    added = {token['content']: i for i, token in declared.added.items() if i >= size}

    def piece_id(piece: str) -> int | None:
        found = processor.piece_to_id(piece)
        return found if processor.id_to_piece(found) == piece else added.get(piece)

    own = {EOS: processor.eos_id(), BOS: processor.bos_id()}
    eos, bos = _marks(declared, piece_id, {k: i for k, i in own.items() if i >= 0}, named)
    return SentencePieceTokenizer(
        processor=processor,
        added=added,
        vocab_size=max(size, eos + 1, (bos or 0) + 1),
        eos_id=eos,
        bos_id=bos,
        prefix=(bos,) if declared.adds_bos and bos is not None else (),
        stop_ids=tuple(dict.fromkeys((eos, *declared.ends))),
        fingerprint=digest.of_json(['sentencepiece', digest.of_bytes(content), eos, bos]),
    )


def _load_hugging_face(path: pathlib.Path, named: str) -> HuggingFaceTokenizer:
    import tokenizers

    content, declared = files.read_bytes(path), special_tokens.read(path)
    try:
        library = tokenizers.Tokenizer.from_str(content.decode())
    except Exception as error:  # the library raises plain Exception
        raise Unusable(f'not a tokenizer of the tokenizers library ({error})') from error
    changes = _set_prefix_space(library, declared.prefix_space) + _set_blanks(library, declared)
    # A saved truncation length would cut documents, padding would lengthen them.
    library.no_truncation()
    library.no_padding()
    changes += _add_tokens(library, declared)
    # GPTNeoXTokenizer of transformers puts nothing before a text, whatever its file says.
    prefix = () if declared.class_name == 'GPTNeoXTokenizer' else _prefix(library)
    own = {BOS: prefix[0]} if len(prefix) == 1 else {}
    eos, bos = _marks(declared, library.token_to_id, own, named)
    vocabulary = library.get_vocab(with_added_tokens=True)
    return HuggingFaceTokenizer(
        named=named,
        tokenizer=library,
        vocab_size=max(vocabulary.values(), default=-1) + 1,  # ids may have gaps
        eos_id=eos,
        bos_id=bos,
        prefix=prefix,
        stop_ids=tuple(dict.fromkeys((eos, *declared.ends))),
        fingerprint=digest.of_json(
            ['tokenizers', digest.of_bytes(content), eos, bos, *([changes] if changes else [])]
        ),
    )


def _set_prefix_space(library: Any, wanted: bool | None) -> list[Any]:
    """Sets `add_prefix_space` of byte-level parts; the changes, for the fingerprint."""
    import tokenizers

    found: Any = library.pre_tokenizer
    several = type(found) is tokenizers.pre_tokenizers.Sequence
    parts = [*found] if several else [found]
    changed = []
    for part in parts:
        is_level = isinstance(part, tokenizers.pre_tokenizers.ByteLevel)
        if is_level and wanted is not None and part.add_prefix_space != wanted:
            part.add_prefix_space = wanted
            changed.append(['add_prefix_space', wanted])
    return changed


def _set_blanks(library: Any, declared: Declared) -> list[Any]:
    """Marks blanks as `LlamaTokenizer` of transformers does, in a file without byte-level parts
    whatever it says; the changes, for the fingerprint."""
    from tokenizers import decoders, normalizers, pre_tokenizers

    scheme = declared.prepend_scheme
    if scheme is None or '"type":"ByteLevel"' in library.to_str():
        return []
    library.normalizer = normalizers.Sequence([])
    library.pre_tokenizer = pre_tokenizers.Metaspace('▁', scheme, split=False)
    parts = [decoders.Replace('▁', ' '), decoders.ByteFallback(), decoders.Fuse()]
    stripped = [] if scheme == 'never' else [decoders.Strip(' ', 1, 0)]
    library.decoder = decoders.Sequence(parts + stripped)
    return [['blanks', scheme]]


def _add_tokens(library: Any, declared: Declared) -> list[Any]:
    """Makes the declared tokens those of the library, as stock does, and returns what changed.

    One that the vocabulary lacks is added, with its declared id or else the next one. A declared
    mark is special whether its file says so or not.
    """
    import tokenizers

    known = _added(library)
    changes: list[Any] = []
    for number, token in sorted(declared.added.items()):
        content = token['content']
        flags = {flag: token[flag] is True for flag in ADDED_FLAGS if flag in token}
        old = known.get(content)
        if old is None or any(getattr(old, flag) != value for flag, value in flags.items()):
            changes.append([number, content, flags])
    new = {content: i for i, content, _ in changes if library.token_to_id(content) is None}
    library.add_tokens([tokenizers.AddedToken(content, **flags) for _, content, flags in changes])
    for content, number in new.items():
        if (next_id := library.token_to_id(content)) != number:
            raise Unusable(
                f'the files beside it declare {content!r} as token {number}, and its vocabulary '
                f'gives the next one the id {next_id}'
            )
    known = _added(library)
    special = [text for text in declared.marks if not (text in known and known[text].special)]
    special += [text for text in declared.listed if text not in known]
    library.add_special_tokens(special)
    return changes + special


def _added(library: Any) -> dict[str, Any]:
    return {token.content: token for token in library.get_added_tokens_decoder().values()}


def _prefix(library: Any) -> tuple[int, ...]:
    """Tokens that the post-processor puts before a text."""
    if not library.num_special_tokens_to_add(False):
        return ()
    for text in itertools.chain('a', library.get_vocab(with_added_tokens=False)):
        with contextlib.suppress(Exception):  # a vocabulary that does not spell it
            found = library.encode(text, add_special_tokens=True)
            if 0 in found.special_tokens_mask:
                return tuple(found.ids[: found.special_tokens_mask.index(0)])
    return ()


def _marks(
    declared: Declared, piece_id: Callable[[str], int | None], own: Mapping[str, int], named: str
) -> tuple[int, int | None]:
    """EOS and BOS: as the files beside the tokenizer declare them, or as its own file does (`own`);
    EOS also by the ids of the model's files. Else the first of the usual pieces is taken and said,
    but for BOS only where no file could have declared it."""

    def usual(pieces: Sequence[str]) -> str | None:
        return next((piece for piece in pieces if piece_id(piece) is not None), None)

    def named_by(role: str) -> int | None:
        content = declared.tokens.get(role)
        return piece_id(content) if content else None

    eos = named_by(EOS)
    if eos is None:
        eos = own.get(EOS, next(iter(declared.ends), None))
    of_class = piece_id(declared.class_bos) if declared.class_bos else None
    bos = named_by(BOS) if BOS in declared.tokens else own.get(BOS, of_class)
    lacking = {'EOS': special_tokens.EOS_PIECES} if eos is None else {}
    if bos is None and not declared.says:
        lacking['BOS'] = special_tokens.BOS_PIECES
    taken = {role: piece for role, pieces in lacking.items() if (piece := usual(pieces))}
    if taken:
        guess = ', '.join(f'{role} {piece}' for role, piece in taken.items())
        text = f'{named}: no file beside it declares its special tokens; taken are {guess}'
        say(logging.WARNING, text)
    eos = piece_id(taken['EOS']) if 'EOS' in taken else eos
    bos = piece_id(taken['BOS']) if 'BOS' in taken else bos
    if eos is None:
        raise Unusable(
            'it has no end-of-document token: none is declared and none of '
            f'{", ".join(special_tokens.EOS_PIECES)} is in its vocabulary'
        )
    return eos, bos


def _to_bytes(text: str | bytes) -> bytes:
    # JSON can spell lone surrogates, which UTF-8 cannot: they become '?'.
    return text if isinstance(text, bytes) else text.encode('utf-8', 'replace')


def _to_str(text: str | bytes) -> str:
    return _to_bytes(text).decode('utf-8', 'replace')
