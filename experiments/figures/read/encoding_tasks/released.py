"""Numbers of the second paper (arXiv 2305.19466) that tasks have here too: released results.

Accuracies are those of its result files, over all test examples beyond the lengths of training,
three seeds each, whose order is not known, without scratchpad but for those of addition with a full
one, of which Rotary has one seed. Those by length (`released_lengths.json`) are means over seeds.
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
ENCODINGS = ('Rotary', 'ALiBi', 'T5', 'APE', 'NoPE')

ALL = 'all'
# Category -> its tasks. The paper's ranks are of 17 tasks and 3 seeds.
CATEGORIES: Mapping[str, tuple[str, ...]] = {
    'primitive': ('rsc', 'rsc2x', 'rdc', 'cmc', 'cmc2x', 'mc', 'mc2x', 'mcrv'),
    'math': (
        *('addition', 'polynomial', 'sort_single', 'sort_multi', 'summation', 'parity', 'lego'),
    ),
    'classic': ('scan', 'pcfg'),
}

# Mean reciprocal ranks (Figures 1 and 2).
MRR: Mapping[str, Mapping[str, float]] = {
    'all': {
        'Rotary': 0.329739,
        'ALiBi': 0.502288,
        'T5': 0.54902,
        'APE': 0.215359,
        'NoPE': 0.686928,
    },
    'primitive': {'Rotary': 0.2431, 'ALiBi': 0.434, 'T5': 0.5972, 'APE': 0.2104, 'NoPE': 0.7986},
    'math': {'Rotary': 0.4039, 'ALiBi': 0.5929, 'T5': 0.4484, 'APE': 0.2254, 'NoPE': 0.6127},
    'classic': {'Rotary': 0.4167, 'ALiBi': 0.4583, 'T5': 0.7083, 'APE': 0.2, 'NoPE': 0.5},
}

# Task -> encoding -> accuracy of each seed.
_BEYOND: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    'rsc': {
        'Rotary': (0, 0.0006, 0),
        'ALiBi': (0.279, 0.2655, 0.3234),
        'T5': (0.7423, 0.7393, 0.8321),
        'APE': (0, 0, 0),
        'NoPE': (0.9835, 0.9808, 0.9925),
    },
    'rsc2x': {
        'Rotary': (0, 0, 0),
        'ALiBi': (0.1676, 0.2733, 0.14),
        'T5': (0.4068, 0.7346, 0.5316),
        'APE': (0, 0, 0),
        'NoPE': (0.9731, 0.9633, 0.9844),
    },
    'rdc': {
        'Rotary': (0.0467, 0.0001, 0.0002),
        'ALiBi': (0.1844, 0.1922, 0.1326),
        'T5': (0.9692, 0.9268, 0.9211),
        'APE': (0, 0, 0),
        'NoPE': (0.9474, 0.9895, 0.9647),
    },
    'cmc': {
        'Rotary': (0.0133, 0.0177, 0.0032),
        'ALiBi': (0.344, 0.3192, 0.3299),
        'T5': (0.435, 0.4082, 0.4154),
        'APE': (0.0283, 0.0227, 0.0322),
        'NoPE': (0.2896, 0.3322, 0.2944),
    },
    'cmc2x': {
        'Rotary': (0.0427, 0.0382, 0.0472),
        'ALiBi': (0.5857, 0.5767, 0.5453),
        'T5': (0.5128, 0.5085, 0.5505),
        'APE': (0.0368, 0.0418, 0.0399),
        'NoPE': (0.4403, 0.4239, 0.4279),
    },
    'mc': {
        'Rotary': (0.028, 0.1635, 0.0406),
        'ALiBi': (0.1654, 0.1632, 0.184),
        'T5': (0.2686, 0.2298, 0.2284),
        'APE': (0.0148, 0.0363, 0.018),
        'NoPE': (0.2355, 0.2187, 0.236),
    },
    'mc2x': {
        'Rotary': (0.0473, 0.0556, 0.0574),
        'ALiBi': (0.2113, 0.1489, 0.2239),
        'T5': (0.4049, 0.4757, 0.4645),
        'APE': (0.0086, 0.0111, 0.0133),
        'NoPE': (0.4738, 0.4795, 0.4662),
    },
    'mcrv': {
        'Rotary': (0, 0, 0),
        'ALiBi': (0.1037, 0.1324, 0.1094),
        'T5': (0.1587, 0.1554, 0.106),
        'APE': (0, 0.0007, 0),
        'NoPE': (0.1776, 0.1957, 0.1732),
    },
    'scan': {
        'Rotary': (0.2105, 0.3052, 0.3329),
        'ALiBi': (0.4627, 0.4579, 0.3938),
        'T5': (0.8358, 0.7899, 0.7698),
        'APE': (0.0721, 0.0456, 0.0529),
        'NoPE': (0.771, 0.8284, 0.7924),
    },
    'pcfg': {
        'Rotary': (0.4348, 0.4605, 0.4208),
        'ALiBi': (0.439, 0.4265, 0.4189),
        'T5': (0.4109, 0.4593, 0.4461),
        'APE': (0.3517, 0.3692, 0.3785),
        'NoPE': (0.4174, 0.4437, 0.4386),
    },
    'addition': {
        'Rotary': (0.0009, 0.0002, 0.0002),
        'ALiBi': (0.0786, 0.0738, 0.08),
        'T5': (0.0744, 0.0579, 0.0839),
        'APE': (0.0062, 0.0022, 0.0049),
        'NoPE': (0.0694, 0.0726, 0.1115),
    },
}


_ADDITION = 8  # L of addition, of which accuracies by length are not known

# Accuracies with a full scratchpad.
_FULL: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    'addition': {
        'Rotary': (0.0655,),
        'ALiBi': (0.0902, 0.1253, 0.1359),
        'T5': (0.1726, 0.1486, 0.1658),
        'APE': (0.0736, 0.0727, 0.0779),
        'NoPE': (0.1466, 0.1801, 0.1699),
    },
}

# Mean reciprocal rank of no scratchpad among the formats, read off Figure 6: approximate. The
# figure has sorting once.
UNPADDED_MRR: Mapping[str, float] = {
    'addition': 0.13,
    'lego': 0.83,
    'parity': 0.67,
    'polynomial': 1.0,
    'sort_single': 0.9,
    'sort_multi': 0.9,
    'summation': 0.67,
}


def with_format(task: str, encoding: str, scratchpad: str) -> np.ndarray | None:
    """As `beyond` with a format of scratchpad: 'none', 'full' or another."""
    if scratchpad == 'none':
        return beyond(task, encoding)
    found = _FULL.get(task, {}).get(encoding) if scratchpad == 'full' else None
    return None if found is None else np.array(found, np.float64)


def longest(task: str) -> int | None:
    """L of the models of `beyond`; None where none are known."""
    return _ADDITION if task == 'addition' else _by_length().get(task, {}).get('longest')


def beyond(task: str, encoding: str) -> np.ndarray | None:
    """[seeds] accuracies beyond the lengths of training, without scratchpad; None where none are
    known."""
    found = _BEYOND.get(task, {}).get(encoding)
    return None if found is None else np.array(found, np.float64)


@functools.cache
def by_length(task: str, encoding: str, longest: int) -> Mapping[int, float]:
    """Length -> mean accuracy over seeds, without scratchpad; empty where none are known, or only
    for another length L of training than `longest`."""
    found = _by_length().get(task, {})
    if found.get('longest') != longest or encoding not in found['accuracy']:
        return {}
    return dict(zip(found['lengths'], found['accuracy'][encoding], strict=True))


@functools.cache
def _by_length() -> Mapping[str, Any]:
    return json.loads(pathlib.Path(__file__).with_name('released_lengths.json').read_text())


def category(task: str) -> str:
    """Category of a task; '' of one that the paper has not."""
    return next((name for name, tasks in CATEGORIES.items() if task in tasks), '')
