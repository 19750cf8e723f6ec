"""Distance of the most attended key under five position encodings, adding with a full scratchpad.

    nope run b_attended:quick --workdir=work/quick

Figure 7 of the second paper (arXiv 2305.19466): histograms of how far back the most attended key of
a query is, as a share of its context, over all heads. Queries are the tokens of the scratchpads and
answers of additions longer than those of training. The models are those of b_scratchpad, with which
a work folder shares them.

quick: three seeds, ten additions of each length from 6 to 10 digits. Beside the training of 15
    models that b_scratchpad trains too, 1 min 40 s of one core.
small, medium, paper: the same at that size. Not run.

Result at quick: heads without position look near and far, 46 percent of queries into the nearest
fifth of their context and 26 into the farthest; ALiBi's look near (82 and 6).
"""

from ml_collections import ConfigDict

from configs.second_paper import b_scratchpad
from configs.shared import tasks

TASK = 'addition_full'


def get_config(size: str = 'quick') -> ConfigDict:
    config = b_scratchpad.named('b_attended', size)
    trained = config.runs.to_dict()
    encodings = tasks.encodings(config)
    config.runs = ConfigDict({f'{TASK}_{name}': trained[f'{TASK}_{name}'] for name in encodings})
    config.evals = ConfigDict(
        {f'{run}/': {'kind': 'attended_distance', 'run': run} for run in config.runs}
    )
    config.figure = {
        'kind': 'attended_distance',
        'curves': tuple(
            {'group': f'{TASK}_{name}', 'label': label, 'paper': tasks.PAPER[name]}
            for name, (label, _) in encodings.items()
        ),
    }
    return config
