"""Loss against window length for NoPE: HeadScale against fine-tuning of all weights.

    nope run tuned_nope:quick --workdir=work/quick
    nope run tuned_nope:quick,rates --workdir=work/quick

The first paper leaves open how far full fine-tuning would carry NoPE. Both methods train on the
same 200 batches of 8 sequences, of 4 L and of 8 L. All weights train for 1,000 steps too, since
equal tokens favour a search of few numbers. Windows of L to 8 L end at the same tokens. Three
seeds; `--config.seeds="(0,)"` for one.

Quick: one core, 40 minutes for five seeds after fig_dynamic in one work folder. Result: at 8 L
HeadScale has 2.252 nats and all weights, on the same batches, 1.640. At L both cost as much after a
search at 8 L.

`rates` compares learning rates of the fine-tuning at 4 L on validation windows, one seed. RATES has
the best of them for each number of steps. Quick: minutes. Result: a quarter of the learning rate of
the training is best after 200 steps and after 1,000.
"""

from ml_collections import ConfigDict

from configs.shared import base, pieces

TIMES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
TUNED = (4.0, 8.0)
STEPS = (200, 1000)
SHARES = (1 / 16, 1 / 4, 1.0)  # of the learning rate of the training
RATES = {200: 1 / 4, 1000: 1 / 4}  # steps -> the share that is chosen


def get_config(argument: str = 'quick') -> ConfigDict:
    size, _, part = argument.partition(',')
    if part not in ('', 'rates'):
        raise ValueError(
            f'tuned_nope: {part!r} behind the size is unknown; accepted: nothing, or rates'
        )
    config = base.experiment('tuned_nope', size)
    config.finetune.data_seed = config.search.data_seed
    config.runs = {'nope': pieces.base()}
    return _rates(config) if part else _compared(config)


def _compared(config: ConfigDict) -> ConfigDict:
    config.seeds = (0, 1, 2)
    searched, tuned = {}, {}
    curves: list[dict] = [{'group': 'nope', 'label': 'NoPE'}]
    for times in TUNED:
        searched[int(times)] = pieces.add_headscale(config, times)
        tuned[int(times)] = _add_tuned(config, times, STEPS[0], RATES[STEPS[0]])
        labels = {searched[int(times)]: 'HeadScale', tuned[int(times)]: _label(STEPS[0])}
        labels |= {_add_tuned(config, times, n, RATES[n]): _label(n) for n in STEPS[1:]}
        row = f'searched or tuned at {times:g} L'
        curves += [{'group': run, 'label': label, 'row': row} for run, label in labels.items()]
    for run in config.runs:
        config.evals[f'{run}/'] = {'kind': 'lengths', 'run': run, 'times': TIMES}
    roles = {'base': 'nope', 'headscale': searched, 'tuned': tuned}
    config.figure = {'kind': 'length_curves', 'curves': tuple(curves), 'roles': roles}
    return config


def _rates(config: ConfigDict) -> ConfigDict:
    config.name = config.name.replace('tuned_nope', 'tuned_nope_rates')
    curves: list[dict] = [{'group': 'nope', 'label': 'NoPE'}]
    for steps in STEPS:
        for share in SHARES:
            run = _add_tuned(config, TUNED[0], steps, share)
            label = f'{share:g} of the learning rate of the training'
            curves.append({'group': run, 'label': label, 'row': _label(steps)})
    choice = {'split': config.grid.split, 'windows': config.grid.windows}
    for run in config.runs:
        entry = {'kind': 'lengths', 'run': run, 'times': (1.0, 2.0, 4.0), 'evaluation': choice}
        config.evals[f'{run}/'] = entry
    config.figure = {'kind': 'length_curves', 'curves': tuple(curves)}
    return config


def _add_tuned(config: ConfigDict, times: float, steps: int, share: float) -> str:
    """Adds the run that trains all weights at `times` L; returns its name."""
    name = f'tuned_{times:g}x_{steps}_{share:g}'.replace('.', '_')
    rate = share * config.train.learning_rate
    section = {'times': (times,), 'steps': steps, 'learning_rate': rate}
    config.runs[name] = {'init': 'nope', 'finetune': section}
    return name


def _label(steps: int) -> str:
    return f'all weights, {steps:,} steps'
