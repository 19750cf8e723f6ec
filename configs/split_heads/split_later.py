"""Loss and keys of trained models that get local heads by a short training at L, then lambda.

    nope run split_later:quick --workdir=work/quick

The NoPE and RoPE models of frontier are trained on at L for 5 and 20 percent of their
steps, half of each layer's heads made local. In the NoPE model these get forget gates that start
open; in the RoPE model a window of L / 4, and the others lose their rotation. Local become the
heads with most weight on the latest L / 8 tokens, once also the first half. Then p_h(n) = 1 + a_h
ln(n / L) is searched up to 8 L on the others. The models before and the split from scratch stand
beside them.

Quick, seed 0: two CPU cores, an hour and a half. Result: after 5 percent a RoPE model has 1.44 nats
at L and 1.46 at 32 L, where the split from scratch has 1.24 and 1.23. With lambda it repeats 52
percent of the keys at 8 L.
"""

from ml_collections import ConfigDict

from configs.shared import models, pieces, splits

SHARES = {0.05: '5 %', 0.2: '20 %'}
NEAR = 1 / 8  # of L: what counts as near when heads are chosen
OPEN = {'kind': 'forget', 'start': 4.0}  # a fresh gate forgets half after 38 tokens


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('split_later', size)
    splits.add_whole(config, 'nope')
    config.runs['rope'] = pieces.base(models.ROPE)
    half = splits.add_split(config, 'half_forget', splits.split(splits.FORGET))
    window = config.train.length // 4
    kinds = {
        'nope': ('NoPE', splits.split(OPEN)),
        'rope': ('RoPE', splits.split(models.ROPE, window=window)),
    }
    labels = {'nope': 'NoPE', 'rope': 'RoPE', half: 'half forget gates from scratch'}
    labels[splits.add_log_length(config, half)] = 'half forget gates from scratch, lambda'
    for run, (label, position) in kinds.items():
        # Chosen on other windows than the reported ones.
        config.evals[f'{run}_near/'] = {
            'kind': 'attention_shape',
            'run': run,
            'times': 1.0,
            'span': NEAR,
            'evaluation': {'split': config.grid.split, 'windows': config.grid.windows},
        }
        for share, words in SHARES.items():
            name = add_later(config, run, position, share, near=True)
            labels[name] = f'{label}, split later, {words}'
            # A base model's lambda acts on all heads, and after fine-tuning still does.
            searched = splits.add_log_length(config, name, heads='nope')
            labels[searched] = f'{label}, split later, {words}, lambda'
        first = add_later(config, run, position, min(SHARES), near=False)
        labels[first] = f'{label}, first half split later, {SHARES[min(SHARES)]}'
    points = tuple(splits.add_point(config, name, label) for name, label in labels.items())
    config.figure = {'kind': 'frontier', 'points': points}
    return config


def add_later(config: ConfigDict, run: str, position: dict, share: float, *, near: bool) -> str:
    """The run trained on at L for `share` of its steps with its heads split; returns its name.
    near: whether those heads become local that look nearest already, by the record of the same
    seed, or the first ones."""
    name = f'{run}_later_{round(100 * share)}' + ('' if near else '_first')
    config.runs[name] = {
        'init': run,
        'model': {'position': position},
        'finetune': pieces.more_training(config, share),
    }
    if near:
        config.runs[name]['heads_from'] = f'{run}_near/'
    return name
