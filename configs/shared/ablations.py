"""Ablations of the search at 9 L: its bound, its start, its learning rate.

The paper's ablation "without the bound" lowers the bound on multipliers from 1 to 0: a head may
then attend more broadly than in the base model. Two rows are ours: a search without any bound, and
one at a learning rate of 0.05.

The paper searches each variant once, in another order of examples each time. Here every variant is
searched in the same orders, so that a contrast is not one of orders.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import pieces

SEARCHED, SHOWN = 9.0, 8.0  # the paper's 18K and 16K, in multiples of L
# Seeds of the searches' examples; quick takes two, for its time.
_THREE = (314, 271828, 1001)
ORDERS = {'quick': (314, 1001), 'small': _THREE, 'medium': _THREE, 'large': _THREE, 'paper': _THREE}
VARIANTS: dict[str, dict] = {
    'full': {},
    'no_bound': {'bound': 0.0},
    'no_init': {'start': 1.0, 'start_from': None},
}
# Of ours, in the table alone.
MORE: dict[str, dict] = {
    'unbounded': {'bound': float('-inf')},
    'lower_rate': {'learning_rate': 0.05},
}
LABELS = {
    'full': 'HeadScale at 9 L',
    'no_bound': 'without the bound',
    'no_init': 'from coefficient 1',
}
MORE_LABELS = {'unbounded': 'no bound at all', 'lower_rate': 'learning rate 0.05'}


def add(config: ConfigDict, size: str, variants: dict[str, dict] = VARIANTS) -> None:
    """Adds the runs VARIANT_ORDER on top of the run `nope`."""
    template = config.runs[pieces.add_headscale(config, SEARCHED)].to_dict()
    for variant, changes in variants.items():
        for order in ORDERS[size]:
            search = {**template['search'], **changes, 'data_seed': order}
            if search.get('start_from', '') is None:  # its own: a shared one would set all runs
                search['start_from'] = placeholder(str)
            config.runs[f'{variant}_{order}'] = {**template, 'search': search}


def records(config: ConfigDict, size: str, variant: str, name: str, evaluation: dict) -> str:
    """Evaluates every order of a variant; returns the prefix of the records, `name`/."""
    for order in ORDERS[size]:
        config.evals[f'{name}/{order}/'] = {'run': f'{variant}_{order}', **evaluation}
    return f'{name}/'
