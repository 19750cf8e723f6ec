"""Models of other libraries that a config names: `init = 'hf:DIR'`."""

from __future__ import annotations

import dataclasses
import functools
import logging
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from experiments import sections
from experiments.spec import ImportSpec
from nope import data, interop
from nope.data import DataConfig
from nope.interop import Described, Directory
from nope.positions import NoPE, Position

PREFIX = 'hf:'
# What a config may say of an imported model; all else stands in its directory.
ACCEPTED = ('position', 'lam_layers', 'dtype', 'remat', 'attention', 'unroll')

log = logging.getLogger(__name__)


class Opened(NamedTuple):
    """A directory whose headers were read, which it is, and what it says of its model."""

    directory: Directory
    fingerprint: str
    described: Described


def is_import(init: str) -> bool:
    return init.startswith(PREFIX)


def check_init(init: str, where: str) -> None:
    """Raises ValueError unless `init` names a Hugging Face directory."""
    if not is_import(init):
        raise ValueError(
            f'{where}.init is {init!r}; accepted is hf:DIR, a Hugging Face directory, as in '
            '--config.init=hf:DIR (a run of this config only with search or finetune)'
        )


@functools.lru_cache(maxsize=8)
def _opened(path: str) -> Opened:
    directory = interop.open_directory(pathlib.Path(path))
    return Opened(directory, interop.fingerprint(directory), interop.describe(directory))


class Imported:
    """The directories that the runs of a config name, and what they share."""

    def __init__(self, runs: Mapping[str, Any], *, shapeless: bool) -> None:
        """shapeless: the config has no shape to train a model of, so that every run that starts
        from no other has to be imported."""
        for name, entry in runs.items():
            first = 'search' not in entry and 'finetune' not in entry
            if (shapeless and first) or entry.get('nope'):
                check_init(entry.get('init', ''), f'runs.{name}')
        inits = (str(entry.get('init', '')) for entry in runs.values())
        self._inits = sorted({init for init in inits if is_import(init)})

    def opened(self, init: str) -> Opened:
        """ValueError for a directory that cannot be read, or holds no model we know."""
        path = init.removeprefix(PREFIX)
        if not path:
            raise ValueError(f'init is {init!r}; accepted is hf:DIR, a Hugging Face directory')
        return _opened(path)

    def train_length(self) -> int:
        """The length that the imported models were trained at, where `train.length` is 0."""
        found = {self.opened(init).described.train_length for init in self._inits}
        if len(found) != 1 or None in found:
            raise ValueError(
                f'train.length is 0, and the imported models ({", ".join(self._inits) or "none"}) '
                f'do not say one length (found: {sorted(map(str, found))}); give train.length'
            )
        return found.pop() or 0

    def tokenizer(self) -> str:
        """The tokenizer of the one imported model, where `data.tokenizer` is empty."""
        if len(self._inits) != 1:
            raise ValueError(
                "data.tokenizer is ''; accepted: 'bytes', a tokenizer file, or nothing where "
                f'exactly one model is imported (here: {", ".join(self._inits) or "none"})'
            )
        return self.tokenizer_of(self._inits[0])

    def tokenizer_of(self, init: str) -> str:
        """The tokenizer in a model's directory. ValueError where it holds none."""
        directory = self.opened(init).directory.path
        found = interop.tokenizer_in(directory)
        if found is None:
            raise ValueError(
                f"data.tokenizer is '', and {directory} holds neither tokenizer.json nor "
                'tokenizer.model; give data.tokenizer'
            )
        return found


def import_spec(
    opened: Opened,
    section: Mapping[str, Any],
    changes: Mapping[str, Any],
    *,
    where: str,
    data: DataConfig,
    seed: int,
    train_length: int,
) -> ImportSpec:
    """The model of a directory with what the config says of it.

    section: the config's model section; changes: the run's, named `where`. ValueError for a change
    that a checkpoint does not leave open, and for a tokenizer with more ids than it has.
    """
    for name in changes:
        if name not in ACCEPTED:
            raise ValueError(
                f'{where}.{name}: an imported model is what its directory says; accepted: '
                f'{", ".join(ACCEPTED)}'
            )
    directory, fingerprint, described = opened
    if 'position' in changes:
        position = sections.position_for(
            changes['position'], described.model, train_length, f'{where}.position'
        )
        _check_position(position, described, f'{where}.position', directory)
        described = interop.describe(directory, position=position)
    elif section.get('position') == {'kind': 'none'} and not any(described.model.without_position):
        _say_position(described.model.describe_position(), where, str(directory.path))
    _check_tokenizer(data, described, directory)
    _warn_of_length(described, train_length, directory)
    free = sections.MODEL_DEFAULTS | dict(section) | dict(changes)
    fields = {f.name: getattr(described.model, f.name) for f in dataclasses.fields(described.model)}
    fields |= {name: free[name] for name in ACCEPTED if name != 'position'}
    fields['unroll'] = min(fields['unroll'], described.model.layers)
    return ImportSpec(
        path=str(directory.path),
        fingerprint=fingerprint,
        model=sections.model_config(fields),
        data=data,
        seed=seed,
        train_length=train_length,
        dtype=described.dtype,
    )


def _check_position(
    position: Position, described: Described, field: str, directory: Directory
) -> None:
    """ValueError for an encoding that the weights were not made for."""
    kinds = {type(kind.position) for kind in described.model.kinds}
    if not isinstance(position, NoPE) and type(position) not in kinds:
        raise ValueError(
            f'{field} is {position.describe()}; the model in {directory.path} has '
            f'{described.model.describe_position()}'
        )


@functools.lru_cache(maxsize=8)
def _say_position(found: str, where: str, path: str) -> None:
    log.warning(
        '%s: the model in %s has %s positions; where it was trained without them, set nope=True',
        where.removesuffix('.model'),
        path,
        found,
    )


def _check_tokenizer(config: DataConfig, described: Described, directory: Directory) -> None:
    found = data.load_tokenizer(config.tokenizer).vocab_size
    if found > described.model.vocab_size:
        raise ValueError(
            f'data.tokenizer has {found} tokens; the model in {directory.path} has '
            f'{described.model.vocab_size}'
        )


@functools.lru_cache(maxsize=8)
def _say_length(said: int, taken: int, path: str) -> None:
    log.warning(
        'train.length is %d, but the model in %s says that it was trained at %d (train.length=0 '
        'takes that)',
        taken,
        path,
        said,
    )


def _warn_of_length(described: Described, train_length: int, directory: Directory) -> None:
    if described.train_length not in (None, train_length):
        _say_length(described.train_length, train_length, str(directory.path))
