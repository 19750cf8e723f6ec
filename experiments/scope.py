"""One seed's view of a config: its sections and entries, lengths, data and models."""

from __future__ import annotations

import functools
import math
from collections import ChainMap
from collections.abc import Iterable, Mapping
from typing import Any

from experiments.config import LAYER, Ledger, Section, is_number
from experiments.models import MODEL_DEFAULTS, model_config
from experiments.runs.directories import Imported
from experiments.runs.spec import HeadScores, MultiplierChoice, Source
from nope import data
from nope.data import DataConfig, RunData, TaskData
from nope.model import LayerKind, ModelConfig, lam, mixers
from nope.positions import from_section
from nope.runtime.errors import describe

MOST_TOKENS = 2**31 - 1  # of a length: positions are int32


class Scope:
    """Sections and models that all entries of one seed share."""

    def __init__(self, config: Mapping[str, Any], seed: int, ledger: Ledger) -> None:
        self._config = config
        self.seed = seed
        self.ledger = ledger
        self.imported = Imported(config['runs'], shapeless='layers' not in config['model'])

    @functools.cached_property
    def length(self) -> int:
        """L, `train.length`, or that of the imported models; read when a run first needs it, so
        that it is refused where every run has its own."""
        train = self.section('train')
        given = train.optional('length')
        return self.imported.train_length() if given is None else train.at_least('length', 1)

    # Sections and entries

    def names(self, group: str) -> tuple[str, ...]:
        return tuple(self._config[group])

    def section(
        self, name: str, entry: Section | None = None, default: Mapping[str, Any] | None = None
    ) -> Section:
        """A section of the config, with the changes of an entry that names it. default: stands in
        for a missing section."""
        if name not in self._config and default is None:
            needed = f'{entry.path(name)} changes a section: ' if entry and name in entry else ''
            raise ValueError(
                f'{needed}the config has no section {name!r}; it has {sorted(self._config)}'
            )
        path = entry.path(name) if entry is not None and name not in self._config else name
        section = Section(path, self._config.get(name, default or {}), self.ledger)
        if name == 'model':
            section = section.with_defaults(MODEL_DEFAULTS)
        if entry is None or name not in entry:
            return section
        return section.changed(entry.inner(name), entry.path(name))

    def entry(self, group: str, name: str, asked_by: str, accepted: Iterable[str]) -> Section:
        """Section of one of a config's runs, evaluations or exports."""
        entries = self._config[group]
        if name not in entries:
            raise ValueError(f'{asked_by} names {name!r}; the config has {group} {sorted(entries)}')
        return Section(f'{group}.{name}', entries[name], self.ledger).only(accepted)

    def group(self, name: str) -> Mapping[str, Any]:
        """A table of the config, by name: `corpora`, say."""
        return self._config.get(name, {})

    # Runs and evaluations that an entry names, which `Entries` has

    def run(self, name: str, asked_by: str, further: int = 0) -> Source:
        """The run of that name, of the seed so many places further in the config's, around.
        asked_by: the field that names it."""
        raise ValueError('there is one model')

    def grid(self, name: str, field: str) -> MultiplierChoice:
        """The evaluation that chooses a uniform multiplier, which `field` names."""
        raise ValueError('there is one model')

    def head_scores(self, name: str, field: str) -> HeadScores:
        """The evaluation that scores heads, which `field` names."""
        raise ValueError('there is one model')

    # Lengths

    def times(self, times: float, train_length: int, field: str) -> int:
        """Tokens of a multiple of L."""
        if not is_number(times):
            raise ValueError(f'{field} is {times!r}; it must be a number')
        if not (math.isfinite(times) and times > 0):
            raise ValueError(f'{field} is {times}; it must be finite and above 0')
        if times > MOST_TOKENS / train_length:
            raise ValueError(f'{field} is {times}: more than {MOST_TOKENS} tokens')
        length = round(times * train_length)
        if length < 1:
            raise ValueError(f'{field} is {times}: less than one token of {train_length}')
        return length

    def share(self, target: int, share: float, where: str) -> int:
        """Tokens of a share of a length."""
        if not (is_number(share) and 0 < share <= 1):
            raise ValueError(f'{where} is {share!r}; a share of the target lies in (0, 1]')
        length = round(target * share)
        if length < 1:
            raise ValueError(f'{where} is {share}: less than one token of {target}')
        return length

    def training_lengths(self, section: Section, train_length: int) -> tuple[int, ...]:
        """Multiples of L, or shares of `target` tokens where that is given."""
        target = section.optional('target')
        if target is None:
            field, times = section.path('times'), section.several('times', 'multiples of L')
            return tuple(self.times(t, train_length, field) for t in times)
        section.at_least('target', 1)
        shares = section.several('shares', 'shares of target')
        return tuple(self.share(target, s, section.path('shares')) for s in shares)

    def lengths_field(self, section: Section) -> str:
        """Path of the field that `training_lengths` follow."""
        return section.path('times' if section.optional('target') is None else 'shares')

    def length_of(self, entry: Section, train_length: int) -> int:
        """Length of an evaluation: `target` tokens where it has one, else a multiple of L."""
        if 'target' in entry:
            return entry.at_least('target', 1)
        times = entry.get('times', 1.0)
        return self.times(times, train_length, entry.path('times'))

    # Data

    def data(
        self, entry: Section, length: int, tokenizer: str | None = None, bos: bool | None = None
    ) -> DataConfig:
        """Data of a run: the config's with the run's changes. length: the longest it is
        trained at, in tokens. tokenizer, bos: those of the model it starts from; another `bos` has
        to be its entry's own."""
        section = self.section('data', entry)
        used = section.optional('tokenizer') if tokenizer is None else tokenizer
        used = self.imported.tokenizer() if used is None else used
        section = section.without('tokenizer').allowing('record_length')
        section = section.detailing(*data.sources.execution_fields())
        if bos is None or ('data' in entry and 'bos' in entry.inner('data')):
            bos = bos_of(section, used)
            self.ledger.note(section.path('bos'), bos)  # what None stands for
        given = {'tokenizer': used, 'bos': bos}
        whole = ChainMap(given, section)  # type: ignore[arg-type]  # only read
        return data.from_section(whole, length, section.path)

    # Models

    def model(self, entry: Section, config: RunData, train_length: int) -> ModelConfig:
        """A fresh run's model: the section, with the run's changes."""
        section = self.section('model', entry)
        for name in ('heads', 'width'):
            section.at_least(name, 1)
        heads, width = section['heads'], section['width']
        head_dim = section.optional('head_dim')
        if head_dim is not None:
            section.at_least('head_dim', 1)
        if head_dim is None and width % heads:
            other, instead = section.path('heads'), section.path('head_dim')
            rule = f'it must be a multiple of {other} = {heads}, or give {instead}'
            raise section.error('width', rule)
        head_dim = width // heads if head_dim is None else head_dim
        found = data.tokenizer_of(config).vocab_size
        asked = section.optional('vocab_size')
        if asked is not None and section.at_least('vocab_size', 1) < found:
            field = 'task' if isinstance(config, TaskData) else 'data'
            raise section.error('vocab_size', f'{field}.tokenizer has {found} tokens')
        return model_config(
            section,
            head_dim=head_dim,
            vocab_size=found if asked is None else asked,
            position=from_section(section['position'], train_length, section.path('position')),
            law=lam.given_from_section(
                section.optional('law'),
                section.path('law'),
                train_length=train_length,
                head_dim=head_dim,
            ),
            pattern=tuple(
                self._kind(kind, train_length, f'{section.path("pattern")}[{i}]')
                for i, kind in enumerate(section['pattern'])
            ),
        )

    def _kind(self, fields: Mapping[str, Any], train_length: int, where: str) -> LayerKind:
        if not isinstance(fields, Mapping):
            raise ValueError(describe(where, fields, "it takes named values, as {'window': 64}"))
        section = Section(where, LAYER, self.ledger).changed(fields, where)
        position = from_section(section['position'], train_length, f'{where}.position')
        mixer = mixers.from_section(section.optional('mixer'), f'{where}.mixer')
        return section.make(LayerKind, position=position, mixer=mixer)


def warmup_steps(section: Section, steps: int) -> int:
    """Steps of the warm-up that a section gives as a share of all."""
    share = section.finite('warmup_share')
    if not 0 <= share < 1:
        raise section.error('warmup_share', 'accepted: a share of the steps, 0 or more and below 1')
    return min(round(share * steps), steps - 1)


def bos_of(section: Section, tokenizer: str) -> bool:
    """Whether what a section describes begins with a prefix (`nope.data.prefix`)."""
    bos = section.optional('bos')
    if bos is False:  # without reading the tokenizer
        return False
    with section.naming():
        return bool(data.prefix_of(data.load_tokenizer(tokenizer), bos))
