"""Laws of lambda with given coefficients, from an entry of `runs`, and those of trained models."""

from __future__ import annotations

from typing import NamedTuple

from experiments.config import Section
from experiments.models import coefficient
from experiments.runs import tasks
from experiments.runs.spec import OWN, ImportSpec, LawSpec, SilencedSpec, Source, TemperatureSpec
from nope.data import RunData, TaskData
from nope.data.tasks import training_extents
from nope.model import lam


class LawChoice(NamedTuple):
    """A law and the coefficient of every head."""

    law: lam.Law
    coefficient: lam.Coefficient


def in_training(
    entry: Section, data: RunData, train_length: int, head_dim: int
) -> tuple[LawChoice, bool]:
    """The law that a model is pre-trained under, and whether its coefficients are trained with the
    weights, from the given ones on; else they stay as they are."""
    section = entry.below('lam').only(('law', 'coefficient', 'trained'))
    trained = section.get('trained', False)
    if not isinstance(trained, bool):
        raise section.error('trained', 'accepted: True or False')
    law = read(section, data, entry.path('task'), train_length, head_dim)
    longest = train_length
    if trained and isinstance(data, TaskData):
        with tasks.reading_task(entry.path('task')):
            longest = training_extents(data).longest
    if trained and not law.law.acts_within(longest):
        raise section.error(
            'trained',
            f'accepted: False; lambda of the law {type(law.law).__name__} is 1 in sequences of '
            f'up to {longest} tokens, and its coefficient would stay as it is',
        )
    return law, trained


def read(section: Section, data: RunData, task: str, train_length: int, head_dim: int) -> LawChoice:
    """`law` and `coefficient`, without which it is the published one. data: that the weights were
    trained on; task: its field, of a task."""
    if 'law' not in section:
        raise section.error('law', f'it is missing; accepted: {", ".join(lam.LAWS)}')
    law = tasks.law_of(section, data, task, train_length, head_dim)
    if 'coefficient' not in section or section.optional('coefficient') is None:
        if law.published is None:
            name = type(law).__name__
            raise section.error('coefficient', f'{name} has no published one; give a number')
        return LawChoice(law, law.published)
    given = coefficient(section, 'coefficient')
    with section.naming(start='coefficient'):
        law.check_start(given)
    return LawChoice(law, given)


def check_replaceable(entry: Section, init: Source) -> None:
    """ValueError where the model that an entry starts from was trained with a lambda of its own,
    which another lambda would take the place of."""
    trained = trained_with(entry, init)
    if trained != lam.Constant():
        raise entry.error(
            'init',
            f'it was trained with lambda of the law {type(trained).__name__}, which no other can '
            'take the place of',
        )


def trained_with(entry: Section, run: Source) -> lam.Law:
    """The law of lambda that an entry's starting point was trained under. ValueError where a law
    was given to it since, heads were silenced, its weights were tuned under a lambda that was
    searched before, or the directory that it is from has multipliers."""
    while isinstance(run, TemperatureSpec):
        run = run.init
    if isinstance(run, LawSpec):
        raise entry.error('init', 'it only sets lambda; name the run that it starts from')
    if isinstance(run, SilencedSpec):
        raise entry.error('init', 'it only silences heads; name the run that it starts from')
    while run.init is not None and not isinstance(run, LawSpec):
        if run.fine_tunes and run.init.searched:
            raise entry.error(
                'init',
                'its weights were tuned under a searched lambda of the law '
                f'{type(run.model.lam).__name__}, which no other can take the place of',
            )
        run = run.init
    if isinstance(run, ImportSpec) and run.searched:
        raise entry.error('init', f'{OWN}; name the directory that they were searched on')
    return run.model.lam
