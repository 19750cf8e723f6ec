"""Table 4: ablations of the search: its bound, its start and its learning rate.

    nope run table4:quick --workdir=work/quick

The table has perplexity in windows of 8 L, passkeys up to 8 L and LongBench after searches at 9 L,
with the spread over several orders of examples. The variants are those of shared/ablations.py.
LongBench takes part where its files are given: table4:paper,longbench. Quick and small:
shared/retrieval.py.

Quick: two CPU cores, 2 minutes a seed after fig9 in one work folder, before the two rows of ours.
Result, three seeds: without the bound 15 percent of the keys are repeated in place of 18, which the
interval leaves open. The start makes no difference.
"""

from ml_collections import ConfigDict

from configs.shared import ablations, pieces, released, retrieval, text

PASSKEY = {'kind': 'passkey', 'times': ablations.SHOWN, 'window': ablations.SHOWN}
PAPER = {
    'full': 'headscale_18K',
    'no_bound': 'without_focus_constraint',
    'no_init': 'without_initialization',
}
ADDITIONS = ('longbench',)  # accepted after the size


@released.also
def get_config(argument: str = 'quick') -> ConfigDict:
    size, _, more = argument.partition(',')
    if more not in ('', *ADDITIONS):
        raise ValueError(
            f'table4: {more!r} is unknown; accepted after the size: {", ".join(ADDITIONS)}'
        )
    config = retrieval.experiment('table4', size)
    config.runs = {'nope': pieces.base()}
    ablations.add(config, size, ablations.VARIANTS | ablations.MORE)
    shown = ablations.SHOWN
    rows = []
    for variant, label in (ablations.LABELS | ablations.MORE_LABELS).items():
        row = {
            'label': label,
            **({'paper': PAPER[variant]} if variant in PAPER else {}),
            'passkey': ablations.records(config, size, variant, f'{variant}_passkey', PASSKEY),
            'perplexity': f'{variant}/',
        }
        for corpus in config.corpora:
            perplexity = {'kind': 'perplexity', 'corpus': corpus, 'times': (shown,)}
            ablations.records(config, size, variant, f'{variant}@{corpus}', perplexity)
        if more:
            longbench = text.longbench(config, size, ablations.SEARCHED)
            name = f'{variant}_longbench'
            row['longbench'] = ablations.records(config, size, variant, name, longbench)
        rows.append(row)
    config.figure = {
        'kind': 'ablation_table',
        'corpora': text.corpora(config),
        'rows': tuple(rows),
        'roles': dict(ablations.LABELS),
    }
    if not more:
        reason = 'not asked for: table4:SIZE,longbench with --config.longbench.folder'
        config.figure.missing = {'longbench': reason}
    return config
