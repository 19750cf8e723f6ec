"""Distance of the most attended key under five position encodings, adding with a full scratchpad.

    nope run b_attended:quick --workdir=work/quick

Figure 7 of the second paper (arXiv 2305.19466): histograms of the distance of the most attended
key, as a share of the context, over all heads. Queries are the tokens of scratchpads and answers,
in additions longer than those of training. The models are those of b_scratchpad.

quick: three seeds, ten additions of each length from 6 to 10 digits; 2 minutes of one core after
b_scratchpad with three seeds in one work folder. Result: the most attended key of NoPE lies in the
nearest fifth for 45 percent of the queries and in the farthest for 25. ALiBi has 81 and 7 percent.
small, medium, paper: the same at that size. Not run.
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
