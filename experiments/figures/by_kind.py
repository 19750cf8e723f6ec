"""Rules by the kind of figure that decides them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.figures.base import KINDS
from experiments.figures.claims.decide import Rule

RULES: Mapping[str, Sequence[Rule[Any]]] = {kind: found.RULES for kind, found in KINDS.items()}


def asked(options: Mapping[str, Any]) -> list[Rule[Any]]:
    """Rules that a figure with these options, `kind` among them, is to decide: those whose roles it
    gives. Curves of tasks have roles of their own, or are encodings of the second paper."""
    roles = dict(options.get('roles') or {})
    for curve in options.get('curves', ()):
        roles |= {curve[key]: curve for key in ('role', 'paper') if curve.get(key)}
    return [rule for rule in RULES[options['kind']] if rule.asks(roles)]


def of_claim(claim: str) -> list[Rule[Any]]:
    """Rules of a claim, in the order of the kinds."""
    return [rule for rules in RULES.values() for rule in rules if rule.id == claim]


def limits(claim: str, unit: str) -> list[float]:
    """Limits that numbers of a claim in a unit are held against."""
    rules = of_claim(claim)
    bounds = [part.bound for rule in rules for part in rule.parts if part.unit == unit]
    bounds += [rule.bound for rule in rules if rule.bound and rule.unit == unit]
    return sorted({limit for bound in bounds for limit in bound.limits})
