"""Text files as documents of an evaluation, whole and in memory."""

from __future__ import annotations

import dataclasses
import functools
import logging
import pathlib
from typing import Any

import numpy as np

from experiments.config import Section
from experiments.evaluations.entry import EvalEntry
from experiments.runs import text_of
from nope import data
from nope.data import SPLITS, DataConfig, digest, load_tokenizer, prefix_of
from nope.data.documents import Documents, open_documents
from nope.data.evaluation import EvalBlocks
from nope.data.prefix import begun
from nope.data.sources import Text, folders
from nope.data.sources.text import warn_of_data
from nope.data.tokenizers import is_read_whole
from nope.runtime import files

log = logging.getLogger(__name__)

WHOLE = 'all'  # in place of a split: all files, of text
CORPUS = {'source': '', 'field': 'text', 'record_length': None, 'split': 'test'}


class Texts(Documents):
    """Documents that are held as token arrays, int32. once: as in `Documents`."""

    def __init__(
        self, tokens: list[np.ndarray], name: str, prefix: tuple[int, ...], once: bool
    ) -> None:
        before = np.array(prefix if once else (), np.int32)
        self._tokens = [np.concatenate([before, ids]) for ids in tokens] if len(before) else tokens
        self.name, self.prefix, self._in_windows = name, prefix, () if once else prefix
        self.lengths = np.array([len(ids) for ids in self._tokens], np.int64)
        self.description = f'{len(tokens)} documents of {name}'

    def windows(self, documents: np.ndarray, ends: np.ndarray, size: int) -> np.ndarray:
        """Tokens ends[i] - size .. ends[i] - 1 of documents[i], int32 [n, size]."""
        places = zip(documents, ends, strict=True)
        cut = np.stack([self._tokens[d][end - size : end] for d, end in places])
        return begun(cut, self._in_windows)

    def blocks(self, length: int, count: int) -> EvalBlocks:
        """The first `count` blocks of length + 1 tokens, one behind the other in each document.
        ValueError where no document is as long as one."""
        size = length + 1
        found = [
            (number, ids[start : start + size])
            for number, ids in enumerate(self._tokens)
            for start in range(0, len(ids) - length, size)
        ][:count]
        if not found:
            raise ValueError(
                f'{self.name}: the longest document has {int(self.lengths.max())} tokens; a window '
                f'of {length} needs {size}'
            )
        numbers, blocks = zip(*found, strict=True)
        tokens = begun(np.stack(blocks), self._in_windows)
        return EvalBlocks(tokens, np.array(numbers), len({*numbers}), self.description)


@dataclasses.dataclass(frozen=True)
class TextFiles:
    """A text file as one document, or the files of a folder, by name, as one each.

    Hidden, binary and empty files are left out. fingerprint: of the content of the others."""

    path: str = dataclasses.field(metadata={'identity': False})
    fingerprint: str

    @property
    def name(self) -> str:
        return pathlib.Path(self.path).name

    def documents(self, tokenizer: str, bos: bool | None, once: bool = False) -> Texts:
        """ValueError for files without text, and for one alone that is no UTF-8."""
        known = load_tokenizer(tokenizer)
        tokens = _tokens(self, tokenizer, known.fingerprint)
        return Texts(tokens, self.path, prefix_of(known, bos), once)


def text_files(path: str) -> TextFiles:
    """The files at a path. ValueError for a folder without text, FileNotFoundError for nothing."""
    found = _files(pathlib.Path(path))
    return TextFiles(path, digest.of_json([digest.of_file(file) for file in found]))


@functools.lru_cache(maxsize=1)  # checks, and all evaluations of one text, read it once
def _tokens(texts: TextFiles, tokenizer: str, fingerprint: str) -> list[np.ndarray]:
    """Of each document. fingerprint: of the tokenizer, whose file may change."""
    known, tokens, path = load_tokenizer(tokenizer), [], pathlib.Path(texts.path)
    replaced = 0
    for file in _files(path):
        try:
            text = files.read_utf8(file)
            if file == path:
                text.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f'{file} is no UTF-8 text: {error.reason}') from error
        if text:
            tokens.append(known.encode(text))
            replaced += not is_read_whole(known, text)
    if replaced:
        log.warning('%s: %d files are no UTF-8; bytes that are none are U+FFFD', path, replaced)
    if not tokens:
        empty = 'has only empty files' if path.is_dir() else 'is empty'
        raise ValueError(f'{path} {empty}')
    return tokens


def _files(path: pathlib.Path) -> list[pathlib.Path]:
    refusal = Text(str(path)).refusal
    if path.is_file() and (reason := refusal(path)):
        raise ValueError(f'{path} is no text but {reason}')
    names = folders.list_files('PATH', path, refusal)
    warn_of_data('PATH', path, names)
    return [path / name for name in names] if path.is_dir() else [path]


Corpus = DataConfig | TextFiles


def corpus_of(asked: EvalEntry) -> tuple[Corpus, str]:
    """The entry of `corpora` that the evaluation names, read with the run's tokenizer, and its
    split. Without a name the text that the run was trained on, in the split of `evaluation`.
    ValueError for a split of all files that are no text."""
    if 'corpus' not in asked.entry:
        return text_of(asked.run), asked.section('evaluation').choice('split', SPLITS[1:])
    corpora, name = asked.scope.group('corpora'), asked.entry['corpus']
    if name not in corpora:
        raise ValueError(
            f'{asked.where}.corpus is {name!r}; the config has the corpora {list(corpora)}'
        )
    where = f'corpora.{name}'
    default = {**data.sources.field_defaults(), **CORPUS}
    corpus = Section(where, default, asked.scope.ledger).changed(corpora[name], where)
    split = corpus.choice('split', (*SPLITS, WHOLE))
    kind, _, path = corpus['source'].partition(':')
    if split == WHOLE:
        if kind != 'text':
            raise corpus.error('split', f'accepted for text:PATH; for others {", ".join(SPLITS)}')
        return text_files(path), split
    corpus = corpus.with_defaults({'tokenizer': asked.run.data.tokenizer}).allowing('record_length')
    later = default.keys() - CORPUS.keys() - corpora[name].keys()  # figures were drawn without them
    corpus = corpus.detailing(*data.sources.execution_fields(), *later)
    return data.from_section(corpus, asked.train_length, corpus.path), split


def open_corpus(
    corpus: Corpus, split: str, tokenizer: str, cache: pathlib.Path, **how: Any
) -> Documents:
    """The documents of a corpus. how: `bos` and `once`, as `Documents` have them."""
    if isinstance(corpus, TextFiles):
        return corpus.documents(tokenizer, **how)
    return open_documents(corpus, split=split, cache=cache, **how)
