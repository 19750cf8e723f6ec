"""Figure 2: entropy and loss by position under uniform multipliers, for NoPE and for RoPE.

    nope run fig2:quick --workdir=work/quick

Multipliers are 0.9 to 1.2 for NoPE and 0.8 to 1.4 for RoPE, to twice the training length. Sizes
below `paper` go to four times and to multipliers of 1.6, since small models want larger ones.

Quick: two CPU cores; fig2, fig3, fig4, fig5 and fig10 take a minute together after fig1. Result: a
multiplier above 1 helps NoPE beyond L and costs inside it.
"""

from ml_collections import ConfigDict

from configs.shared import base, models, pieces, released


@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('fig2', size)
    paper = size == 'paper'
    times = 2.0 if paper else 4.0
    multipliers = {
        'nope': (0.9, 1.0, 1.1, 1.2) if paper else (0.8, 1.0, 1.3, 1.6),
        'rope': (0.8, 1.0, 1.2, 1.4) if paper else (0.8, 1.0, 1.3, 1.6),
    }
    config.runs = {'nope': pieces.base(), 'rope': pieces.base(models.ROPE)}
    panels = []
    roles: dict = {}
    for run, title, unscaled, scaled in (
        ('nope', 'NoPE', 'base', 'uniform'),
        ('rope', 'RoPE', 'rope', 'rope_uniform'),
    ):
        curves = []
        for multiplier in multipliers[run]:
            # No entry changes the base model's own multiplier, so that figures share its records.
            change = {} if multiplier == 1.0 else {'multiplier': multiplier}
            name = f'{run}_{round(100 * multiplier)}'
            config.evals[name] = {'run': run, 'times': times, **change}
            curves.append({'record': name, 'label': f'multiplier {multiplier:g}'})
            if multiplier == 1.0:
                roles[unscaled] = name
            else:
                roles[scaled] = (*roles.get(scaled, ()), name)
        panels.append({'title': title, 'curves': tuple(curves)})
    config.figure = {'kind': 'entropy_loss', 'panels': tuple(panels), 'roles': roles}
    return config
