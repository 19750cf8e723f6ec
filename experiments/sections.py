"""Sections of a config, as plain data: merging changes into them, and the typed values they
stand for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from nope import data
from nope.data import DataConfig
from nope.evals.scale_grid import Grid
from nope.model import ModelConfig
from nope.model.lam import FORMS, Constant, Form, LogLength
from nope.positions import Position, Rotary, from_section
from nope.sharding import MeshConfig
from nope.training.config import Compute
from nope.training.optim import OptimizerConfig

# Of the model's fields that a config may leave out.
MODEL_DEFAULTS: dict[str, Any] = {
    f.name: f.default
    for f in dataclasses.fields(ModelConfig)
    if f.default is not dataclasses.MISSING and f.name not in ('lam', 'position')
}


def model_config(fields: Mapping[str, Any]) -> ModelConfig:
    """The model of these fields. `lam_layers` may be 'auto': 'nope' where only some layers have no
    position encoding, since the others gain nothing from a scale; else 'all'."""
    known = {f.name for f in dataclasses.fields(ModelConfig)}
    for name in fields:
        if name not in known:
            raise ValueError(f'model.{name} is unknown; accepted: {sorted(known)}')
    if fields['lam_layers'] != 'auto':
        return ModelConfig(**fields)
    model = ModelConfig(**{**fields, 'lam_layers': 'all'})
    some = any(model.without_position) and not all(model.without_position)
    return dataclasses.replace(model, lam_layers='nope') if some else model


def position_for(
    section: Mapping[str, Any], model: ModelConfig, train_length: int, field: str
) -> Position:
    """Another position encoding for a trained model. Of a rotary one for a rotary model, fields
    that the section leaves out stay the model's own: its base above all."""
    rotary = (kind.position for kind in model.kinds if isinstance(kind.position, Rotary))
    own = next(rotary, None)
    if own is None or section.get('kind', 'rotary') != 'rotary':
        return from_section(section, train_length, field)
    made = from_section({'kind': 'rotary', **section}, train_length, field)
    given = {name: getattr(made, name) for name in section if name != 'kind'}
    return dataclasses.replace(own, **given)


def form(name: str, train_length: int) -> Form:
    if name not in FORMS:
        raise ValueError(f'search.form is {name!r}; accepted: {", ".join(FORMS)}')
    return LogLength(train_length) if name == 'log_length' else Constant()


def optimizer(section: dict[str, Any], **more: Any) -> OptimizerConfig:
    names = {f.name for f in dataclasses.fields(OptimizerConfig)} - set(more)
    return OptimizerConfig(**{k: v for k, v in section.items() if k in names}, **more)


def vocab_size(section: dict[str, Any], data_config: DataConfig) -> int:
    """The tokenizer's vocabulary, or a larger one that the config asks for."""
    found = data.load_tokenizer(data_config.tokenizer).vocab_size
    asked = section['vocab_size']
    if asked and asked < found:
        raise ValueError(f'model.vocab_size is {asked}; data.tokenizer has {found} tokens')
    return asked or found


def grid(section: dict[str, Any]) -> Grid:
    return Grid(section['low'], section['high'], section['increment'])


def compute(section: dict[str, Any]) -> Compute:
    """All sizes of `later_mesh` 0: it is `mesh`."""
    meshes = {name: MeshConfig(**section[name]) for name in ('mesh', 'later_mesh')}
    if not any(section['later_mesh'].values()):
        meshes['later_mesh'] = meshes['mesh']
    return Compute(**(section | meshes))


def merge(section: dict[str, Any], changes: Mapping[str, Any], where: str) -> dict[str, Any]:
    """`section` with `changes`, whose keys must exist and whose values must be of its types."""
    merged = dict(section)
    for key, value in changes.items():
        if key not in section:
            raise ValueError(f'{where}.{key} is unknown; accepted: {sorted(section)}')
        old = section[key]
        if key == 'position':
            merged[key] = changed_position(old, value)
            continue
        if isinstance(old, dict):
            merged[key] = merge(old, value, f'{where}.{key}')
            continue
        if isinstance(old, float) and type(value) is int:
            value = float(value)
        if old is not None and type(old) is not type(value):
            raise ValueError(
                f'{where}.{key} is {value!r}; accepted is a {type(old).__name__} as in {old!r}'
            )
        merged[key] = value
    return merged


def changed_position(old: dict[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Another kind has other fields: it takes the old one's place; else fields are changed."""
    return dict(new) if 'kind' in new else old | dict(new)


def at_least(field: str, value: int, least: int) -> int:
    if value < least:
        raise ValueError(f'{field} is {value}; it must be at least {least}')
    return value


def plain(value: Any) -> Any:
    """Nested mappings (ConfigDict among them) as plain dicts, in their order."""
    if isinstance(value, Mapping) or hasattr(value, 'items'):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(plain(item) for item in value)
    return value
