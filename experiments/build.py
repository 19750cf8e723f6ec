"""From a config file's plain data to frozen specs: the one place where names are checked.

A config has sections with defaults (`model`, `data`, `train`, `search`, `evaluation`,
`grid`, `compute`) and three lists of names: `runs` and `evals`, whose entries change
fields of the sections, and `figure`. Lengths are given as multiples of `train.length`
(`times`), so that one field moves all of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from experiments import figures
from experiments.spec import (
    EvalSpec,
    GridSpec,
    LengthsSpec,
    PositionsSpec,
    RunSpec,
    Windows,
)
from nope import data
from nope.data import DataConfig, SourceConfig
from nope.evals.scale_grid import Grid
from nope.model import ModelConfig
from nope.model.lam import FORMS, Constant, Form, LogLength
from nope.optim import OptimizerConfig
from nope.positions import KINDS, SCALINGS, DynamicNTK, NoPE, Position, Rotary, Unscaled
from nope.sharding import MeshConfig
from nope.train import Compute, TrainConfig

EVAL_KINDS = ('positions', 'scale_grid', 'lengths')


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Everything one command has to make: evaluations by name, and the figure of them."""

    name: str
    evals: Mapping[str, EvalSpec]
    figure: Mapping[str, Any]
    compute: Compute
    batch_tokens: int


def build(config_dict: Mapping[str, Any]) -> Experiment:
    """The experiment a config describes. ValueError names the field that does not fit."""
    config: dict[str, Any] = _plain(config_dict)
    seeds = config['seeds']
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError(f'seeds is {seeds}; it takes one or more different numbers')
    evals: dict[str, EvalSpec] = {}
    for seed in seeds:
        for name, spec in _Builder(config, seed).evals().items():
            if not name.endswith('/') and len(seeds) > 1:
                raise ValueError(
                    f'seeds is {seeds}, but evals.{name} holds one seed; a name that ends in "/" '
                    'holds several'
                )
            evals[f'{name}seed{seed}' if name.endswith('/') else name] = spec
    _check_figure(config, evals)
    return Experiment(
        name=config['name'],
        evals=evals,
        figure=config['figure'],
        compute=_compute(config['compute']),
        batch_tokens=_at_least('evaluation.batch_tokens', config['evaluation']['batch_tokens'], 1),
    )


def _check_figure(config: dict[str, Any], evals: Mapping[str, EvalSpec]) -> None:
    """ValueError unless the figure exists and the evaluations it will ask for are there."""
    figure = config['figure']
    kind = figure['kind']
    if kind not in figures.REQUIRED:
        raise ValueError(f'figure.kind is {kind!r}; accepted: {", ".join(sorted(figures.DRAW))}')
    options = {key: value for key, value in figure.items() if key != 'kind'}
    for name, wanted in figures.REQUIRED[kind](config['name'], options).items():
        found = [
            spec
            for key, spec in evals.items()
            if key == name or (name.endswith('/') and key.startswith(name))
        ]
        if not found:
            raise ValueError(
                f'figure ({kind}) asks for {name!r}, which is missing; the config has the evals '
                f'{sorted(evals)}'
            )
        if any(spec.kind != wanted for spec in found):
            raise ValueError(
                f'figure ({kind}) needs evals.{name} of kind {wanted!r}, it is {found[0].kind!r}'
            )


