"""One figure of each kind."""

from __future__ import annotations

from experiments.figures import FigureInput
from tests.experiments.figures.synthetic.keys import (
    FRONTIER_POINTS,
    FRONTIER_ROLES,
    KEY_CURVES,
    KEY_ROLES,
    LOOK_CURVES,
    PASSKEY_PANELS,
    PASSKEY_ROLES,
    PREDICTOR_POINTS,
    REACH_POINTS,
    REACH_ROLES,
    effect_options,
    effect_runs,
    frontier_runs,
    key_runs,
    look_runs,
    passkey_runs,
    predictor_runs,
    reach_runs,
)
from tests.experiments.figures.synthetic.lengths import (
    FACTOR_CURVES,
    FACTOR_ROLES,
    LENGTH_CURVES,
    LENGTH_ROLES,
    TUNED_PANELS,
    TUNED_ROLES,
    factor_runs,
    length_runs,
    tuned_runs,
)
from tests.experiments.figures.synthetic.positions import (
    CURVE_ROLES,
    CURVES,
    GRIDS,
    SHAPE_CURVES,
    emergence_input,
    matched_input,
    position_runs,
    ranks_input,
    shape_records,
)
from tests.experiments.figures.synthetic.ruler import recipe_input
from tests.experiments.figures.synthetic.tables import (
    ABLATION_OPTIONS,
    HARNESS_ROWS,
    LONGBENCH_ROWS,
    PERPLEXITY_OPTIONS,
    ablation_runs,
    harness_runs,
    longbench_runs,
    perplexity_runs,
)
from tests.experiments.figures.synthetic.tasks import (
    attended_input,
    distance_input,
    encoding_curves,
    encoding_runs,
    lambda_input,
    scratchpad_input,
)

INPUTS = {
    'entropy_loss': FigureInput(
        'fig1', position_runs(), {'panels': [{'curves': CURVES}], 'roles': CURVE_ROLES}
    ),
    'heads': FigureInput('fig3', position_runs(), {'rows': CURVES, 'layers': [0, 3]}),
    'multiplier_entropy': FigureInput(
        'fig5', position_runs(), {'record': 'headscale', 'control': 'nope', 'label': 'HeadScale'}
    ),
    'uniform_fit': FigureInput(
        'fig7', GRIDS, {'panels': [{'record': 'early', 'title': '2M'}, {'record': 'late'}]}
    ),
    'head_entropy': FigureInput('fig10', position_runs(), {}),
    'attention_shape': FigureInput(
        'shape',
        {'base': shape_records(), 'split': shape_records(local_heads=2)},
        {'curves': SHAPE_CURVES},
    ),
    'emergence': emergence_input(),
    'matched_budgets': matched_input(),
    'head_ranks': ranks_input(),
    'length_curves': FigureInput(
        'fig_dynamic', length_runs(3), {'curves': LENGTH_CURVES, 'roles': LENGTH_ROLES}
    ),
    'key_curves': FigureInput(
        'split_passkey', key_runs(3), {'curves': KEY_CURVES, 'roles': KEY_ROLES}
    ),
    'key_attention': FigureInput(
        'looks',
        look_runs(2),
        {'curves': [{k: c[k] for k in ('group', 'label')} for c in LOOK_CURVES]},
    ),
    'weight_bound': FigureInput('bound', look_runs(2), {'curves': LOOK_CURVES}),
    'frontier': FigureInput(
        'frontier', frontier_runs(3), {'points': FRONTIER_POINTS, 'roles': FRONTIER_ROLES}
    ),
    'reach': FigureInput('reach', reach_runs(3), {'points': REACH_POINTS, 'roles': REACH_ROLES}),
    'reach_predictors': FigureInput('predictors', predictor_runs(6), {'points': PREDICTOR_POINTS}),
    'encoding_ranks': FigureInput('b_mrr', encoding_runs(3), {'curves': encoding_curves()}),
    'encoding_pairs': FigureInput(
        'b_positions', encoding_runs(3), {'curves': encoding_curves(), 'without': ('NoPE',)}
    ),
    'task_lambda': lambda_input(),
    'attention_distance': distance_input(),
    'attended_distance': attended_input(),
    'scratchpad_bars': scratchpad_input(),
    'recipes': recipe_input(),
    'head_maps': FigureInput(
        'whole_text',
        {'base': shape_records(320), 'split': shape_records(320, local_heads=2)},
        {'curves': SHAPE_CURVES},
    ),
    'head_effects': FigureInput('split_heads', effect_runs(2), effect_options()),
    'factor_grid': FigureInput(
        'zero_shot', factor_runs(3), {'curves': FACTOR_CURVES, 'roles': FACTOR_ROLES}
    ),
    'tuned_lengths': FigureInput(
        'tuned',
        tuned_runs(3),
        {'base': {'group': 'rope', 'label': 'RoPE'}, 'panels': TUNED_PANELS, 'roles': TUNED_ROLES},
    ),
    'perplexity_table': FigureInput('table2', perplexity_runs(), PERPLEXITY_OPTIONS),
    'longbench_table': FigureInput(
        'table3',
        longbench_runs(),
        {'rows': LONGBENCH_ROWS, 'roles': {'base': 'NoPE', 'rope': 'RoPE'}},
    ),
    'commonsense_table': FigureInput(
        'table1', harness_runs(), {'rows': HARNESS_ROWS, 'roles': {'base': 'NoPE', 'rope': 'RoPE'}}
    ),
    'ablation_table': FigureInput('table4', ablation_runs(), ABLATION_OPTIONS),
    'passkey_maps': FigureInput(
        'fig6', passkey_runs(), {'panels': PASSKEY_PANELS, 'roles': PASSKEY_ROLES}
    ),
}
