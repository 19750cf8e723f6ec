"""Hugging Face directories that the runs of a config name: `init = 'hf:DIR'`."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from nope import interop
from nope.data import load_tokenizer
from nope.interop import Described, Directory

PREFIX = 'hf:'
GLOBAL = 'global'  # `nope` of the layers alone that see all keys


class Opened(NamedTuple):
    """A directory whose headers were read, which it is, and what it says of its model."""

    directory: Directory
    fingerprint: str
    described: Described

    @classmethod
    @functools.lru_cache(maxsize=8)
    def of(cls, path: str) -> Opened:
        directory = interop.open_directory(pathlib.Path(path))
        return cls(directory, interop.fingerprint(directory), interop.describe(directory))


def is_import(init: Any) -> bool:
    return isinstance(init, str) and init.startswith(PREFIX)


def check_init(init: str | None, where: str) -> None:
    """Raises ValueError unless `init` names a Hugging Face directory."""
    if not is_import(init):
        raise ValueError(
            f'{where}.init is {init!r}; accepted is hf:DIR, a Hugging Face directory, as in '
            '--config.init=hf:DIR (a run of this config only with search, finetune, lam, '
            'without or model.temperature)'
        )


class Imported:
    """The directories that the runs of a config name, and what they share."""

    def __init__(self, runs: Mapping[str, Any], *, shapeless: bool) -> None:
        """shapeless: the config has no shape to train a model of, so that every run that starts
        from no other has to be imported."""
        for name, entry in runs.items():
            later = {'search', 'finetune', 'lam'}.intersection(entry)
            if shapeless and not later and entry.get('init') not in runs:
                check_init(entry.get('init'), f'runs.{name}')
            for field, more in (('nope', (GLOBAL,)), ('own_tokenizer', ())):
                value, accepted = entry.get(field, False), (True, False, *more)
                if type(value) not in (bool, str) or value not in accepted:
                    said = ', '.join(map(repr, accepted))
                    raise ValueError(f'runs.{name}.{field} is {value!r}; accepted: {said}')
            if entry.get('nope') and not entry.get('init'):
                raise ValueError(
                    f'runs.{name}.nope is {entry["nope"]!r}; it needs runs.{name}.init=hf:DIR, the '
                    'model that was trained without positions'
                )
        inits = (entry.get('init') for entry in runs.values())
        self._inits = sorted({init for init in inits if is_import(init)})

    def opened(self, init: str) -> Opened:
        """ValueError for a directory that cannot be read, or holds no model we know."""
        path = init.removeprefix(PREFIX)
        if not path:
            raise ValueError(f'init is {init!r}; accepted is hf:DIR, a Hugging Face directory')
        return Opened.of(path)

    def train_length(self) -> int:
        """The length that the imported models were trained at, where `train.length` is None."""
        found = {self.opened(init).described.train_length for init in self._inits}
        if len(found) != 1 or None in found:
            raise ValueError(
                f'train.length is None, and the imported models '
                f'({", ".join(self._inits) or "none"}) do not say one length (found: '
                f'{sorted(map(str, found))}); give train.length'
            )
        return found.pop() or 0

    def tokenizer(self) -> str:
        """The tokenizer that the imported models share, where `data.tokenizer` is None."""
        if not self._inits:
            raise ValueError(
                "data.tokenizer is None; accepted: 'bytes', a tokenizer file, or None where models "
                'are imported'
            )
        found = [self.tokenizer_of(init) for init in self._inits]
        if len({load_tokenizer(path).fingerprint for path in found}) > 1:
            raise ValueError(
                'data.tokenizer is None, and the imported models '
                f'({", ".join(self._inits)}) have different tokenizers; give data.tokenizer'
            )
        return found[0]

    def tokenizer_of(self, init: str) -> str:
        """The tokenizer in a model's directory. ValueError where it holds none."""
        directory = self.opened(init).directory.path
        found = interop.tokenizer_in(directory)
        if found is None:
            raise ValueError(
                f'data.tokenizer is None, and {directory} holds neither tokenizer.json nor '
                'tokenizer.model; give data.tokenizer'
            )
        return found
