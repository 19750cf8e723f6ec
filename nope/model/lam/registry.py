"""Registry of the laws of lambda, and their construction from a config section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nope.model.lam.base import Law
from nope.model.lam.constant import Constant
from nope.model.lam.given import GivenLaw
from nope.model.lam.info_scale import InfoScale
from nope.model.lam.log_floor import LogFloor
from nope.model.lam.log_length import LogLength
from nope.model.lam.log_offset import LogOffset
from nope.model.lam.log_position import LogPosition
from nope.model.lam.log_ratio import LogRatio
from nope.model.lam.log_ratio_position import LogRatioPosition
from nope.model.lam.log_square import LogSquare
from nope.model.lam.power import Power
from nope.model.lam.scalable_softmax import ScalableSoftmax
from nope.model.lam.scalable_softmax_bias import ScalableSoftmaxBias
from nope.model.lam.searched_offset import SearchedOffset
from nope.model.lam.yarn_temperature import YarnTemperature
from nope.runtime import sections
from nope.runtime.errors import describe, one_of

LAWS: dict[str, type[Law]] = {
    'constant': Constant,
    'log_length': LogLength,
    'log_position': LogPosition,
    'log_floor': LogFloor,
    'log_ratio_position': LogRatioPosition,
    'log_offset': LogOffset,
    'searched_offset': SearchedOffset,
    'power': Power,
    'log_ratio': LogRatio,
    'yarn_temperature': YarnTemperature,
    'info_scale': InfoScale,
    'log_square': LogSquare,
    'scalable_softmax': ScalableSoftmax,
    'scalable_softmax_bias': ScalableSoftmaxBias,
}


def from_section(
    section: str | Mapping[str, Any], field: str, *, train_length: int, head_dim: int
) -> Law:
    """The law that `{'kind': NAME, ...fields}` describes, or a bare name.

    field: the section's name in messages. train_length, head_dim: of the model, for laws that have
    a field of that name and are not given another. ValueError for an unknown kind or field, or a
    value of the wrong type or out of range.
    """
    if isinstance(section, str):
        kind = sections.kind_of(section, LAWS, field)
        fields: dict[str, Any] = {}
    elif isinstance(section, Mapping):
        kind, fields = sections.kind_and_fields(section, LAWS, field)
    else:
        raise ValueError(describe(field, section, f"{one_of(LAWS)}, {{'kind': NAME, ...}}"))
    of_model = {'train_length': train_length, 'head_dim': head_dim}
    known = {n: value for n, value in of_model.items() if n in sections.fields_of(kind)}
    return sections.make(kind, {**known, **fields}, field)


def given_from_section(
    section: str | Mapping[str, Any] | None, field: str, *, train_length: int, head_dim: int
) -> GivenLaw | None:
    """The law that `{'kind': NAME, 'coefficient': NUMBER, ...}` gives a model; None for None.

    `first` and `heads` are fields of `GivenLaw`, all others of its law. Arguments and errors as
    `from_section`.
    """
    if section is None:
        return None
    given: dict[str, Any] = {}
    if isinstance(section, Mapping):
        own = sections.fields_of(GivenLaw).keys() - {'law'}
        given = {name: value for name, value in section.items() if name in own}
        section = {name: value for name, value in section.items() if name not in own}
    law = from_section(section, field, train_length=train_length, head_dim=head_dim)
    return sections.make(GivenLaw, {'law': law, **given}, field)
