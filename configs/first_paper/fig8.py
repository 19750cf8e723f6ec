"""Figure 8: passkey retrieval of models with ALiBi.

    nope run fig8:quick --workdir=work/quick

The paper shows BLOOM 1.1B and MPT 7B: `fig8:paper,bloom=DIR,mpt=DIR`. At the smaller
sizes, and where no directory is given, a model with ALiBi is trained like the others here.

Quick: two CPU cores, 3 minutes. Result, three seeds: every key to 1.5 L. At 4 L keys in the last
half of the prompt are repeated, against the paper.
"""

from ml_collections import ConfigDict

from configs.shared import models, pieces, published, retrieval

TIMES = {'quick': 4.0, 'small': 4.0, 'medium': 4.0, 'large': 4.0, 'paper': 2.0}


def get_config(argument: str = 'quick') -> ConfigDict:
    size, directories = published.parse(argument)
    config = retrieval.experiment('fig8', size)
    published.add(config, directories)
    panels: list[dict] = []
    if size != 'paper' or not directories:
        config.runs.alibi = pieces.base(models.ALIBI)
        record = retrieval.passkey(config, 'alibi', TIMES[size])
        panels.append({'record': record, 'label': 'ALiBi'})
    for name, (label, _) in published.LABELS.items():
        if name in directories:
            record = retrieval.passkey(config, name, TIMES[size])
            config.evals[record]['passkey'] = published.TEXT
            panels.append({'record': record, 'label': label})
        else:
            panels.append({'missing': published.missing(name), 'label': label})
    config.figure = {
        'kind': 'passkey_maps',
        'panels': tuple(panels),
        'roles': {'alibi': tuple(panel['label'] for panel in panels if 'record' in panel)},
    }
    return config
