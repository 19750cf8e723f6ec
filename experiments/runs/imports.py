"""Imported models from an entry of `runs`."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

from experiments.config import Section
from experiments.models import model_config, position_for
from experiments.runs.directories import GLOBAL, Opened, check_init
from experiments.runs.spec import ImportSpec, Typed
from experiments.scope import Scope
from nope import data, interop
from nope.identity import execution_fields
from nope.interop import Described
from nope.model import ModelConfig
from nope.positions import NoPE
from nope.runtime.saying import say

FIELDS = ('init', 'nope', 'own_tokenizer', 'model', 'data')
# What a config may say of an imported model; all else stands in its directory.
CHANGES = ('position', 'lam_layers', 'dtype', 'remat', 'attention', 'unroll')


def from_entry(scope: Scope, entry: Section) -> ImportSpec:
    """The model of a directory with what the config says of it.

    ValueError for a change that a checkpoint does not leave open, and for a tokenizer with more
    ids than it has.
    """
    init = entry['init']
    check_init(init, entry.name)
    opened = scope.imported.opened(init)
    own = 'own_tokenizer' in entry and entry['own_tokenizer']
    tokenizer = scope.imported.tokenizer_of(init) if own else None
    config, path = scope.data(entry, scope.length, tokenizer), str(opened.directory.path)
    changes, described = _described(scope, entry, opened)
    found = data.ids_in_use(data.load_tokenizer(config.tokenizer))
    if found > described.model.vocab_size:
        raise ValueError(
            f'data.tokenizer has {found} tokens; the model in {path} has '
            f'{described.model.vocab_size}'
        )
    if described.train_length not in (None, scope.length):
        say(
            logging.WARNING,
            f'train.length is {scope.length}, but the model in {path} says that it was trained at '
            f'{described.train_length} (train.length=None takes that)',
        )
    section = scope.section('model').changed(dict(changes.without('position')), changes.name)
    own_lambda = opened.directory.brings_lambda
    if own_lambda and section['lam_layers'] not in ('auto', 'all'):
        rule = f"accepted: 'all'; the model in {path} has multipliers of its own in all heads"
        raise section.error('lam_layers', rule)
    fields: dict[str, Any] = {
        f.name: getattr(described.model, f.name) for f in dataclasses.fields(described.model)
    }
    fields['dtype'] = section['dtype']
    fields |= {name: section.execution(name) for name in execution_fields(ModelConfig)}
    if fields['unroll'] is not None:
        fields['unroll'] = min(fields['unroll'], described.model.layers)
    del fields['lam_layers']
    model = model_config(section, **fields)
    return ImportSpec(
        path=path,
        fingerprint=opened.fingerprint,
        model=dataclasses.replace(model, lam_layers='all') if own_lambda else model,
        data=config,
        seed=scope.seed,
        train_length=scope.length,
        dtype=described.dtype,
        searched=own_lambda,
        typed=Typed(attention=section.path('attention')),
    )


def _described(scope: Scope, entry: Section, opened: Opened) -> tuple[Section, Described]:
    """Fields of the entry for the model, and the model with its position encoding. `nope` takes it
    away, or from the layers that see all keys alone. Where these turn by a RoPE of their own,
    another one is theirs alone too."""
    found = dict(entry.inner('model')) if 'model' in entry else {}
    where = f'{entry.name}.model'
    for name in found:
        if name not in CHANGES:
            raise ValueError(
                f'{where}.{name}: an imported model is what its directory says; accepted: '
                f'{", ".join(CHANGES)}'
            )
    nope = entry.get('nope')
    if nope:
        found['position'] = {'kind': 'none'}
    changes = Section(where, found, scope.ledger)
    directory, _, described = opened
    if nope == GLOBAL:
        dropped = described.model.with_position(NoPE(), limited=False)
        if dropped == described.model or not any(k.is_limited for k in described.model.kinds):
            rule = (
                f'the model in {directory.path} needs layers with a window, and others without one '
                'that have a position encoding'
            )
            raise entry.error('nope', rule)
    model, says = described.model, described.model.describe_position()
    if 'position' in changes:
        field = changes.path('position')
        limited = nope is True or (nope != GLOBAL and not _turn_apart(model))
        given = changes['position'], model, scope.length, field
        position = position_for(*given, limited=limited)
        kinds = {type(kind.position) for kind in model.kinds}
        if not isinstance(position, NoPE) and type(position) not in kinds:
            raise ValueError(
                f'{field} is {position.describe()}; the model in {directory.path} has {says}'
            )
        with changes.naming():
            return changes, interop.describe(directory, position=position, limited=limited)
    section = scope.section('model')
    asked = 'position' in section and section.inner('position') == {'kind': 'none'}
    if asked and not any(model.without_position):
        say(
            logging.WARNING,
            f'{entry.name}: the model in {directory.path} has {says} positions; where it was '
            'trained without them, set nope=True',
        )
    return changes, described


def _turn_apart(model: ModelConfig) -> bool:
    """Whether layers with a window turn by another RoPE than those that see all keys, as in Gemma
    3, whose own scaling is of the latter alone."""
    near, far = (
        {k.position for k in model.kinds if k.is_limited == limited and k.position != NoPE()}
        for limited in (True, False)
    )
    return bool(near and far and near != far)
