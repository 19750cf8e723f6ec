"""Train, validation and test: the split of a document, by the names of files or by a hash."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

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
_LOOSELY = re.compile(rf'({"|".join(_NAMES)})([-_.].*)?', re.IGNORECASE)


def named_splits(names: Sequence[str]) -> dict[str, str]:
    """{file: split} where a folder declares its splits by name, else {}.

    A name declares a split by its top-level folder (`validation/...`) or, at the top level,
    by how it begins (`validation.jsonl`, `train-00000-of-00010.parquet`); valid, val and dev
    stand for validation too. It counts where train and at least one other split are declared;
    files outside of the declared splits are then not part of the corpus. It counts too where every
    file declares a split and none is train: a corpus to measure on.

    If every file declares a split, a name may also do so in capitals, before an underscore
    (`train_0.jsonl`), or by a folder further down (`en/train/...`). Among other files such names
    are those of programs.
    """
    if not all(map(_declared, names)):
        loosely = {name: split for name in names if (split := _loosely(name))}
        if len(loosely) == len(names) and _enough(set(loosely.values())):
            return loosely
    splits = {name: split for name in names if (split := _declared(name))}
    declared = set(splits.values())
    only_measured = len(splits) == len(names) and 'train' not in declared
    return splits if only_measured or _enough(declared) else {}


def _enough(declared: Set[str]) -> bool:
    return 'train' in declared and len(declared) > 1


def _declared(name: str) -> str | None:
    head, slash, _ = name.partition('/')
    match = _SPLIT_FILE.fullmatch(head)
    if slash:
        return _NAMES.get(head)
    return _NAMES[match[1]] if match else None


def _loosely(name: str) -> str | None:
    *folders, file = name.split('/')
    for folder in folders:
        if folder.lower() in _NAMES:
            return _NAMES[folder.lower()]
    match = _LOOSELY.fullmatch(file)
    return _NAMES[match[1].lower()] if match else None


def split_of(identity: bytes) -> str:
    """90 % train, 5 % validation, 5 % test, by a hash of what identifies a document."""
    place = digest.fraction(identity)
    if place < TRAIN_SHARE:
        return 'train'
    return 'validation' if place < TRAIN_SHARE + VALIDATION_SHARE else 'test'
