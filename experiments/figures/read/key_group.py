"""Share of keys repeated by the length of the prompt, for every seed, read from passkey records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.given import FigureInput
from experiments.figures.read.by_seed import BySeed, index_of
from nope.records import Records


@dataclasses.dataclass(frozen=True)
class KeyGroup:
    """One model asked for keys in one way, for every seed.

    - names: the records, one a seed. lengths: [n] of prompts, nominal, in tokens, ascending.
    - shares: [seeds, n] of prompts answered with exactly the key, means over depths.
    - prompts: of one length and seed. needles: keys in a prompt. alike: whether they differ in
      one digit.
    - haystack: 'filler' or 'text', around the keys.
    """

    name: str
    label: str
    names: tuple[str, ...]
    seeds: tuple[str, ...]
    train_length: int
    lengths: np.ndarray
    shares: np.ndarray
    prompts: int
    needles: int
    alike: bool
    haystack: str

    @property
    def multiples(self) -> np.ndarray:
        """[n] lengths over L."""
        return self.lengths / self.train_length

    def at(self, multiple: float) -> int | None:
        """Index of the length `multiple` L, None where it was not measured."""
        return index_of(multiple, self.multiples)

    @property
    def asked(self) -> str:
        """Prompts in words: '4 named keys in filler'."""
        alike = ' with four digits in common' if self.alike else ''
        keys = 'one key' if self.needles == 1 else f'{self.needles} named keys{alike}'
        return f'{keys} in {"filler" if self.haystack == "filler" else "held-out text"}'


def read(given: FigureInput, name: str, label: str) -> KeyGroup:
    """The records '<name>/<seed>' of evaluation 'passkey', at least one. ValueError where their
    prompts differ in length, depth or kind."""
    found = BySeed.of(given, name)
    asked = found.shared(_asked, 'their prompts')
    accuracy = found.stacked('accuracy')
    return KeyGroup(
        name=name,
        label=label,
        names=found.names,
        seeds=found.seeds,
        train_length=found.shared(lambda r: int(r.attributes['train_length']), 'L'),
        lengths=np.array(asked['lengths']),
        shares=accuracy.mean(axis=2),
        prompts=int(asked['tests']) * accuracy.shape[2],
        needles=int(asked['needles']),
        alike=bool(asked['alike']),
        haystack=str(asked['haystack']),
    )


def _asked(records: Records) -> dict[str, Any]:
    """Keys and haystack, the same for all seeds; by default one key in filler."""
    facts, accuracy = records.attributes, records['accuracy']
    return {
        'lengths': records.along('length', accuracy.shape[0]).tolist(),
        'depths': records.along('depth', accuracy.shape[1]).tolist(),
        'tests': facts['tests'],
        'template': facts['template'],
        'needles': facts.get('needles', 1),
        'alike': facts.get('alike', False),
        'haystack': facts.get('haystack', 'filler'),
    }


def rows(group: KeyGroup, records: Mapping[str, Records]) -> list[dict[str, Any]]:
    """One row a record and length."""
    return [
        {
            'record': name,
            'group': group.name,
            'label': group.label,
            'seed': seed,
            'length': int(length),
            'length_over_L': float(group.multiples[i]),
            'share_of_keys': float(group.shares[s, i]),
            'prompts': group.prompts,
            'prompt_tokens': float(records[name]['tokens'][i]),
            'needles': group.needles,
            'alike': group.alike,
            'haystack': group.haystack,
        }
        for s, (name, seed) in enumerate(zip(group.names, group.seeds, strict=True))
        for i, length in enumerate(group.lengths)
    ]
