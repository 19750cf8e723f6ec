"""Sizes apart: four widths on the same bytes, and one width on three amounts of them.

    nope run matched:quick --workdir=work/books
    nope run matched:quick --workdir=work/books --plan

The sizes of other figures differ in parameters, bytes, L and dtype at once. Here widths 64 to 512
read the same bytes, and width 128 reads a quarter and four times of them too. All else is the
size's own. Measured are NoPE as trained, with the best multiplier at 4 L, and with HeadScale
searched there. `matched:quick,rope` has RoPE beside it, in as much time again.

The text is the user's folder of JSON lines, data/books (at `paper` the usual shards).
`--config.data.source=stdlib` takes Python.

- Heads keep their width, 16 at quick, and grow in number as in practice. So a multiplier of
  1/sqrt(16) means the same at every width.
- The learning rate falls as 1/width from the size's own, quick's 3e-3 at 64: the rule of hidden
  weights under Adam. Runs of 200 steps agree: the best rate was 3e-3 at width 64 and 0.75e-3 at
  width 256, where 1.5e-3 was level after 600 steps.
- Each number of bytes is a training of its own, whose learning rate ends at 0.
- Width 512 reads 0.4 bytes a parameter and width 64 reads 22. A matched budget is not the best one.

Quick: minutes of one core of an Intel Xeon (family 6, model 167) that did other work besides.

| width | parameters | 1.2M bytes | 4.9M bytes | 19.7M bytes |
|---|---|---|---|---|
| 64 | 228k | | 3 | |
| 128 | 858k | 2 | 11 | 42 |
| 256 | 3.3M | | 34 | |
| 512 | 12.9M | | 59 | |

Searches take a twentieth of it besides. Result, one seed: at equal bytes NoPE rises by
0.69 to 0.73 nats in windows of 4 L at every width. With the bytes at one width it rises by 0.38 to
0.91, and one multiplier gains 0.01 to 0.36. What HeadScale gains beyond it grows with the width.
RoPE was not run.
"""

from ml_collections import ConfigDict, FieldReference

from configs.shared import base, books, models

TIMES = 4.0
WIDTHS = {64: 168, 128: 344, 256: 688, 512: 1376}  # and the widths of their feed-forward
TOKENS_OF = 128  # the width that reads several amounts
ROPE = 'rope'


def get_config(asked: str = 'quick') -> ConfigDict:
    size, _, beside = asked.partition(',')
    if beside not in ('', ROPE):
        raise ValueError(f'matched: {beside!r} is unknown; accepted: matched:{size},{ROPE}')
    config = base.experiment('matched', size)
    books.put(config)
    if beside:
        config.name += f'_{beside}'
    by_width = [_add(config, f'{width}', width, None, bool(beside)) for width in WIDTHS]
    steps = config.train.get_ref('steps')
    less, more = (
        _add(config, f'{TOKENS_OF}_{name}', TOKENS_OF, count, bool(beside))
        for name, count in {'quarter': steps // 4, 'fourfold': steps * 4}.items()
    )
    same = by_width[list(WIDTHS).index(TOKENS_OF)]
    config.figure = {
        'kind': 'matched_budgets',
        'widths': tuple(by_width),
        'tokens': (less, same, more),
    }
    return config


def _add(
    config: ConfigDict, name: str, width: int, steps: FieldReference | None, rope: bool
) -> dict:
    """Adds the runs and evaluations of one model; returns its entry in the figure.

    steps: None for the section's.
    """
    own, heads = config.model, width * config.model.heads // config.model.width
    shape = {'width': width, 'heads': heads, 'kv_heads': heads, 'mlp_width': WIDTHS[width]}
    # References follow a section that the command line changes.
    train: dict = {} if steps is None else {'steps': steps}
    if width != own.width:
        rate = config.train.get_ref('learning_rate')
        train['learning_rate'] = rate * (own.width / width)
    nope, headscale, grid = f'nope_{name}', f'headscale_{name}', f'grid_{name}'
    config.runs[nope] = {'model': shape, 'train': train}
    search = {'law': 'constant', 'times': (TIMES,), 'start_from': grid}
    config.runs[headscale] = {'init': nope, 'search': search}
    config.evals[grid] = {'kind': 'multiplier_grid', 'run': nope, 'times': TIMES}
    config.evals[nope] = {'run': nope, 'times': TIMES}
    config.evals[f'uniform_{name}'] = {'run': nope, 'times': TIMES, 'multiplier_from': grid}
    config.evals[headscale] = {'run': headscale, 'times': TIMES}
    entry = {'base': nope, 'uniform': f'uniform_{name}', 'headscale': headscale}
    if rope:
        entry['rope'] = f'rope_{name}'
        config.runs[entry['rope']] = {'model': shape | {'position': models.ROPE}, 'train': train}
        config.evals[entry['rope']] = {'run': entry['rope'], 'times': TIMES}
    return {'width': width, **entry}
