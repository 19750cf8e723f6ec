"""Record attributes for captions and claims: the model, its training, its data."""

from __future__ import annotations

from typing import Any

from experiments.runs import (
    ChangedSpec,
    ImportSpec,
    LawSpec,
    MultiplierChoice,
    RunSpec,
    SilencedSpec,
    Source,
    TemperatureSpec,
    first_run,
)
from experiments.specs import UnknownText, identifier
from nope import data
from nope.checkpoints.best import Best
from nope.model import ModelConfig, counts
from nope.model.lam import Coefficient
from nope.variables import TABLE

_TEMPERATURES = {
    'none': '',
    'adaptive': ', adaptive temperature',
    'entropy': ', temperature by entropy',
}


def of_evaluation(
    run: Source, trained_on: Source, model: ModelConfig, step: int | None, split: str | None
) -> dict[str, Any]:
    """Attributes of all records, whatever was measured.

    trained_on: the run whose data are named. model: as it was measured, at a step of the run (None:
    the last). split: that was read, if one was.
    """
    read = trained_on.data
    return {
        'run_id': identifier(run),
        'trained_id': identifier(first_run(run)),
        **_training(run, step),
        'model': describe_model(run.model),
        'position': model.describe_position(),
        'data': 'unknown text' if isinstance(read, UnknownText) else data.describe(read),
        'sources': list(read.kinds),
        'token': 'byte' if run.data.tokenizer == 'bytes' else 'token',
        'split': split,
        'train_length': run.train_length,
        'seed': run.seed,
        **({'order': run.data_seed} if isinstance(run, RunSpec) and run.searches else {}),
    }


def of_best(run: Source, best: Best | None) -> dict[str, Any]:
    """Attributes of a model whose pre-training was validated: they say how long it had been trained
    at the best step. None: nothing more."""
    if best is None:
        return {}
    base = first_run(run)
    assert isinstance(base, RunSpec)
    facts = {'best_step': best.step, 'validation_accuracy': best.score}
    facts['train_tokens'] = base.train.batch_size * base.train.block * best.step
    return facts | ({'step': best.step} if run.unchanged is base else {})


def describe_lam(run: Source, multiplier: float | None, neutral: bool) -> dict[str, Any]:
    """Attributes that say what lambda was: `multiplier` where all heads share one, else None, and
    `lam` in words. neutral: whether the run's own changes nothing."""
    while isinstance(run, TemperatureSpec | SilencedSpec):
        run = run.init
    own = '1' if neutral else f'{run.model.lam.describe()}, as read'
    if isinstance(run, RunSpec) and run.init is None and not neutral:
        own = _law_of(run).get('law', own)
    if isinstance(run, LawSpec):
        own = f'{run.law.describe()}, coefficient {_stated(run.coefficient)}'
    if isinstance(run, RunSpec) and run.searches:
        by = '' if run.train.optimizer.entropy_length is None else ', by entropy'
        by += ', one coefficient for all heads' if run.train.optimizer.tied else ''
        own = f'{run.model.lam.describe()} at {run.train.block}{by}'
        if run.init is not None and run.data != run.init.data:
            own += f', on {data.describe(run.data)}'
    return {
        'multiplier': 1.0 if multiplier is None and own == '1' else multiplier,
        'lam': f'{multiplier:g}' if multiplier is not None else own,
    }


def _training(run: Source, step: int | None) -> dict[str, Any]:
    """Facts of a model's training: tokens and steps of pre-training, and what came after it."""
    if isinstance(run, SilencedSpec):
        facts = _training(run.init, step)
        heads = {*map(tuple, facts.get('silenced', ())), *run.heads}
        return facts | {'silenced': [list(head) for head in sorted(heads)]}
    if isinstance(run, ChangedSpec):
        return _training(run.init, step)
    if isinstance(run, ImportSpec):
        return {'origin': run.origin, 'train_tokens': None, 'step': 0}
    done = step or run.train.steps
    if run.init is None:
        tokens = run.train.batch_size * run.train.block * done
        facts = {'train_tokens': tokens, 'step': done, **_law_of(run)}
        if run.earlier is not None:
            dropped = run.earlier.model.describe_position()
            facts['dropped'] = f'{dropped} positions dropped after {run.earlier.steps:,} steps'
        return facts
    facts = _training(run.init, None) | {'step': done}
    if run.searches:
        facts['searched_length'] = run.train.block
    if run.fine_tunes:
        facts['tuned_length'] = run.train.block
        steps = f'{done:,} steps of {run.train.batch_size} sequences of {run.train.block:,}'
        alone = 'positions alone ' if run.train.optimizer.trains == TABLE else ''
        other = f' of {data.describe(run.data)}' if isinstance(run.data, data.TaskData) else ''
        order = '' if run.order_from is None else f', local heads by {run.order_from.words}'
        facts['tuning'] = f'{alone}fine-tuned for {steps}{other}{order}'
    return facts


def describe_model(model: ModelConfig) -> str:
    """The model is told as 'NoPE, 4 layers, width 64, 4 heads, 222k parameters'."""
    position = model.describe_position()
    size = counts.parameters(model)
    count = f'{size / 1e6:.3g}M' if size >= 1e6 else f'{round(size / 1e3)}k'
    if size >= 1e9:
        count = f'{size / 1e9:.2f}B'
    temperature = _TEMPERATURES[model.temperature]
    read = '' if model.causal else 'encoder, '
    weights = '' if model.weights == 'softmax' else f'{model.weights.replace("_", "-")}, '
    return (
        f'{"NoPE" if position == "none" else position}, {read}{weights}{model.layers} layers, '
        f'width {model.width}, {model.heads} heads, {count} parameters{temperature}'
    )


def _stated(coefficient: Coefficient) -> str:
    several = coefficient if isinstance(coefficient, tuple) else (coefficient,)
    return ', '.join(f'{number:g}' for number in several)


def _law_of(run: RunSpec) -> dict[str, Any]:
    """The law of lambda that a model was pre-trained under, if there was one."""
    if run.lam_start is None or isinstance(run.lam_start, MultiplierChoice):
        return {}
    start = f'{run.model.lam.describe()}, coefficient {_stated(run.lam_start)}'
    trained = run.train.optimizer.trains == 'all'
    return {'law': f'{start} at first, trained with the weights' if trained else start}
