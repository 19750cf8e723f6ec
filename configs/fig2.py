"""Figure 2: entropy and loss by position under several uniform scales, for NoPE and for rotary.

    python -m experiments.run --config=configs/fig2.py:quick --workdir=work/quick

Scales 0.9 to 1.2 for NoPE and 0.8 to 1.4 for rotary, to twice the training length (quick
and small: four times, and scales up to 1.6, since small models want larger ones).

Quick: two CPU cores; after fig1 in one work folder fig2, fig3, fig4, fig5 and fig10 take a minute
together. Result: a scale above 1 helps NoPE beyond L and costs inside it.
"""

from ml_collections import ConfigDict

from configs import base, models, pieces


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('fig2', size)
    paper = size == 'paper'
    times = 2.0 if paper else 4.0
    scales = {
        'nope': (0.9, 1.0, 1.1, 1.2) if paper else (0.8, 1.0, 1.3, 1.6),
        'rope': (0.8, 1.0, 1.2, 1.4) if paper else (0.8, 1.0, 1.3, 1.6),
    }
    config.runs = {'nope': pieces.base(), 'rope': pieces.base(models.ROTARY)}
    panels = []
    roles: dict = {}
    for run, title, unscaled, scaled in (
        ('nope', 'NoPE', 'base', 'uniform'),
        ('rope', 'RoPE', 'rotary', 'rotary_uniform'),
    ):
        curves = []
        for scale in scales[run]:
            # No entry changes the base model's own scale, so that figures share its records.
            change = {} if scale == 1.0 else {'scale': scale}
            name = f'{run}_{round(100 * scale)}'
            config.evals[name] = {'run': run, 'times': times, **change}
            curves.append({'record': name, 'label': f'scale {scale:g}'})
            if scale == 1.0:
                roles[unscaled] = name
            else:
                roles[scaled] = (*roles.get(scaled, ()), name)
        panels.append({'title': title, 'curves': tuple(curves)})
    config.figure = {'kind': 'entropy_loss', 'panels': tuple(panels), 'roles': roles}
    return config
