from __future__ import annotations

import pathlib
from collections.abc import Callable

import numpy as np
import pytest

WORDS = ('alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', 'theta', 'iota', 'kappa')


def make_text(rng: np.random.Generator, size: int) -> str:
    """`size` characters of lines of words and numbers, which hardly repeat."""
    words = [
        f'{w}{n}'
        for w, n in zip(
            rng.choice(WORDS, size // 4), rng.integers(10**6, size=size // 4), strict=True
        )
    ]
    lines = [' '.join(words[i : i + 8]) for i in range(0, len(words), 8)]
    return '\n'.join(lines)[:size]


def write_corpus(folder: pathlib.Path, files: int = 60, size: int = 3000, seed: int = 0) -> None:
    """Text files of between a half and one and a half times `size` bytes."""
    rng = np.random.default_rng(seed)
    for i in range(files):
        path = folder / f'part{i % 3}' / f'file{i:04d}.txt'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(make_text(rng, int(rng.integers(size // 2, size * 3 // 2))))


@pytest.fixture(scope='session')
def corpus(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder of 60 text files of about 3 kB. Not to be changed by tests."""
    folder = tmp_path_factory.mktemp('corpus') / 'text'
    write_corpus(folder)
    return folder


@pytest.fixture(scope='session')
def make_corpus() -> Callable[..., None]:
    """`make_corpus(folder, files=60, size=3000, seed=0)` writes one like `corpus`."""
    return write_corpus


@pytest.fixture(scope='session')
def cache(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A cache that the tests share, so that the standard library is built once."""
    return tmp_path_factory.mktemp('cache')
