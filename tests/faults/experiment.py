"""Figure 4 with perplexity and an export: every kind of work of a command, in seconds.

    python -m experiments.run --config=tests/faults/experiment.py:TEXTS --workdir=FOLDER

TEXTS: a folder of text files.
"""

from ml_collections import ConfigDict

from configs.shared import base, pieces, text

TIMES = 2.0
LENGTH = 64
STEPS, SEARCH_STEPS, EVERY = 12, 6, 3


def get_config(texts: str) -> ConfigDict:
    config = text.add(base.experiment('kills', 'quick'), 'quick')
    config.model.update(layers=1, width=16, heads=2, kv_heads=1, mlp_width=32)
    config.data.source = f'text:{texts}'
    config.train.update(length=LENGTH, batch_size=4, steps=STEPS, warmup_steps=2, keep=(0.25,))
    config.search.update(batch_size=4, steps=SEARCH_STEPS, warmup_steps=2)
    config.compute.update(checkpoint_every=EVERY, log_every=1)
    config.evaluation.update(windows=12, batch_tokens=512)
    config.grid.update(windows=4, increment=0.5)
    config.corpora = {'own': {'source': f'text:{texts}', 'field': 'text', 'split': 'test'}}
    config.perplexity.budget = 256
    config.runs = {'nope': pieces.base()}
    searched = pieces.add_headscale(config, TIMES)
    config.evals['uniform'] = {'run': 'nope', 'times': TIMES, **pieces.uniform(config, TIMES)}
    config.evals['searched'] = {'run': searched, 'times': TIMES}
    config.evals['text'] = {'kind': 'perplexity', 'run': searched, 'corpus': 'own', 'times': (2.0,)}
    config.exports = {'folded': {'run': searched, 'lam': 'fold'}}
    curves = ({'record': 'uniform', 'label': 'one'}, {'record': 'searched', 'label': 'HeadScale'})
    roles = {'uniform': ('uniform',), 'headscale': {int(TIMES): 'searched'}}
    panels = ({'title': '', 'curves': curves},)
    config.figure = {'kind': 'entropy_loss', 'panels': panels, 'roles': roles}
    return config
