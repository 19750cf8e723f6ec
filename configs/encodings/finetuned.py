"""Loss against window length for RoPE models extended by fine-tuning.

    nope run finetuned:quick --workdir=work/quick

Position interpolation and YaRN train all weights at 2, 4 and 8 L. "Fair" are 200 steps, as the
search of lambda has, and "raw" are 1,000. The learning rate is a quarter of that of RoPE's training
(1e-4 at paper size).

Quick: one CPU core, 20 minutes a seed. Result, three seeds: YaRN is better than PI, and 1,000 steps
than 200, as in the paper. Tuned models fail past their length, and all but PI at 8 L after 200
steps work up to it.
"""

from ml_collections import ConfigDict

from configs.shared import base, models, pieces, released

TIMES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0)
TUNED = (2.0, 4.0, 8.0)
METHODS = {'pi': ('PI', 'linear', 0.1), 'yarn': ('YaRN', 'yarn', 0.02)}  # the last: warm-up share
BUDGETS = {'fair': 200, 'raw': 1000}


@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('finetuned', size)
    if size != 'paper':
        config.finetune.learning_rate = config.train.learning_rate / 4
    config.runs = {'rope': pieces.base(models.ROPE)}
    panels = []
    titles = {}
    for budget, steps in BUDGETS.items():
        curves = [
            {
                'group': add(config, method, budget, times),
                'label': f'{title} at {times:g} L',
                'method': title,
                'tuned': times,
            }
            for method, (title, _, _) in METHODS.items()
            for times in TUNED
        ]
        titles[budget] = f'{budget}: {steps:,} steps'
        panels.append({'title': titles[budget], 'curves': tuple(curves)})
    for run in config.runs:
        config.evals[f'{run}/'] = {'kind': 'lengths', 'run': run, 'times': TIMES}
    base_curve = {'group': 'rope', 'label': 'RoPE'}
    config.figure = {
        'kind': 'tuned_lengths',
        'base': base_curve,
        'panels': tuple(panels),
        'roles': {method: title for method, (title, _, _) in METHODS.items()} | titles,
    }
    return config


def add(config: ConfigDict, method: str, budget: str, times: float) -> str:
    """Adds the run of a method, tuned at `times` L; returns its name."""
    _, scaling, warmup = METHODS[method]
    name = f'{method}_{budget}_{times:g}x'
    config.runs[name] = {
        'init': 'rope',
        'model': {'position': models.rope(scaling, times)},
        'finetune': {'times': (times,), 'steps': BUDGETS[budget], 'warmup_share': warmup},
    }
    return name
