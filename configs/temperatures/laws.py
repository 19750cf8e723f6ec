"""Loss against window length under every law of lambda, on one NoPE model and trained in.

    nope run laws:quick --workdir=work/quick

Windows of L to 8 L end at the same tokens. A law (nope/model/lam/README.md has the formulas) is
used in three ways: one coefficient a head searched up to 4 L with the weights frozen, the published
coefficient in all heads, or in place while the model is trained. Two temperatures follow each query
(nope/model/README.md). One search uses no labels: it restores each head's entropy at L. Two search
one number for all heads. Beside them stand the base model, the best uniform multiplier for each n
and HeadScale searched at 4 L. One seed; `--config.seeds="(0,1,2)"` for three.

Quick: two CPU cores, 20 minutes a seed after fig1 and fig_dynamic in one work folder. Result, five
seeds: at 8 L 1 + a ln(n / L) has 2.295 nats, the best law of the position 2.330. At 4 L it has
0.034 nats less than with one a for all heads.
"""

from ml_collections import ConfigDict

from configs.shared import base, pieces, splits
from configs.temperatures.fig_dynamic import SEARCHED, TIMES

BY_LENGTH, BY_POSITION = 'searched, by length', 'searched, by position'
ONE_NUMBER = 'searched, one number for all heads'
FIXED_LENGTH, FIXED_POSITION = 'as published, by length', 'as published, by position'
TRAINED = 'trained in'
ENTROPY = 'temperature_entropy'  # the run at the temperature by entropy
MATCHED = 'matched_log_length'  # log_length searched by entropy, not by loss

# Run, row and label of the laws whose coefficients are searched; log_length is `pieces`' own.
SEARCHES = (
    ('log_square', BY_LENGTH, 'two numbers a head, 1 + a x + b x^2'),
    ('yarn_temperature', BY_LENGTH, 'YaRN temperature'),
    ('info_scale', BY_LENGTH, 'InfoScale, searched'),
    ('log_position', BY_POSITION, '1 + r ln max(i / L, 1)'),
    ('log_floor', BY_POSITION, '1 + r ln(1 + floor(i / L))'),
    ('log_offset', BY_POSITION, 'log-offset'),
    ('scalable_softmax', BY_POSITION, 's ln i'),
    ('scalable_softmax_bias', BY_POSITION, 's ln i + b'),
    ('power', BY_POSITION, '(1 + i / L)^r'),
)
# One number for all heads: run, label, search.
ONE: dict[str, tuple[str, dict]] = {
    'tied_log_length': (
        '1 + a ln(n / L), one a',
        {'law': 'log_length', 'times': SEARCHED, 'tied': True},
    ),
    'tied_offset': ("ln(a + i) / ln a, one a (HypeNet's)", {**splits.HYPENET, 'times': SEARCHED}),
}
# Of s ln i at a size's L: 1 / mean(ln i), under which the mean multiplier up to L is 1.
MEAN_ONE = {'quick': 0.312, 'small': 0.258, 'medium': 0.219, 'large': 0.191, 'paper': 0.151}
# Form, row and label of the laws that are taken as their sources have them.
PUBLISHED = (
    ('log_length', FIXED_LENGTH, '1 + 0.397 ln(n / L)'),
    ('log_ratio', FIXED_LENGTH, 'ln n / ln L (Su)'),
    ('yarn_temperature', FIXED_LENGTH, '(1 + 0.1 ln(n / L))^2 (YaRN)'),
    ('info_scale', FIXED_LENGTH, 'InfoScale'),
    ('log_position', FIXED_POSITION, '1 + 0.1 ln(i / L) (Inkling)'),
    ('log_floor', FIXED_POSITION, '1 + 0.1 ln(1 + floor(i / L)) (Llama 4)'),
    ('log_ratio_position', FIXED_POSITION, 'ln i / ln L (Grok-2, Qwen)'),
    ('log_offset', FIXED_POSITION, 'ln(a + i) / ln a (SWAN)'),
    ('power', FIXED_POSITION, '(1 + i / L)^0.1 (Beam)'),
)


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('laws', size)
    config.runs = {'nope': pieces.base()}
    headscale = pieces.add_headscale(config, 4.0)
    log_length = pieces.add_log_length(config, SEARCHED)
    search = config.runs[log_length].to_dict()['search'] | {'objective': 'entropy'}
    config.runs[MATCHED] = {'init': 'nope', 'search': search}
    config.runs[ENTROPY] = {'init': 'nope', 'model': {'temperature': 'entropy'}}
    curves = [
        _curve('base', 'base'),
        _curve('uniform', 'best uniform multiplier for each n'),
        _curve(headscale, 'HeadScale searched at 4 L'),
        _curve(log_length, '1 + a ln(n / L)', BY_LENGTH),
        _curve(MATCHED, '1 + a ln(n / L), by entropy', BY_LENGTH),
        *_add_searches(config, size),
        *_add_one(config),
        *_add_published(config),
        _curve(ENTROPY, "by each query's entropy", FIXED_POSITION),
        *_add_trained(config),
    ]
    for curve in curves:
        name = curve['group']
        run = 'nope' if name in ('base', 'uniform') else name
        config.evals[f'{name}/'] = {'kind': 'lengths', 'run': run, 'times': TIMES}
    config.evals['uniform/'].grid = {'high': 2.6}
    config.figure = {
        'kind': 'length_curves',
        'curves': tuple(curves),
        'roles': {
            'base': 'base',
            'uniform': 'uniform',
            'headscale': {4: headscale},
            'log_square': 'searched_log_square',
            'scalable_softmax': 'searched_scalable_softmax',
            'scalable_softmax_bias': 'searched_scalable_softmax_bias',
            **{f'fixed_{law}': f'fixed_{law}' for law, _, _ in PUBLISHED},
            'tied_offset': 'tied_offset',
            'fixed_entropy': ENTROPY,
            'trained_scalable_softmax': 'trained_scalable_softmax',
            'trained_adaptive': 'trained_adaptive',
        },
    }
    return config


