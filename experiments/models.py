"""Model sections of a config as typed models, and position encodings for trained models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.config import Section
from nope.model import ModelConfig, lam
from nope.positions import Position, RoPE, Split, Unscaled, from_section
from nope.runtime.errors import FieldError, describe

LAW_MOVED = "acts in heads without a position encoding, 'nope', and these would be others"
# Of the model's fields that a config may leave out.
MODEL_DEFAULTS: dict[str, Any] = {
    f.name: f.default
    for f in dataclasses.fields(ModelConfig)
    if f.default is not dataclasses.MISSING and f.name not in ('lam', 'position', 'position_range')
}


def model_config(section: Section, **given: Any) -> ModelConfig:
    """The model of a section. `lam_layers` may be 'auto': 'nope' where only some heads have no
    position encoding, since the others gain nothing from a multiplier; else 'all'."""
    lam_layers = section['lam_layers']
    if lam_layers != 'auto':
        return section.make(ModelConfig, lam_layers=lam_layers, **given)
    model = section.make(ModelConfig, lam_layers='all', **given)
    without_LN = model.heads_without_position
    some = without_LN.any() and not without_LN.all()
    return dataclasses.replace(model, lam_layers='nope') if some else model


def coefficient(section: Section, field: str) -> lam.Coefficient:
    """A coefficient of lambda: a number, or several for laws that have them. ValueError for what
    is neither; `Law.check_start` checks how many there are."""
    value = section[field]
    several = value if isinstance(value, tuple) else (value,)
    if not several or any(type(number) not in (int, float) for number in several):
        raise section.error(field, 'accepted: a number, or a tuple of them for laws with several')
    return tuple(map(float, value)) if isinstance(value, tuple) else float(value)


def position_for(
    section: Mapping[str, Any],
    model: ModelConfig,
    train_length: int,
    field: str,
    *,
    limited: bool = True,
) -> Position:
    """Another position encoding for a trained model. RoPE for a RoPE model, in a split too, keeps
    its own fields, its base above all, where the section leaves them out. limited: whether it is
    also for layers with a window or chunks.

    ValueError for a section that is none, for another kind of scaling than the model was trained
    with, and where layers differ in a field that is left out.
    """
    if not isinstance(section, Mapping):
        raise ValueError(describe(field, section, "it takes named values, as {'kind': 'none'}"))
    kinds = [kind for kind in model.kinds if limited or not kind.is_limited]
    own = [kind.position for kind in kinds if isinstance(kind.position, RoPE)]
    if own and section.get('kind') == 'split' and 'local' in section:
        local = position_for(section['local'], model, train_length, f'{field}.local')
        split = from_section(section, train_length, field)
        assert isinstance(split, Split)
        return dataclasses.replace(split, local=local)
    if not own or section.get('kind', 'rope') != 'rope':
        return from_section(section, train_length, field)
    made = from_section({'kind': 'rope', **section}, train_length, field)
    given = {name: getattr(made, name) for name in section if name != 'kind'}
    for position in own:
        if type(position.scaling) not in (Unscaled, type(given.get('scaling', position.scaling))):
            raise ValueError(
                f'{field}.scaling, {made.describe()}, would take the place of the scaling that the '
                f'model was trained with, {position.describe()}; accepted: that one, with any '
                'numbers, or none given'
            )
    changed = [dataclasses.replace(position, **given) for position in own]
    for name in (f.name for f in dataclasses.fields(RoPE)):
        if len(several := {getattr(position, name) for position in changed}) > 1:
            raise ValueError(
                f"{field} leaves out {name}, in which the model's RoPE layers differ "
                f'({", ".join(map(str, sorted(several, key=str)))}): give one for all'
            )
    return changed[0]


def with_position(
    model: ModelConfig, position: Position, section: Section, searched: bool
) -> ModelConfig:
    """A trained model with the position encoding that `position` of the section gives. ValueError
    names that field for one that does not fit the rest of the model. So it does where the model's
    temperature or lambda, trained with it or `searched`, would move to other heads."""
    try:
        with section.naming():
            changed = model.with_position(position)
    except FieldError as error:
        rule = f"the model's {error.field} is {error.value!r}: {error.rule}"
        raise section.error('position', rule) from error
    if not same_law_heads(changed, model):
        rule = f"the model's law {LAW_MOVED}"
        raise section.error('position', rule)
    if same_scaled_heads(changed, model):
        return changed
    moved = [f'temperature, {model.temperature!r},'] if model.temperature != 'none' else []
    moved += ['lambda'] if searched or model.lam != lam.Constant() else []
    if moved:
        raise section.error(
            'position',
            f"the model's {' and '.join(moved)} would act in other heads than before, since "
            f'lam_layers is {model.lam_layers!r}',
        )
    return changed


def same_scaled_heads(model: ModelConfig, init: ModelConfig) -> bool:
    """Whether lambda and the temperature act in the same heads of two models of one shape."""
    return np.array_equal(model.heads_with_lam, init.heads_with_lam)


def same_law_heads(model: ModelConfig, init: ModelConfig) -> bool:
    """Whether the law that a model was given acts in the same heads of two models of one shape."""
    follows = model.law is not None and model.law.heads == 'nope'
    without = model.heads_without_position, init.heads_without_position
    return not follows or np.array_equal(*without)
