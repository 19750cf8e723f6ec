"""Loss against window length: layers of RoPE windows and layers of NoPE in turns.

    nope run hybrids:quick --workdir=work/quick

Windows of L to 32 L end at the same tokens. Models have three RoPE layers to one NoPE layer:

- RoPE that sees everything;
- in a window of L / 2 (RNoPE-SWA, arXiv 2501.18795), or with the NoPE layer first (SWAN-GPT, arXiv
  2504.08719);
- in chunks of L / 2 (iRoPE, Llama 4).

Beside them half of each layer's heads, or every second layer, has forget gates. Each is measured as
trained and with a log-length lambda searched up to 8 L on its NoPE part.

Quick: two CPU cores, 57 minutes a seed. Result, three seeds: RoPE layers that see everything reach
3.11 nats at 8 L. In a window they keep 1.24 at 32 L. At small (seed 0) the window has 0.88 nats at
32 L, with lambda 0.84.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import base, models, splits

TRAINED, SEARCHED = 'as trained', 'with a log-length lambda'
APART = 'RoPE layers that see everything'  # whose loss needs a scale of its own


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
    everything = {'position': models.ROPE}
    window = {'position': models.ROPE, 'window': config.train.length // 2}
    chunk = {'position': models.ROPE, 'chunk': config.train.length // 2}
    without = {'position': models.NOPE}
    patterns = {
        'rnope': ('3 RoPE layers, 1 NoPE', (everything,) * 3 + (without,)),
        'rnope_window': ('3 RoPE layers with a window, 1 NoPE', (window,) * 3 + (without,)),
        'irope': ('3 RoPE layers in chunks, 1 NoPE', (chunk,) * 3 + (without,)),
        'nope_first': ('1 NoPE layer, 3 RoPE with a window', (without,) + (window,) * 3),
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