def _curve(group: str, label: str, row: str = '') -> dict:
    return {'group': group, 'label': label} | ({'row': row} if row else {})


def _add_searches(config: ConfigDict, size: str) -> list[dict]:
    """Searches of 200 steps at lengths up to 4 L, as log-length's."""
    for law, _, _ in SEARCHES:
        search: dict = {'law': law, 'times': SEARCHED}
        if law == 'scalable_softmax':  # which has no neutral coefficient to start from
            search['start'] = MEAN_ONE[size]
        config.runs[f'searched_{law}'] = {'init': 'nope', 'search': search}
    return [_curve(f'searched_{law}', label, row) for law, row, label in SEARCHES]


def _add_one(config: ConfigDict) -> list[dict]:
    """Searches of one number for all heads."""
    for run, (_, search) in ONE.items():
        config.runs[run] = {'init': 'nope', 'search': search}
    return [_curve(run, label, ONE_NUMBER) for run, (label, _) in ONE.items()]


def _add_published(config: ConfigDict) -> list[dict]:
    """Laws on the base model that train nothing, with their published coefficients."""
    for law, _, _ in PUBLISHED:
        config.runs[f'fixed_{law}'] = {'init': 'nope', 'lam': {'law': law}}
    return [_curve(f'fixed_{law}', label, row) for law, row, label in PUBLISHED]


def _add_trained(config: ConfigDict) -> list[dict]:
    """Models like the base model, trained under a law from the start."""
    scalable = {'law': 'scalable_softmax', 'coefficient': 0.43, 'trained': True}
    # From a length of 1 on: 1 + 0.4 ln i.
    log_keys = {'law': {'kind': 'log_position', 'train_length': 1}, 'coefficient': 0.4}
    config.runs['trained_scalable_softmax'] = {**pieces.base(), 'lam': scalable}
    config.runs['trained_log_keys'] = {**pieces.base(), 'lam': log_keys}
    config.runs['trained_adaptive'] = {**pieces.base(), 'model': {'temperature': 'adaptive'}}
    return [
        _curve('trained_scalable_softmax', 's ln i, s trained from 0.43', TRAINED),
        _curve('trained_log_keys', '1 + 0.4 ln i', TRAINED),
        _curve('trained_adaptive', "1 + beta (ln i)^gamma of each query (ASEntmax's)", TRAINED),
    ]
