"""Table 1: zero-shot commonsense tasks, RoPE and NoPE.

    pip install -e '.[harness]'
    nope run table1:paper --workdir=work/paper \\
        --config.harness.files=FOLDER

The seven tasks run in EleutherAI's harness. Their data cannot ship with this code: FOLDER holds
them (nope/evals/harness/published.py says how), or `hub` downloads them. Prompts have no BOS, as in
the paper. Unlike there, the computation is in `model.dtype`, bfloat16 at paper size. To measure
with BOS, run again with `--config.harness.bos=True` and another `--config.name`. Not run.
"""

from ml_collections import ConfigDict

from configs.shared import base, models, pieces, released, text


@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = text.add(base.experiment('table1', size), size)
    config.runs = {'rope': pieces.base(models.ROPE), 'nope': pieces.base()}
    rows = []
    for run, label, paper in (('rope', 'RoPE', 'RoPE'), ('nope', 'NoPE', 'NoPE')):
        name = f'{run}_tasks/'
        config.evals[name] = {'kind': 'harness', 'run': run}
        rows.append({'label': label, 'paper': paper, 'record': name})
    config.figure = {
        'kind': 'commonsense_table',
        'rows': tuple(rows),
        'roles': {'base': 'NoPE', 'rope': 'RoPE'},
    }
    return config
