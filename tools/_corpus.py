"""Text files as documents of an evaluation, tokenised in memory."""

from __future__ import annotations

import pathlib

import numpy as np

from nope.data import Tokenizer, digest, prefix_of
from nope.data.documents import Documents
from nope.data.prefix import begun
from nope.data.sources import folders
from nope.data.sources.text import refusal
from nope.runtime import files


class Texts(Documents):
    """Documents that are held as token arrays, int32. once: as in `Documents`. fingerprint: of the
    tokens."""

    def __init__(
        self, tokens: list[np.ndarray], name: str, prefix: tuple[int, ...], once: bool
    ) -> None:
        before = np.array(prefix if once else (), np.int32)
        self._tokens = [np.concatenate([before, ids]) for ids in tokens]
        self.name, self.prefix, self._in_windows = name, prefix, () if once else prefix
        self.lengths = np.array([len(ids) for ids in self._tokens], np.int64)
        self.description = f'{len(tokens)} documents of {name}'
        self.fingerprint = digest.of_json([digest.of_bytes(ids.tobytes()) for ids in tokens])

    def windows(self, documents: np.ndarray, ends: np.ndarray, size: int) -> np.ndarray:
        """Tokens ends[i] - size .. ends[i] - 1 of documents[i], int32 [n, size]."""
        places = zip(documents, ends, strict=True)
        cut = np.stack([self._tokens[d][end - size : end] for d, end in places])
        return begun(cut, self._in_windows)

    def blocks(self, length: int, count: int) -> np.ndarray:
        """The first `count` blocks of length + 1 tokens, one behind the other in each document,
        int32 [n, length + 1]. ValueError where no document is as long as one."""
        size = length + 1
        found = [
            ids[start : start + size]
            for ids in self._tokens
            for start in range(0, len(ids) - length, size)
        ]
        if not found:
            raise ValueError(
                f'{self.name}: the longest document has {int(self.lengths.max())} tokens; a window '
                f'of {length} needs {size}'
            )
        return begun(np.stack(found[:count]), self._in_windows)


def read(
    path: pathlib.Path, tokenizer: Tokenizer, *, bos: bool | None, once: bool = False
) -> Texts:
    """A text file as one document, or the files of a folder, by name, as one each: all of them but
    hidden, binary and empty ones, whatever splits they are of; the same bytes as of the source
    `text`. ValueError for a folder without any, for an empty file and for one alone that is no
    UTF-8."""
    paths = [path]
    if path.is_dir():
        paths = [path / name for name in folders.list_files('PATH', path, refusal)]
    tokens = []
    for file in paths:
        try:
            text = files.read_utf8(file)
            if file == path:
                text.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f'{file} is no UTF-8 text: {error.reason}') from error
        if text:
            tokens.append(tokenizer.encode(text))
    if not tokens:
        raise ValueError(f'{path} has only empty files' if path.is_dir() else f'{path} is empty')
    return Texts(tokens, str(path), prefix_of(tokenizer, bos), once)
