"""Decoding options from a harness task's `generation_kwargs`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from nope.evals.generation import Options
from nope.model.decoding import Sampling

NEW_TOKENS = 256  # the harness's own default
LIMITS = ('max_gen_toks', 'max_new_tokens', 'max_tokens', 'max_completion_tokens')
SAMPLING = ('do_sample', 'temperature', 'top_k', 'top_p')
SEARCH = ('num_beams', 'length_penalty', 'early_stopping')
ACCEPTED = ('until', *LIMITS, *SAMPLING, *SEARCH)


def options_of(
    arguments: Mapping[str, Any], *, stop_ids: tuple[int, ...], seed: int
) -> tuple[Options, tuple[str, ...]]:
    """Decoding options, and the strings before whose first occurrence a text ends.

    arguments: a task's `generation_kwargs`. A token of stop_ids ends a text too. Texts are sampled
    where do_sample is true, at temperature 1 unless one is given, or where it is not given and
    temperature is above 0. What is not given is off. ValueError for another key and for a value
    that is not accepted.
    """
    unknown = sorted(set(arguments) - set(ACCEPTED))
    if unknown:
        raise ValueError(
            f'generation_kwargs.{unknown[0]} is not known; accepted: {", ".join(ACCEPTED)}'
        )
    limits = [name for name in LIMITS if arguments.get(name) is not None]
    if len(limits) > 1:
        raise ValueError(f'generation_kwargs has {" and ".join(limits)}; one of them is accepted')
    until = arguments.get('until')
    stops = [until] if isinstance(until, str) else until or []
    if not all(isinstance(stop, str) for stop in stops):
        raise ValueError(f'generation_kwargs.until is {until!r}; accepted: a string or a list')
    options = Options(
        new_tokens=_number(arguments, limits[0] if limits else LIMITS[0], NEW_TOKENS),
        stop_ids=stop_ids,
        beams=_number(arguments, 'num_beams', 1),
        length_penalty=_number(arguments, 'length_penalty', 1.0),
        early_stopping=arguments.get('early_stopping', False),
        seed=seed,
        **_sampling(arguments),
    )
    return options, tuple(stop for stop in stops if stop)


def _sampling(arguments: Mapping[str, Any]) -> dict[str, Any]:
    samples = arguments.get('do_sample')
    if samples is None:
        samples = _number(arguments, 'temperature', 0.0) != 0
    if not isinstance(samples, bool):
        raise ValueError(f'generation_kwargs.do_sample is {samples!r}; accepted: true or false')
    if not samples:
        return {}
    temperature = _number(arguments, 'temperature', 1.0)
    if temperature == 0:
        raise ValueError(
            'generation_kwargs.temperature is 0 with do_sample; it must be above 0, or do_sample '
            'false'
        )
    sampling = Sampling(
        temperature, _number(arguments, 'top_k', 0), _number(arguments, 'top_p', 1.0)
    )
    return dataclasses.asdict(sampling)


def _number(arguments: Mapping[str, Any], name: str, default: float) -> Any:
    """A number of the default's type; the default where none is given."""
    value = arguments.get(name)
    if value is None:
        return default
    accepted = (int, float) if isinstance(default, float) else (int,)
    if isinstance(value, bool) or not isinstance(value, accepted):
        kind = 'a number' if isinstance(default, float) else 'a whole number'
        raise ValueError(f'generation_kwargs.{name} is {value!r}; it must be {kind}')
    return type(default)(value)
