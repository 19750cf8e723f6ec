"""Figure 9: passkey retrieval after the two ablated searches, beside the full one.

    nope run fig9:quick --workdir=work/quick

"Without the bound" is a bound of 0 in place of 1 (shared/ablations.py). Means over several orders
of the searches' examples, on one grid up to 8 L. The paper's full search is that of
Figure 6, whose prompts reach 16 L. Quick and small: shared/retrieval.py.

Quick: 67 minutes of one core after fig6 with three seeds in one work folder. Result, three models:
HeadScale repeats 21 percent of the keys, without the bound 9 (0 to 21). Three other trainings, in
table4, have 18 and 15. The paper has 81 and 53.
"""

from ml_collections import ConfigDict

from configs.shared import ablations, pieces, released, retrieval

PASSKEY = {'kind': 'passkey', 'times': ablations.SHOWN, 'window': ablations.SHOWN}
PAPER = {'full': 81, 'no_bound': 53, 'no_init': 26}


@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = retrieval.experiment('fig9', size)
    config.runs = {'nope': pieces.base()}
    ablations.add(config, size)
    panels = []
    for variant, label in ablations.LABELS.items():
        record = ablations.records(config, size, variant, f'{variant}_passkey', PASSKEY)
        panels.append({'record': record, 'label': label, 'paper': PAPER[variant]})
    config.figure = {
        'kind': 'passkey_maps',
        'panels': tuple(panels),
        'roles': {**ablations.LABELS, 'nope': (ablations.LABELS['full'],)},
    }
    return config
