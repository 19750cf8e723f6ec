"""Checks of figures against position by what is known of their records before any is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.figures.given import Known


def reaching_l(name: str, known: Known) -> None:
    """ValueError for windows shorter than L, inside which curves are compared."""
    for record, facts in known.items():
        if facts['length'] < facts['train_length']:
            raise ValueError(
                f'figure {name!r}: {record!r} has windows of {facts["length"]} tokens; accepted: '
                f'from L = {facts["train_length"]} on'
            )


def beyond_l(name: str, known: Known) -> None:
    """ValueError for windows that end at L, beyond which a fit or a comparison begins."""
    for record, facts in known.items():
        if facts['length'] < facts['train_length'] + 2:
            raise ValueError(
                f'figure {name!r}: {record!r} has windows of {facts["length"]} tokens; it needs '
                f'positions beyond L = {facts["train_length"]}'
            )


def with_layers(name: str, options: Mapping[str, Any], known: Known) -> None:
    """As `reaching_l`; ValueError also for `layers` that a model has not."""
    reaching_l(name, known)
    fewest = min(facts['n_layers'] for facts in known.values())
    check_layers(name, options.get('layers') or (), fewest)


def check_layers(name: str, layers: Sequence[Any], count: int) -> None:
    """ValueError for layers that a model of `count` has not."""
    for layer in layers:
        if not (isinstance(layer, int) and 0 <= layer < count):
            raise ValueError(f'figure {name!r}: layers must lie in 0..{count - 1}, got {layer!r}')
