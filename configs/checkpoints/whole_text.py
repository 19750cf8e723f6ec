"""Layers by heads of a checkpoint over one long text: entropy, weight on the latest L / 16 tokens.

    nope run whole_text:yarn_4 --workdir=work/whole_text \\
        --config.init=hf:DIR --config.length=131072 --config.data.source=jsonl:data/books

`whole_text:nothing,yarn_4` has recipes of checkpoint beside each other. The text is one window of
held-out text; `data.source` needs a document of so many tokens. Nothing of T x T numbers is held:
the records have 16 bytes for each token and head.

SmolLM2 (135M, L = 8,192) over 16,384 tokens: two and a half minutes of two busy CPU cores for each.
Result: its heads have half of their weight on the latest 512 tokens at L, a tenth at 2 L. Under
YaRN 4 they keep that weight. Gemma 3 (270M, L = 32,768) over 131,072: ten minutes of two free
cores, 6.2 GB. Beyond L its global layers lose that weight too.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.checkpoints import checkpoint


def get_config(recipes: str = '') -> ConfigDict:
    if measures := set(recipes.split(',')) & set(checkpoint.MEASURES):
        raise ValueError(f'whole_text: {min(measures)!r} is no recipe of checkpoint')
    config = checkpoint.get_config(f'{recipes or "nothing"},entropy')
    config.name = '_'.join(['whole_text', *filter(None, recipes.split(','))])
    config.length = placeholder(int)
    config.evaluation.windows = 1
    rows = [(row['label'], row['entropy']) for row in config.figure.rows]
    for _, record in rows:
        config.evals[record] = {
            'kind': 'attention_shape', 'run': config.evals[record].run,
            'target': config.get_ref('length'), 'span': 1 / 16,
        }  # fmt: skip
    config.exports = {}
    curves = tuple({'record': record, 'label': label} for label, record in rows)
    config.figure = {'kind': 'head_maps', 'curves': curves}
    return config
