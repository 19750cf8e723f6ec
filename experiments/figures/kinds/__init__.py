"""Kinds of figure. Each is a file here and its line in this list."""
# ruff: noqa: F401

from experiments.figures.kinds import (
    attended_distance,
    attention_distance,
    attention_shape,
    emergence,
    encoding_pairs,
    encoding_ranks,
    entropy_loss,
    factor_grid,
    frontier,
    head_effects,
    head_entropy,
    head_maps,
    head_ranks,
    heads,
    key_attention,
    key_curves,
    length_curves,
    matched_budgets,
    multiplier_entropy,
    passkey_maps,
    reach,
    reach_predictors,
    recipes,
    scratchpad_bars,
    task_lambda,
    tuned_lengths,
    uniform_fit,
    weight_bound,
)
from experiments.figures.kinds.tables import ablation, commonsense, longbench, perplexity
