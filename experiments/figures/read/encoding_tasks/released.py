"""Released results of the second paper (arXiv 2305.19466) on tasks that are here too.

Accuracies are over all test examples beyond the lengths of training, three seeds each in no known
order. They are without scratchpad, but for addition with a full one, where RoPE has one seed.
Accuracies by length (`released_lengths.json`) are means over seeds.
"""

from __future__ import annotations

import functools
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

SOURCE = 'arXiv 2305.19466'
# Its encodings, in the order of rows that decides equal accuracies. APE is the sinusoidal one.
ENCODINGS = ('RoPE', 'ALiBi', 'T5', 'APE', 'NoPE')

ALL = 'all'
# Category -> its tasks. The paper's ranks are of 17 tasks and 3 seeds.
CATEGORIES: Mapping[str, tuple[str, ...]] = {
    'primitive': ('rsc', 'rsc2x', 'rdc', 'cmc', 'cmc2x', 'mc', 'mc2x', 'mcrv'),
    'math': (
        *('addition', 'polynomial', 'sort_single', 'sort_multi', 'summation', 'parity', 'lego'),
    ),
    'classic': ('scan', 'pcfg'),
}

_ADDITION = 8  # L of addition, of which accuracies by length are not known


@functools.cache
def _json(name: str) -> Mapping[str, Any]:
    return json.loads(pathlib.Path(__file__).with_name(f'{name}.json').read_text())


_DATA = _json('released')
# Category -> encoding -> mean reciprocal rank (Figures 1 and 2).
MRR: Mapping[str, Mapping[str, float]] = _DATA['mean_reciprocal_rank']
# Task -> mean reciprocal rank of no scratchpad among the formats, read off Figure 6: approximate.
# The figure has sorting once.
UNPADDED_MRR: Mapping[str, float] = _DATA['rank_without_scratchpad']


def with_format(task: str, encoding: str, scratchpad: str) -> np.ndarray | None:
    """As `beyond` with a format of scratchpad: 'none', 'full' or another."""
    names = {'none': 'beyond', 'full': 'beyond_with_full_scratchpad'}
    found = _DATA.get(names.get(scratchpad, ''), {}).get(task, {}).get(encoding)
    return None if found is None else np.array(found, np.float64)


def longest(task: str) -> int | None:
    """L of the models of `beyond`; None where none are known."""
    if task == 'addition':
        return _ADDITION
    return _json('released_lengths').get(task, {}).get('longest')


def beyond(task: str, encoding: str) -> np.ndarray | None:
    """[seeds] accuracies beyond the lengths of training, without scratchpad; None where none are
    known."""
    return with_format(task, encoding, 'none')


@functools.cache
def by_length(task: str, encoding: str, longest: int) -> Mapping[int, float]:
    """Length -> mean accuracy over seeds, without scratchpad; empty where none are known, or only
    for another length L of training than `longest`."""
    found = _json('released_lengths').get(task, {})
    if found.get('longest') != longest or encoding not in found['accuracy']:
        return {}
    return dict(zip(found['lengths'], found['accuracy'][encoding], strict=True))


def category(task: str) -> str:
    """Category of a task; '' of one that the paper has not."""
    return next((name for name, tasks in CATEGORIES.items() if task in tasks), '')
