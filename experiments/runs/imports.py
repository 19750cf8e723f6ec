"""Imported models from an entry of `runs`."""

from __future__ import annotations

import dataclasses
import functools
import logging
from typing import Any

from experiments.config import Section
from experiments.models import model_config, position_for
from experiments.runs.directories import check_init
from experiments.runs.spec import ImportSpec, Typed
from experiments.scope import Scope
from nope import data, interop
from nope.identity import execution_fields
from nope.interop import Described, Directory
from nope.model import ModelConfig
from nope.positions import NoPE, Position

FIELDS = ('init', 'nope', 'own_tokenizer', 'model', 'data')
# What a config may say of an imported model; all else stands in its directory.
CHANGES = ('position', 'lam_layers', 'dtype', 'remat', 'attention', 'unroll')

log = logging.getLogger(__name__)


def from_entry(scope: Scope, entry: Section) -> ImportSpec:
    """The model of a directory with what the config says of it.

    ValueError for a change that a checkpoint does not leave open, and for a tokenizer with more
    ids than it has.
    """
    init = entry['init']
    check_init(init, entry.name)
    directory, fingerprint, described = scope.imported.opened(init)
    own = 'own_tokenizer' in entry and entry['own_tokenizer']
    tokenizer = scope.imported.tokenizer_of(init) if own else None
    config = scope.data(entry, scope.length, tokenizer)
    changes = _changes(scope, entry)
    where, path = changes.name, str(directory.path)
    if 'position' in changes:
        field = changes.path('position')
        position = position_for(changes['position'], described.model, scope.length, field)
        _check_position(position, described, field, directory)
        with changes.naming():
            described = interop.describe(directory, position=position)
    else:
        section = scope.section('model')
        asked = 'position' in section and section.inner('position') == {'kind': 'none'}
        if asked and not any(described.model.without_position):
            _say_position(described.model.describe_position(), where, path)
    found = data.ids_in_use(data.load_tokenizer(config.tokenizer))
    if found > described.model.vocab_size:
        raise ValueError(
            f'data.tokenizer has {found} tokens; the model in {path} has '
            f'{described.model.vocab_size}'
        )
    if described.train_length not in (None, scope.length):
        _say_length(described.train_length, scope.length, path)
    section = scope.section('model').changed(dict(changes.without('position')), changes.name)
    fields: dict[str, Any] = {
        f.name: getattr(described.model, f.name) for f in dataclasses.fields(described.model)
    }
    fields['dtype'] = section['dtype']
    fields |= {name: section.execution(name) for name in execution_fields(ModelConfig)}
    if fields['unroll'] is not None:
        fields['unroll'] = min(fields['unroll'], described.model.layers)
    del fields['lam_layers']
    return ImportSpec(
        path=path,
        fingerprint=fingerprint,
        model=model_config(section, **fields),
        data=config,
        seed=scope.seed,
        train_length=scope.length,
        dtype=described.dtype,
        typed=Typed(attention=section.path('attention')),
    )


def _changes(scope: Scope, entry: Section) -> Section:
    """Fields of the entry for the model; `nope` says that it has no position encoding."""
    found = dict(entry.inner('model')) if 'model' in entry else {}
    where = f'{entry.name}.model'
    for name in found:
        if name not in CHANGES:
            raise ValueError(
                f'{where}.{name}: an imported model is what its directory says; accepted: '
                f'{", ".join(CHANGES)}'
            )
    if entry.get('nope'):
        found['position'] = {'kind': 'none'}
    return Section(where, found, scope.ledger)


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


@functools.lru_cache(maxsize=8)
def _say_length(said: int, taken: int, path: str) -> None:
    log.warning(
        'train.length is %d, but the model in %s says that it was trained at %d (train.length=None '
        'takes that)',
        taken,
        path,
        said,
    )
