"""Train, validation and test: the split of a document, by the names of files or by a hash."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nope.data import digest

SPLITS = ('train', 'validation', 'test')
TRAIN_SHARE, VALIDATION_SHARE = 0.90, 0.05
_NAMES = {
    'train': 'train',
    'validation': 'validation',
    'valid': 'validation',
    'val': 'validation',
    'dev': 'validation',
    'test': 'test',
}
_SPLIT_FILE = re.compile(rf'({"|".join(_NAMES)})([-.].*)?')


def named_splits(names: Sequence[str]) -> dict[str, str]:
    """{file: split} where a folder declares its splits by name, else {}.

    A name declares a split by its top-level folder (`validation/...`) or, at the top level,
    by how it begins (`validation.jsonl`, `train-00000-of-00010.parquet`); valid, val and dev
    stand for validation too. It counts where train and at least one other split are declared;
    files outside of the declared splits are then not part of the corpus. It counts too where every
    file declares a split and none is train: a corpus to measure on.
    """
    splits = {}
    for name in names:
        head, slash, _ = name.partition('/')
        match = _SPLIT_FILE.fullmatch(head)
        if (slash and head in _NAMES) or (not slash and match):
            splits[name] = _NAMES[head if slash else match[1]]  # type: ignore[index]
    declared = set(splits.values())
    only_measured = len(splits) == len(names) and 'train' not in declared
    return splits if only_measured or ('train' in declared and len(declared) > 1) else {}


def split_of(identity: bytes) -> str:
    """90 % train, 5 % validation, 5 % test, by a hash of what identifies a document."""
    place = digest.fraction(identity)
    if place < TRAIN_SHARE:
        return 'train'
    return 'validation' if place < TRAIN_SHARE + VALIDATION_SHARE else 'test'