class _Builder:
    """Specs of one seed; entries refer to each other by name."""

    def __init__(self, config: dict[str, Any], seed: int) -> None:
        self._config = config
        self._seed = seed
        self._data = _data(config['data'])
        self._vocab_size = _vocab_size(config['model'], self._data)
        self._length = _at_least('train.length', config['train']['length'], 1)

    def evals(self) -> dict[str, EvalSpec]:
        return {name: self.eval(name) for name in self._config['evals']}

    # Runs

    def run(self, name: str, asked_by: str) -> RunSpec:
        entry = self._entry('runs', name, asked_by, ('init', 'model', 'train', 'search'))
        if entry.get('init'):
            return self._search(name, entry)
        if 'search' in entry:
            raise ValueError(f'runs.{name}.search needs runs.{name}.init, the run to search on')
        section = self._section('train', entry, f'runs.{name}')
        steps = _at_least('train.steps', section['steps'], 1)
        optimizer = _optimizer(
            section, trains='params', decay_steps=section['decay_steps'] or steps
        )
        return RunSpec(
            model=self._model(self._section('model', entry, f'runs.{name}'), Constant()),
            data=self._data,
            train=TrainConfig(
                lengths=(self._length,),
                batch_size=section['batch_size'],
                steps=steps,
                optimizer=optimizer,
                keep_steps=tuple(
                    self._step(share, steps, 'train.keep') for share in section['keep']
                ),
            ),
            seed=self._seed,
            data_seed=section['data_seed'] + self._seed,
            train_length=self._length,
        )

    def _search(self, name: str, entry: dict[str, Any]) -> RunSpec:
        for other in ('model', 'train'):
            if other in entry:
                raise ValueError(f'runs.{name}.{other}: a search takes its {other} from its init')
        init = self.run(entry['init'], f'runs.{name}.init')
        section = self._section('search', entry, f'runs.{name}')
        lengths = tuple(self._times(t, 'search.times') for t in section['times'])
        form = _form(section['form'], self._length)
        bound = None if section['bound'] == -math.inf else float(section['bound'])
        if bound is not None and not math.isfinite(bound):
            raise ValueError(
                f'search.bound is {bound}; accepted: a finite number, or -inf for none'
            )
        optimizer = _optimizer(
            section,
            trains='lam',
            decay_steps=_at_least('search.steps', section['steps'], 1),
            bound=bound,
            straight_through=section['straight_through'],
        )
        return RunSpec(
            model=dataclasses.replace(init.model, lam=form),
            data=self._data,
            train=TrainConfig(
                lengths=lengths,
                batch_size=section['batch_size'],
                steps=section['steps'],
                optimizer=optimizer,
            ),
            seed=self._seed,
            data_seed=section['data_seed'] + self._seed,
            train_length=self._length,
            init=init,
            lam_start=self._start(name, section, form),
        )

    def _start(self, name: str, section: dict[str, Any], form: Form) -> float | GridSpec:
        """`start`, unless `start_from` names a grid, whose best scale then takes its place."""
        start = float(section['start'])
        if not math.isfinite(start) or (isinstance(form, Constant) and start <= 0):
            raise ValueError(f'search.start is {start}; a scale must be finite and above 0')
        if not section['start_from']:
            return start
        field = f'runs.{name}.search.start_from'
        if not isinstance(form, Constant):
            raise ValueError(f'{field}: a best uniform scale starts only the form "constant"')
        return self._grid(section['start_from'], field)

    # Evaluations

    def eval(self, name: str) -> EvalSpec:
        where = f'evals.{name}'
        accepted = ('kind', 'run', 'times', 'scale', 'scale_from', 'position', 'step_share', 'grid')
        entry = self._entry('evals', name, 'the config', accepted)
        kind = entry.get('kind', 'positions')
        if kind not in EVAL_KINDS:
            raise ValueError(f'{where}.kind is {kind!r}; accepted: {", ".join(EVAL_KINDS)}')
        run = self.run(entry.get('run', ''), f'{where}.run')
        step = None
        if entry.get('step_share', 1.0) != 1.0:
            step = self._step(entry['step_share'], run.train.steps, f'{where}.step_share')
            if step not in run.train.keep_steps:
                raise ValueError(
                    f'{where}.step_share is {entry["step_share"]}; the run keeps the shares '
                    f'{self._config["train"]["keep"]} (train.keep)'
                )
        if kind == 'lengths':
            return self._lengths(entry, run, where)
        if kind == 'scale_grid':
            section = self._section('grid', entry, where)
            windows = self._windows(entry.get('times', 1.0), where, section)
            return GridSpec(run, windows, _grid(section), step)
        position = self._position_override(entry.get('position'), where)
        windows = self._windows(entry.get('times', 1.0), where, self._config['evaluation'])
        return PositionsSpec(run, windows, self._scale(entry, where), position, step)

    def _lengths(self, entry: dict[str, Any], run: RunSpec, where: str) -> LengthsSpec:
        times = entry.get('times', ())
        if not isinstance(times, list | tuple) or not times:
            raise ValueError(f'{where}.times is {times!r}; kind "lengths" takes several multiples')
        longest = max(times)
        windows = self._windows(longest, where, self._config['evaluation'])
        lengths = tuple(self._times(t, f'{where}.times') for t in times)
        scales: tuple[GridSpec, ...] = ()
        if 'grid' in entry:  # the best uniform scale of every length, chosen on other windows
            section = self._section('grid', entry, where)
            scales = tuple(
                GridSpec(run, self._windows(t, where, section, longest), _grid(section))
                for t in times
            )
        return LengthsSpec(run, windows, lengths, scales)

    def _scale(self, entry: dict[str, Any], where: str) -> float | GridSpec | None:
        if entry.get('scale_from'):
            return self._grid(entry['scale_from'], f'{where}.scale_from')
        if 'scale' not in entry:
            return None
        scale = float(entry['scale'])
        if not math.isfinite(scale) or scale <= 0:
            raise ValueError(f'{where}.scale is {scale}; it must be finite and above 0')
        return scale

    def _grid(self, name: str, field: str) -> GridSpec:
        if name not in self._config['evals']:
            raise ValueError(
                f'{field} is {name!r}; the config has the evals {sorted(self._config["evals"])}'
            )
        spec = self.eval(name)
        if not isinstance(spec, GridSpec):
            raise ValueError(f'{field} is {name!r}, which is not an eval of kind "scale_grid"')
        return spec

    def _position_override(self, position: dict[str, Any] | None, where: str) -> Position | None:
        if position is None:
            return None
        merged = _merge(self._config['model']['position'], position, f'{where}.position')
        return _position(merged, self._length)

    # Pieces

    def _entry(
        self, group: str, name: str, asked_by: str, accepted: tuple[str, ...]
    ) -> dict[str, Any]:
        entries = self._config[group]
        if name not in entries:
            raise ValueError(f'{asked_by} names {name!r}; the config has {group} {sorted(entries)}')
        entry = entries[name]
        for key in entry:
            if key not in accepted:
                raise ValueError(f'{group}.{name}.{key} is unknown; accepted: {sorted(accepted)}')
        return entry

    def _section(self, section: str, entry: dict[str, Any], where: str) -> dict[str, Any]:
        return _merge(self._config[section], entry.get(section, {}), f'{where}.{section}')

    def _model(self, section: dict[str, Any], form: Form) -> ModelConfig:
        for name in ('heads', 'width'):
            _at_least(f'model.{name}', section[name], 1)
        if not section['head_dim'] and section['width'] % section['heads']:
            raise ValueError(
                f'model.width is {section["width"]}, not a multiple of model.heads = '
                f'{section["heads"]}; give model.head_dim'
            )
        fields = section | {
            'head_dim': section['head_dim'] or section['width'] // section['heads'],
            'vocab_size': self._vocab_size,
            'position': _position(section['position'], self._length),
        }
        return ModelConfig(lam=form, **fields)

    def _windows(
        self, times: float, where: str, section: dict[str, Any], block_times: float | None = None
    ) -> Windows:
        return Windows(
            length=self._times(times, f'{where}.times'),
            block=self._times(block_times or times, f'{where}.times'),
            count=section['windows'],
            split=section['split'],
            seed=section['seed'],
        )

    def _times(self, times: float, field: str) -> int:
        if not (math.isfinite(times) and times > 0):
            raise ValueError(f'{field} is {times}; it must be finite and above 0')
        return _at_least(f'{field} x train.length', round(times * self._length), 1)

    def _step(self, share: float, steps: int, field: str) -> int:
        if not 0 < share < 1:
            raise ValueError(f'{field} is {share}; a share of the training steps lies in (0, 1)')
        return max(round(share * steps), 1)


