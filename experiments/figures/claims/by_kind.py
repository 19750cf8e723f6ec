"""Rules by the kind of figure that decides them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.figures.claims import (
    ablations,
    code_models,
    encodings,
    extension,
    factors,
    fits,
    frontier,
    heads,
    keys,
    laws,
    lengths,
    longbench,
    passkey,
    patterns,
    perplexity,
    positions,
    recipes,
    scores,
    scratchpads,
    silenced,
    task_lambda,
    told,
    tuned,
)
from experiments.figures.claims.decide import Rule

RULES: Mapping[str, tuple[Rule[Any], ...]] = {
    'entropy_loss': positions.RULES,
    'heads': heads.APART,
    'multiplier_entropy': heads.CORRELATIONS,
    'uniform_fit': fits.RULES,
    'head_entropy': heads.LAYERS,
    'attention_distance': patterns.RULES,
    'length_curves': (*lengths.RULES, *lengths.TUNING_RULES, *laws.RULES, *code_models.RULES),
    'key_curves': keys.RULES,
    'frontier': frontier.RULES,
    'reach': frontier.REACH,
    'head_effects': silenced.RULES,
    'encoding_ranks': encodings.RULES,
    'encoding_pairs': told.RULES,
    'task_lambda': task_lambda.RULES,
    'scratchpad_bars': scratchpads.RULES,
    'factor_grid': factors.RULES,
    'tuned_lengths': tuned.RULES,
    'extension': extension.RULES,
    'perplexity_table': perplexity.RULES,
    'longbench_table': longbench.RULES,
    'commonsense_table': scores.RULES,
    'ablation_table': ablations.RULES,
    'passkey_maps': passkey.RULES,
    'recipes': recipes.RULES,
}


def asked(options: Mapping[str, Any]) -> list[Rule[Any]]:
    """Rules that a figure with these options, `kind` among them, is to decide: those whose roles it
    gives. Curves of tasks have roles of their own, or are encodings of the second paper."""
    roles = dict(options.get('roles') or {})
    for curve in options.get('curves', ()):
        roles |= {curve[key]: curve for key in ('role', 'paper') if curve.get(key)}
    return [rule for rule in RULES.get(options['kind'], ()) if rule.asks(roles)]


def of_claim(claim: str) -> list[Rule[Any]]:
    """Rules of a claim, in the order of the kinds."""
    return [rule for rules in RULES.values() for rule in rules if rule.id == claim]


def limits(claim: str, unit: str) -> list[float]:
    """Limits that numbers of a claim in a unit are held against."""
    rules = of_claim(claim)
    bounds = [part.bound for rule in rules for part in rule.parts if part.unit == unit]
    bounds += [rule.bound for rule in rules if rule.bound and rule.unit == unit]
    return sorted({limit for bound in bounds for limit in bound.limits})
