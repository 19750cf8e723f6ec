"""Specs of one seed from a config's plain data: runs and evaluations refer to each other by
name."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from experiments import imports, sections, text_builder
from experiments.evaluations import EvalSpec, LengthsSpec, PositionsSpec
from experiments.spec import (
    ExportSpec,
    GridSpec,
    ImportSpec,
    RunSpec,
    Source,
    Windows,
    check_same_table,
)
from nope import data
from nope.data import DataConfig
from nope.interop import Export, check_export
from nope.interop.fold import check_foldable
from nope.model import LayerKind, ModelConfig
from nope.model.lam import Constant, Form
from nope.positions import Position, from_section
from nope.training.config import TrainConfig

EVAL_KINDS = ('positions', 'scale_grid', 'lengths', *text_builder.KINDS)


class Builder:
    """Specs of one seed; entries refer to each other by name."""

    def __init__(self, config: dict[str, Any], seed: int) -> None:
        self.config = config
        self._seed = seed
        self._imported = imports.Imported(config['runs'], shapeless='layers' not in config['model'])
        tokenizer = config['data']['tokenizer'] or self._imported.tokenizer()
        length = config['train']['length'] or self._imported.train_length()
        self.length = sections.at_least('train.length', length, 1)
        self._data = data.from_section(config['data'] | {'tokenizer': tokenizer}, self.length)

    def evals(self) -> dict[str, EvalSpec]:
        return {name: self.eval(name) for name in self.config['evals']}

    # Runs

    def run(self, name: str, asked_by: str) -> Source:
        accepted = (
            *('init', 'nope', 'own_tokenizer', 'model', 'data', 'train', 'search', 'finetune'),
        )
        entry = self._entry('runs', name, asked_by, accepted)
        later = [kind for kind in ('search', 'finetune') if kind in entry]
        if len(later) > 1:
            raise ValueError(f'runs.{name} has both search and finetune; accepted is one of them')
        if later == ['finetune'] and entry.get('init'):
            return self._finetune(name, entry)
        if later == ['search'] and entry.get('init'):
            return self._search(name, entry)
        if later:
            raise ValueError(
                f'runs.{name}.{later[0]} needs runs.{name}.init, the run or model it starts from'
            )
        if entry.get('init') or entry.get('nope'):
            return self._import(name, entry)
        if 'data' in entry:
            raise ValueError(f'runs.{name}.data: only a search or fine-tuning has other data')
        return self._pretraining(name, entry)

    def _pretraining(self, name: str, entry: dict[str, Any]) -> RunSpec:
        section = self.section('train', entry, f'runs.{name}')
        steps = sections.at_least('train.steps', section['steps'], 1)
        optimizer = sections.optimizer(
            section, trains='params', decay_steps=section['decay_steps'] or steps
        )
        return RunSpec(
            model=self._model(entry, f'runs.{name}.model'),
            data=self._data,
            train=TrainConfig(
                lengths=(self.length,),
                batch_size=section['batch_size'],
                steps=steps,
                optimizer=optimizer,
                keep_steps=tuple(
                    self._step(share, steps, 'train.keep') for share in section['keep']
                ),
            ),
            seed=self._seed,
            data_seed=section['data_seed'] + self._seed,
            train_length=self.length,
        )

    def _data_of(
        self, entry: dict[str, Any], where: str, init: Source, lengths: tuple[int, ...]
    ) -> DataConfig:
        """What a later run reads: the config's data with the run's changes."""
        section = self.section('data', entry, where) | {'tokenizer': init.data.tokenizer}
        name = f'{where}.data' if 'data' in entry else 'data'
        return data.from_section(section, max(lengths, default=self.length), f'{name}.{{}}'.format)

    def _init(self, name: str, entry: dict[str, Any]) -> Source:
        """What a run starts from: another run, or a model of another library."""
        if imports.is_import(entry['init']):
            return self._import(
                name, {k: entry[k] for k in ('init', 'nope', 'own_tokenizer') if k in entry}
            )
        return self.run(entry['init'], f'runs.{name}.init')

    def _import(self, name: str, entry: dict[str, Any]) -> ImportSpec:
        where = f'runs.{name}'
        imports.check_init(entry['init'], where)
        source = self._data
        if entry.get('own_tokenizer'):
            source = dataclasses.replace(
                source, tokenizer=self._imported.tokenizer_of(entry['init'])
            )
        changes = dict(entry.get('model', {}))
        if entry.get('nope'):
            changes['position'] = {'kind': 'none'}
        return imports.import_spec(
            self._imported.opened(entry['init']),
            self.config['model'],
            changes,
            where=f'{where}.model',
            data=source,
            seed=self._seed,
            train_length=self.length,
        )

    def _finetune(self, name: str, entry: dict[str, Any]) -> RunSpec:
        """All parameters trained on, for another length and perhaps another position encoding."""
        where = f'runs.{name}'
        changes = entry.get('model', {})
        if 'train' in entry or set(changes) - {'position'}:
            raise ValueError(
                f'{where}: fine-tuning takes all but model.position from its init, and its '
                f'settings from {where}.finetune'
            )
        init = self._init(name, entry)
        model = init.model
        if 'position' in changes:
            field = f'{where}.model.position'
            model = model.with_position(
                sections.position_for(changes['position'], model, self.length, field)
            )
        section = self.section('finetune', entry, where)
        lengths = self._lengths_of(section, 'finetune')
        steps = sections.at_least('finetune.steps', section['steps'], 1)
        return RunSpec(
            model=model,
            data=self._data_of(entry, where, init, lengths),
            train=TrainConfig(
                lengths=lengths,
                batch_size=section['batch_size'],
                steps=steps,
                optimizer=sections.optimizer(
                    section | {'warmup_steps': round(section['warmup_share'] * steps)},
                    trains='params',
                    decay_steps=steps,
                ),
            ),
            seed=self._seed,
            data_seed=section['data_seed'] + self._seed,
            train_length=self.length,
            init=init,
        )

    def _search(self, name: str, entry: dict[str, Any]) -> RunSpec:
        for other in ('model', 'train'):
            if other in entry:
                raise ValueError(f'runs.{name}.{other}: a search takes its {other} from its init')
        init = self._init(name, entry)
        section = self.section('search', entry, f'runs.{name}')
        lengths = self._lengths_of(section, 'search')
        if section['target'] and section['target'] <= self.length:
            raise ValueError(
                f'runs.{name}.search.target is {section["target"]}; it must be beyond the '
                f'training length, {self.length}'
            )
        form = sections.form(section['form'], self.length)
        bound = None if section['bound'] == -math.inf else float(section['bound'])
        if bound is not None and not math.isfinite(bound):
            raise ValueError(
                f'search.bound is {bound}; accepted: a finite number, or -inf for none'
            )
        optimizer = sections.optimizer(
            section,
            trains='lam',
            decay_steps=sections.at_least('search.steps', section['steps'], 1),
            bound=bound,
            straight_through=section['straight_through'],
        )
        return RunSpec(
            model=dataclasses.replace(init.model, lam=form),
            data=self._data_of(entry, f'runs.{name}', init, lengths),
            train=TrainConfig(
                lengths=lengths,
                batch_size=section['batch_size'],
                steps=section['steps'],
                optimizer=optimizer,
            ),
            seed=self._seed,
            data_seed=section['data_seed'] + self._seed,
            train_length=self.length,
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
        kind = self.config['evals'].get(name, {}).get('kind', 'positions')
        if kind not in EVAL_KINDS:
            raise ValueError(f'{where}.kind is {kind!r}; accepted: {", ".join(EVAL_KINDS)}')
        if kind in text_builder.KINDS:
            accepted = ('kind', 'run', 'scale', 'scale_from', 'position', *text_builder.KINDS[kind])
            entry = self._entry('evals', name, 'the config', accepted)
            run = self.run(entry.get('run', ''), f'{where}.run')
            return text_builder.build(self, kind, entry, run, where)
        return self._windowed(name, kind, where)

    def _windowed(self, name: str, kind: str, where: str) -> EvalSpec:
        """An evaluation of windows cut from the model's own data."""
        accepted = (
            *('kind', 'run', 'times', 'target', 'scale', 'scale_from', 'position'),
            *('step_share', 'grid', 'evaluation'),
        )
        entry = self._entry('evals', name, 'the config', accepted)
        run = self.run(entry.get('run', ''), f'{where}.run')
        step = None
        if entry.get('step_share', 1.0) != 1.0:
            if isinstance(run, ImportSpec):
                raise ValueError(f'{where}.step_share: an imported model has no earlier steps')
            step = self._step(entry['step_share'], run.train.steps, f'{where}.step_share')
            if step not in run.train.keep_steps:
                raise ValueError(
                    f'{where}.step_share is {entry["step_share"]}; the run keeps the shares '
                    f'{self.config["train"]["keep"]} (train.keep)'
                )
        if kind == 'lengths':
            return self._lengths(entry, run, where)
        if kind == 'scale_grid':
            section = self.section('grid', entry, where)
            windows = self._windows(self._length_of(entry, where), section)
            return GridSpec(run, windows, sections.grid(section), step)
        position = self.position(entry, run, where)
        section = self.section('evaluation', entry, where)
        windows = self._windows(self._length_of(entry, where), section)
        self.check_reach(run, position, windows.length, where)
        return PositionsSpec(run, windows, self.scale(entry, where), position, step)

    def _lengths(self, entry: dict[str, Any], run: Source, where: str) -> LengthsSpec:
        times = entry.get('times', ())
        if not isinstance(times, list | tuple) or not times:
            raise ValueError(f'{where}.times is {times!r}; kind "lengths" takes several multiples')
        lengths = tuple(self.times(t, f'{where}.times') for t in times)
        windows = self._windows(max(lengths), self.section('evaluation', entry, where))
        scales: tuple[GridSpec, ...] = ()
        if 'grid' in entry:  # the best uniform scale of every length, chosen on other windows
            section = self.section('grid', entry, where)
            scales = tuple(
                GridSpec(run, self._windows(n, section, max(lengths)), sections.grid(section))
                for n in lengths
            )
        position = self.position(entry, run, where)
        self.check_reach(run, position, windows.length, where)
        return LengthsSpec(run, windows, lengths, scales, position)

    def check_reach(self, run: Source, position: Position | None, length: int, where: str) -> None:
        """ValueError where sequences are longer than the position encoding is defined for."""
        model = run.model if position is None else run.model.with_position(position)
        check_same_table(model, run.model)
        if model.longest is not None and length > model.longest:
            raise ValueError(
                f'{where}: sequences of {length} tokens; {model.describe_position()} positions '
                f'end at {model.longest}'
            )

    def scale(self, entry: dict[str, Any], where: str) -> float | GridSpec | None:
        if entry.get('scale_from'):
            return self._grid(entry['scale_from'], f'{where}.scale_from')
        if 'scale' not in entry:
            return None
        scale = float(entry['scale'])
        if not math.isfinite(scale) or scale <= 0:
            raise ValueError(f'{where}.scale is {scale}; it must be finite and above 0')
        return scale

    def _grid(self, name: str, field: str) -> GridSpec:
        if name not in self.config['evals']:
            raise ValueError(
                f'{field} is {name!r}; the config has the evals {sorted(self.config["evals"])}'
            )
        spec = self.eval(name)
        if not isinstance(spec, GridSpec):
            raise ValueError(f'{field} is {name!r}, which is not an eval of kind "scale_grid"')
        return spec

    def position(self, entry: dict[str, Any], run: Source, where: str) -> Position | None:
        if 'position' not in entry:
            return None
        return sections.position_for(entry['position'], run.model, self.length, f'{where}.position')

    # Exports

    def exports(self) -> list[ExportSpec]:
        return [self._export(name) for name in self.config['exports']]

    def _export(self, name: str) -> ExportSpec:
        where = f'exports.{name}'
        accepted = ('run', 'lam', 'target', 'share', 'dtype')
        entry = self._entry('exports', name, 'the config', accepted)
        run = self.run(entry.get('run', ''), f'{where}.run')
        length = None
        if entry.get('target'):
            length = self._share(entry['target'], entry.get('share', 1.0), where)
        elif isinstance(run, RunSpec) and run.fine_tunes:
            length = run.train.block
        own = 'float32' if run.imported is None else run.imported.dtype
        dtype = entry.get('dtype') or own
        export = Export(entry.get('lam', 'fold'), length, dtype)
        check_export(run.model, export)
        if run.searched and export.lam == 'fold':  # not after the search, which takes hours
            check_foldable(run.model, length)
        return ExportSpec(name, run, export)

    # Pieces

    def _entry(
        self, group: str, name: str, asked_by: str, accepted: tuple[str, ...]
    ) -> dict[str, Any]:
        entries = self.config[group]
        if name not in entries:
            raise ValueError(f'{asked_by} names {name!r}; the config has {group} {sorted(entries)}')
        entry = entries[name]
        for key in entry:
            if key not in accepted:
                raise ValueError(f'{group}.{name}.{key} is unknown; accepted: {sorted(accepted)}')
        return entry

    def section(self, section: str, entry: dict[str, Any], where: str) -> dict[str, Any]:
        return sections.merge(self.config[section], entry.get(section, {}), f'{where}.{section}')

    def _model(self, entry: dict[str, Any], where: str) -> ModelConfig:
        """A run's model: the config's section, with the run's changes, and the model's own
        defaults for the rest."""
        changes = entry.get('model', {})
        section = sections.merge(sections.MODEL_DEFAULTS | self.config['model'], changes, where)
        position_field = f'{where if "position" in changes else "model"}.position'
        for name in ('heads', 'width'):
            sections.at_least(f'model.{name}', section[name], 1)
        if not section['head_dim'] and section['width'] % section['heads']:
            raise ValueError(
                f'model.width is {section["width"]}, not a multiple of model.heads = '
                f'{section["heads"]}; give model.head_dim'
            )
        fields = section | {
            'head_dim': section['head_dim'] or section['width'] // section['heads'],
            'vocab_size': sections.vocab_size(section, self._data),
            'position': from_section(section['position'], self.length, position_field),
            'pattern': tuple(self._kind(kind) for kind in section['pattern']),
        }
        return sections.model_config(fields)

    def _kind(self, section: dict[str, Any]) -> LayerKind:
        fields = sections.merge(
            {'position': {'kind': 'none'}, 'window': 0}, section, 'model.pattern'
        )
        position = from_section(fields['position'], self.length, 'model.pattern.position')
        return LayerKind(position, fields['window'])

    def _windows(self, length: int, section: dict[str, Any], block: int | None = None) -> Windows:
        return Windows(
            length=length,
            block=block or length,
            count=section['windows'],
            split=section['split'],
            seed=section['seed'],
        )

    def _lengths_of(self, section: dict[str, Any], name: str) -> tuple[int, ...]:
        """Training lengths: multiples of L, or shares of `target` tokens where that is given."""
        if section['target']:
            shares = section['shares']
            return tuple(self._share(section['target'], share, name) for share in shares)
        return tuple(self.times(t, f'{name}.times') for t in section['times'])

    def _length_of(self, entry: dict[str, Any], where: str) -> int:
        """Length of an evaluation: `target` tokens where it has one, else a multiple of L."""
        if 'target' in entry:
            return sections.at_least(f'{where}.target', entry['target'], 1)
        return self.times(entry.get('times', 1.0), f'{where}.times')

    def _share(self, target: int, share: float, where: str) -> int:
        if not 0 < share <= 1:
            raise ValueError(f'{where}.share is {share}; a share of the target lies in (0, 1]')
        return sections.at_least(f'{where}.target', round(target * share), 1)

    def times(self, times: float, field: str) -> int:
        if not (math.isfinite(times) and times > 0):
            raise ValueError(f'{field} is {times}; it must be finite and above 0')
        return sections.at_least(f'{field} x train.length', round(times * self.length), 1)

    def _step(self, share: float, steps: int, field: str) -> int:
        if not 0 < share < 1:
            raise ValueError(f'{field} is {share}; a share of the training steps lies in (0, 1)')
        return max(round(share * steps), 1)
