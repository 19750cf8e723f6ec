"""Loss against window length for RoPE models extended without training, and ALiBi.

    nope run zero_shot:quick --workdir=work/quick

Dynamic NTK and YaRN at every factor of a grid; the factor is chosen on validation windows, for each
length and once for all. Beside them stand RoPE as it is, ALiBi, and NoPE as it is, with a
length-aware lambda, and with HeadScale searched at 8 L from the best multiplier on validation
windows (at `paper` from 1.7).

Quick: one CPU core, 35 minutes for five seeds after fig_dynamic in one work folder. Result: at 8 L
YaRN has 1.68 nats, dynamic NTK 1.76 and HeadScale 2.25. ALiBi is level, where the paper's BLOOM
and MPT are not.
"""

from ml_collections import ConfigDict

from configs.shared import base, models, pieces

TIMES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
FACTORS = {'dynamic_ntk': (1.0, 2.0, 4.0, 8.0), 'yarn': (2.0, 4.0, 8.0, 16.0)}
LABELS = {'dynamic_ntk': 'RoPE, dynamic NTK', 'yarn': 'RoPE, YaRN'}
SEARCHED = (1.5, 2.0, 3.0, 4.0)
HEADSCALE = 8  # L


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('zero_shot', size)
    config.runs = {
        'rope': pieces.base(models.ROPE),
        'alibi': pieces.base(models.ALIBI),
        'nope': pieces.base(),
    }
    log_length = pieces.add_log_length(config, SEARCHED)
    headscale = pieces.add_headscale(config, float(HEADSCALE))
    fixed = {
        'rope': 'RoPE',
        'alibi': 'ALiBi',
        'nope': 'NoPE',
        log_length: 'NoPE, log-length lambda searched up to 4 L',
        headscale: f'NoPE, HeadScale searched at {HEADSCALE} L',
    }
    for run in fixed:
        config.evals[f'{run}/'] = {'kind': 'lengths', 'run': run, 'times': TIMES}
    grids = [_grid(config, scaling) for scaling in FACTORS]
    curves = [{'group': run, 'label': label} for run, label in fixed.items()]
    roles = {
        'ntk': LABELS['dynamic_ntk'],
        'yarn': LABELS['yarn'],
        'headscale': {HEADSCALE: fixed[headscale]},
    }
    config.figure = {'kind': 'factor_grid', 'curves': tuple(curves + grids), 'roles': roles}
    return config


def _grid(config: ConfigDict, scaling: str) -> dict:
    """Evaluates every factor on test windows, to report, and on validation windows, to choose."""
    choice = {'split': config.grid.split, 'windows': config.grid.windows}
    rows = []
    for factor in FACTORS[scaling]:
        name = f'{scaling}_{factor:g}'
        measured = {
            'kind': 'lengths',
            'run': 'rope',
            'times': TIMES,
            'position': models.rope(scaling, factor),
        }
        config.evals[f'{name}/'] = measured
        config.evals[f'{name}_choice/'] = {**measured, 'evaluation': choice}
        rows.append({'factor': factor, 'group': name, 'choice': f'{name}_choice'})
    return {'label': LABELS[scaling], 'grid': tuple(rows)}