def _position(section: dict[str, Any], train_length: int) -> Position:
    kind, scaling = section['kind'], section['scaling']
    if kind not in KINDS:
        raise ValueError(f'model.position.kind is {kind!r}; accepted: {", ".join(KINDS)}')
    if scaling not in SCALINGS:
        raise ValueError(f'model.position.scaling is {scaling!r}; accepted: {", ".join(SCALINGS)}')
    if kind == 'none':
        if scaling != 'none':
            raise ValueError(f'model.position.scaling is {scaling!r}, but there is no rotation')
        return NoPE()
    for name in ('base', 'factor'):
        if not (math.isfinite(section[name]) and section[name] > 0):
            raise ValueError(
                f'model.position.{name} is {section[name]}; it must be finite and above 0'
            )
    if scaling == 'dynamic_ntk':
        return Rotary(section['base'], DynamicNTK(section['factor'], train_length))
    return Rotary(section['base'], Unscaled())


def _form(name: str, train_length: int) -> Form:
    if name not in FORMS:
        raise ValueError(f'search.form is {name!r}; accepted: {", ".join(FORMS)}')
    return LogLength(train_length) if name == 'log_length' else Constant()


def _optimizer(section: dict[str, Any], **more: Any) -> OptimizerConfig:
    names = {f.name for f in dataclasses.fields(OptimizerConfig)} - set(more)
    return OptimizerConfig(**{k: v for k, v in section.items() if k in names}, **more)


