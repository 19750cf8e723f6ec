"""Loss against window length: layers with rotary windows and layers without position in turns.

    nope run hybrids:quick --workdir=work/quick

n / L from 1 to 32 on windows that end at the same tokens. Three rotary layers to one without
position, the rotary ones seeing everything, L / 2 tokens (RNoPE-SWA, arXiv 2501.18795) or chunks of
L / 2 (iRoPE, Llama 4), or with the layer without position first (SWAN-GPT, arXiv 2504.08719);
beside them half of each layer's heads, or every second layer, with forget gates. Each as trained
and with a log-length lambda searched up to 8 L where there is no position.

Quick: 57 minutes of two busy cores a seed. Result, three seeds: rotary layers that see everything
fail from 2 L on (1.70, at 8 L 3.11); in a window they keep 1.28 at L and 1.24 at 32 L, lambda or
not. Small, seed 0: 0.99 at L and 0.88 at 32 L in a window, with lambda 0.84.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import base, models, splits

TRAINED, SEARCHED = 'as trained', 'with a log-length lambda'
APART = 'rotary layers that see everything'  # whose loss needs a scale of its own


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('hybrids', size)
    config.evaluation.windows = min(config.evaluation.windows, 512)
    labels = add_runs(config)
    curves = []
    for run, label in labels.items():
        rows = (TRAINED, SEARCHED) if run != 'rnope' else (APART, APART)
        searched = splits.add_log_length(config, run)
        told = label if SEARCHED in rows else f'{label}, lambda'
        for name, words, row in zip((run, searched), (label, told), rows, strict=True):
            config.evals[f'{name}/'] = {'kind': 'lengths', 'run': name, 'times': splits.TIMES}
            curves.append({'group': name, 'label': words, 'row': row})
    config.figure = {'kind': 'length_curves', 'curves': tuple(curves)}
    return config


def add_runs(config: ConfigDict) -> dict[str, str]:
    """Adds the models; returns run -> label."""
    everything = {'position': models.ROTARY}
    window = {'position': models.ROTARY, 'window': config.train.length // 2}
    chunk = {'position': models.ROTARY, 'chunk': config.train.length // 2}
    without = {'position': models.NOPE}
    patterns = {
        'rnope': ('3 rotary layers, 1 NoPE', (everything,) * 3 + (without,)),
        'rnope_window': ('3 rotary layers with a window, 1 NoPE', (window,) * 3 + (without,)),
        'irope': ('3 rotary layers in chunks, 1 NoPE', (chunk,) * 3 + (without,)),
        'nope_first': ('1 NoPE layer, 3 rotary with a window', (without,) + (window,) * 3),
        'forget_layers': (
            'forget gates and NoPE, layer by layer',
            ({'position': splits.FORGET}, without),
        ),
    }
    labels = {}
    for name, (label, pattern) in patterns.items():
        model = {'pattern': pattern, 'lam_layers': 'nope'}
        config.runs[name] = {'init': placeholder(str), 'model': model}
        labels[name] = label
    half = splits.add_split(config, 'half_forget', splits.split(splits.FORGET))
    return {**labels, half: 'half forget gates, half NoPE in every layer'}
