"""What claims decide does not depend on what runs, records, labels and titles are called.

Every config is drawn twice at quick, on the same made-up numbers: as it is, and with every name
and every text that a person reads replaced by another.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from experiments import config_files
from experiments.figures import KINDS, FigureInput
from nope.records import Records
from tests.experiments.figures import synthetic

CONFIGS = config_files.names()
# Nothing is claimed of encodings but for NoPE and RoPE, of layers of several kinds, of steps of a
# training, of rules of attention weights, of positions that are random or come later, nor of where
# and how far queries look; RULER's effective lengths and the losses of an extension are read.
UNDECIDED = {
    *(
        'attention_shape',
        'b_attended',
        'b_encoder',
        'biases',
        'drope',
        'emergence',
        'encodings',
        'hybrids',
        'initialisations',
        'key_attention',
        'learned_later',
        'matched',
        'reach_cures',
        'reach_predictors',
        'weight_bound',
        'whole_text',
    ),
    *(
        'random_positions',
        'checkpoint',
        'extend',
        'split',
        'split_later',
        'split_local',
        'split_share',
        'weights',
        'weights_passkey',
    ),
}

# Kinds of figure whose runs have a task; their claims are over seeds.
OF_TASKS = (
    *('attended_distance', 'attention_distance', 'encoding_pairs', 'encoding_ranks'),
    *('scratchpad_bars', 'task_lambda'),
)

# Seeds that claims, and halves of the trainings, need.
SEEDS = {**dict.fromkeys(OF_TASKS, 3), 'reach_predictors': 4}

# Keys of options whose values are names of records or read by people.
NAMING = (
    'record',
    'group',
    'choice',
    'label',
    'title',
    'row',
    'method',
    'perplexity',
    'passkey',
    'longbench',
    'loss',
    'keys',
    'four',
)
OF_KIND = {'matched_budgets': ('base', 'uniform', 'headscale', 'rope')}
# Keys whose values are the paper's names or ours for its tables.
FIXED = ('key', 'paper', 'kind', 'missing')
LENGTH = 64


def names_in(options: Any, kind: str) -> list[str]:
    """Every name in options, in their order."""
    keys = NAMING + OF_KIND.get(kind, ())
    found: list[str] = []
    if isinstance(options, dict):
        for key, value in options.items():
            if key in keys and isinstance(value, str):
                found.append(value)
            elif key not in FIXED:
                found += names_in(value, kind)
    elif isinstance(options, list | tuple):
        for value in options:
            found += names_in(value, kind)
    return [name for name in dict.fromkeys(found) if name]


def renamed(options: Any, names: dict[str, str]) -> Any:
    """Options with every name replaced, in roles as well."""
    if isinstance(options, dict):
        return {k: v if k in FIXED else renamed(v, names) for k, v in options.items()}
    if isinstance(options, list | tuple):
        return [renamed(value, names) for value in options]
    return names.get(options, options) if isinstance(options, str) else options


def others(options: Any, kind: str) -> dict[str, str]:
    """Another name for each, as unlike it as its use allows: what ends in '/' stands for seeds."""
    return {
        name: f'w{index:03}' + ('/' if name.endswith('/') else '')
        for index, name in enumerate(reversed(names_in(options, kind)))
    }


def multiplier_of(config, record: str) -> float | None:
    """The one multiplier of the record, or of those below it; None where every head has its own."""
    entry = next(entry for name, entry in config.evals.items() if name.startswith(record))
    if 'multiplier' in entry or 'multiplier_from' in entry:
        return entry.get('multiplier', 1.4)
    return 1.0 if {'search', 'lam'}.isdisjoint(config.runs[entry.run]) else None


def facts_of(config, record: str) -> dict[str, Any]:
    """What the config says of the record, or of those below it, and a figure reads."""
    facts = {'multiplier': multiplier_of(config, record)}
    entry = next(entry for name, entry in config.evals.items() if name.startswith(record))
    if config.figure.kind in OF_TASKS:
        run = config.runs[entry.run]
        while 'task' not in run:
            run = config.runs[run.init]
        return facts | {'task': run.task.name, 'scratchpad': run.task.get('scratchpad', 'none')}
    if 'step_share' in entry:
        facts['step'] = round(2400 * entry.step_share)
    if config.figure.kind == 'matched_budgets':  # equal or not, as the config's
        run = config.runs[entry.run]
        run = config.runs[run.get('init', entry.run)]
        return facts | {'train_tokens': run.get('train', {}).get('steps', config.train.steps)}
    # Their claims read these lengths.
    if 'tail' in entry or (config.figure.kind == 'frontier' and 'times' in entry):
        return facts | {'multiples': entry.times}
    if config.figure.kind != 'head_effects':
        return facts
    gone = config.runs[entry.run].get('without', ())
    if isinstance(gone, str):  # the first half of the heads is local
        gone = [(i, j) for i in range(4) for j in range(4) if (j < 2) == (gone == 'local')]
    return facts | {'silenced': [list(head) for head in gone]}


def made(evaluation: str, index: int, seed: int, facts: dict) -> Records:
    """Numbers that depend on the place of a record alone."""
    rng = np.random.default_rng((index, seed))
    if evaluation == 'positions':
        bends = {name: rng.uniform(60, 200) for name in ('loss_bend', 'entropy_bend')}
        more = {'floor': rng.uniform(1.4, 1.6), 'entropy_slope': rng.uniform(0.5, 2)}
        return synthetic.positions_records(**bends, **more, **facts)
    if evaluation == 'multiplier_grid':
        return synthetic.grid_records(a=rng.uniform(0.1, 0.6), **facts)
    if evaluation == 'lengths':
        multiples = facts.pop('multiples', synthetic.MULTIPLES)
        rising = np.cumsum(rng.uniform(-0.02, 0.2, len(multiples)))
        return synthetic.length_records(1.5 + rising, multiples=multiples, **facts)
    if evaluation == 'perplexity':
        return synthetic.perplexity_records(15 + np.cumsum(rng.uniform(-1, 20, 4)), **facts)
    if evaluation == 'passkey' and 'silenced' in facts:
        shares, lengths = rng.uniform(0.2, 1, 4), (0.5, 1, 2, 4)  # 1 L to 8 L of its own
        return synthetic.key_records(shares, facts.pop('seed'), multiples=lengths, **facts)
    if evaluation == 'passkey':
        grid = {'max_length': 64 * LENGTH, 'window': 4 * LENGTH, 'share': rng.uniform(0.2, 1)}
        return synthetic.passkey_records(**grid, reach=rng.uniform(200, 900), **facts)
    if evaluation == 'exact_match':
        return synthetic.exact_match_records(rng.uniform(), rng.uniform(0.9, 1), **facts)
    if evaluation == 'longppl':
        return synthetic.longppl_records(15 + np.cumsum(rng.uniform(-1, 20, 2)), **facts)
    if evaluation == 'ruler':
        return synthetic.ruler_records(rng.uniform(0, 100, 3), **facts)
    if evaluation == 'attention_distance':
        return synthetic.distance_records(rng.uniform(0.1, 0.6), rng.uniform(0, 0.1), **facts)
    if evaluation == 'attended_distance':
        return synthetic.attended_records(rng.uniform(0.1, 0.9), **facts)
    if evaluation == 'key_attention':
        return synthetic.look_records(**{**facts, 'multiplier': rng.uniform(1, 2)})
    if evaluation == 'attention_shape':
        return synthetic.shape_records(**facts)
    scores = {'longbench': 16, 'harness': 7}
    make = {'longbench': synthetic.longbench_records, 'harness': synthetic.harness_records}
    assert evaluation in make, f'no records are made up here for the evaluation {evaluation}'
    return make[evaluation](rng.uniform(20, 60, scores[evaluation]), **facts)


def drawn(kind: str, options: dict, said: list[dict[str, Any]], texts: dict) -> list:
    """(id, holds) of every claim. said: facts of the records asked for, in their order."""
    needs = KINDS[kind].required('f', options)
    records = {}
    for index, (name, evaluation) in enumerate(needs.items()):
        facts = {'train_length': LENGTH, **said[index], **texts}
        # Random numbers of several seeds would decide nothing, so seeds have the same.
        for seed in range(SEEDS.get(kind, 1)):
            full = f'{name}seed{seed}' if name.endswith('/') else name
            records[full] = made(evaluation, index, 0, {**facts, 'seed': seed})
    output = KINDS[kind].draw(FigureInput('f', records, options))
    return [(claim.id, claim.holds) for claim in output.claims]


@pytest.mark.parametrize('name', CONFIGS)
def test_no_name_decides_a_claim(name):
    config = config_files.module(name).get_config()
    options = config.figure.to_dict()
    kind = options.pop('kind')
    said = [facts_of(config, record) for record in KINDS[kind].required('f', options)]
    names = others(options, kind)
    assert names
    before = drawn(kind, options, said, {})
    texts = {text: f'some {text}' for text in ('position', 'lam', 'model', 'data', 'run_id')}
    after = drawn(kind, renamed(options, names), said, texts)
    assert before == after
    assert any(holds is not None for _, holds in before) == (name not in UNDECIDED)


def test_every_kind_of_figure_is_renamed():
    modules = [config_files.module(name) for name in CONFIGS]
    assert {module.get_config().figure.kind for module in modules} == set(KINDS)


def test_a_role_that_follows_no_renaming_is_refused():
    """What would have been five claims fewer is an error."""
    given = synthetic.INPUTS['length_curves']
    curves = renamed(given.options['curves'], {'headscale_4x': 'w'})
    runs = {k.replace('headscale_4x', 'w'): r for k, r in given.records.items()}
    options = {**given.options, 'curves': curves}
    with pytest.raises(ValueError, match="role 'headscale' is given to the curve 'headscale_4x'"):
        KINDS['length_curves'].draw(dataclasses.replace(given, records=runs, options=options))