def _data(section: dict[str, Any]) -> DataConfig:
    mixture = section['mixture'] or ((section['source'], 1.0),)
    sources = tuple(_source(spec, section['field'], float(weight)) for spec, weight in mixture)
    return DataConfig(
        sources=sources, tokenizer=section['tokenizer'], eval_source=section['eval_source']
    )


def _source(spec: str, field: str, weight: float) -> SourceConfig:
    kind, _, path = spec.partition(':')
    return SourceConfig(kind=kind, path=path, field=field, weight=weight)


def _vocab_size(section: dict[str, Any], data_config: DataConfig) -> int:
    """The tokenizer's vocabulary, or a larger one that the config asks for."""
    found = data.load_tokenizer(data_config.tokenizer).vocab_size
    asked = section['vocab_size']
    if asked and asked < found:
        raise ValueError(f'model.vocab_size is {asked}; data.tokenizer has {found} tokens')
    return asked or found


def _grid(section: dict[str, Any]) -> Grid:
    return Grid(section['low'], section['high'], section['increment'])


def _compute(section: dict[str, Any]) -> Compute:
    return Compute(mesh=MeshConfig(**section['mesh']), **_without(section, 'mesh'))


def _without(mapping: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in mapping.items() if k != key}


def _merge(section: dict[str, Any], changes: Mapping[str, Any], where: str) -> dict[str, Any]:
    """`section` with `changes`, whose keys must exist and whose values must be of its types."""
    merged = dict(section)
    for key, value in changes.items():
        if key not in section:
            raise ValueError(f'{where}.{key} is unknown; accepted: {sorted(section)}')
        old = section[key]
        if isinstance(old, dict):
            merged[key] = _merge(old, value, f'{where}.{key}')
            continue
        if isinstance(old, float) and type(value) is int:
            value = float(value)
        if type(old) is not type(value):
            raise ValueError(
                f'{where}.{key} is {value!r}; accepted is a {type(old).__name__} as in {old!r}'
            )
        merged[key] = value
    return merged


def _at_least(field: str, value: int, least: int) -> int:
    if value < least:
        raise ValueError(f'{field} is {value}; it must be at least {least}')
    return value


def _plain(value: Any) -> Any:
    """Nested mappings (ConfigDict among them) as plain dicts, in their order."""
    if isinstance(value, Mapping) or hasattr(value, 'items'):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    return value
