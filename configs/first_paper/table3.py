"""Table 3: LongBench, sixteen data sets, answers by beam search.

    nope run table3:paper --workdir=work/paper \\
        --config.longbench.folder=FOLDER

FOLDER holds the benchmark's files, NAME.jsonl for each data set; they cannot ship with this code.
Every model reads prompts up to the window it was trained for or extended to. Sizes
below `paper` run the same code with small models, and cut prompts to half of the window. Not run.
"""

from ml_collections import ConfigDict

from configs.encodings import finetuned
from configs.shared import base, models, pieces, released, text

TUNED = {2.0: '4K', 4.0: '8K', 8.0: '16K'}
SEARCHED = {2.0: '4K', 4.0: '8K', 9.0: '18K'}


@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = text.add(base.experiment('table3', size), size)
    config.runs = {'rope': pieces.base(models.ROPE), 'nope': pieces.base()}
    if size != 'paper':
        config.finetune.learning_rate = config.train.learning_rate / 4
    rows = [_row(config, 'rope', 'RoPE', 'RoPE', 1.0), _row(config, 'nope', 'NoPE', 'NoPE', 1.0)]
    for method, (title, _, _) in finetuned.METHODS.items():
        for times, paper in TUNED.items():
            run = finetuned.add(config, method, 'raw', times)
            label = f'{title} at {times:g} L, raw'
            rows.append(_row(config, run, label, f'{title}_raw_{paper}', times))
    for times, paper in SEARCHED.items():
        run = pieces.add_headscale(config, times)
        label = f'HeadScale at {times:g} L'
        rows.append(_row(config, run, label, f'headscale_{paper}', times))
    config.figure = {
        'kind': 'longbench_table',
        'rows': tuple(rows),
        'roles': {
            'base': 'NoPE',
            'rope': 'RoPE',
            'headscale': {int(times): f'HeadScale at {times:g} L' for times in SEARCHED},
        },
    }
    return config


def _row(config: ConfigDict, run: str, label: str, paper: str, window: float) -> dict:
    name = f'{run}_longbench/'
    size = 'paper' if pieces.is_paper(config) else 'quick'
    config.evals[name] = {'run': run, **text.longbench(config, size, window)}
    row = {'group': 'As trained' if window == 1 else 'Extended', 'label': label, 'paper': paper}
    return row | {'record': name} | ({'tuned': int(window)} if window > 1 else {})
