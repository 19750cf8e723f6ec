"""Construction of an experiment, the work of one command, from a config's plain data.

A config has sections with defaults (`model`, `data`, `train`, `search`, `evaluation`, `finetune`,
`grid`, `compute`), groups of entries that change fields of the sections (`runs`, `evals` and
`exports`), and a `figure`. Lengths are multiples of the training length (`times`), so that one
field moves all of them, or shares of one length in tokens (`target`). A `recipe` is said where text
is missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from experiments import figures
from experiments.config import Ledger, Section, plain
from experiments.entries import Entries
from experiments.evaluations import EvalSpec
from experiments.exports import ExportSpec
from experiments.homes import check_name
from nope.runtime.seeds import RULE, is_seed
from nope.sharding import MeshConfig
from nope.training.config import Compute

SECTIONS = (
    *('name', 'seeds', 'model', 'data', 'train', 'search', 'finetune', 'evaluation', 'grid'),
    *('compute', 'runs', 'evals', 'exports', 'figure'),
)
# Fields of an evaluation's entry that set an attribute of its records.
_TYPED = {'length': ('tokens', 'target', 'times'), 'windows': ('windows',), 'split': ('split',)}


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Evaluations by name, the figure of them, and models to write for other libraries.

    settings: path -> value of the fields that determine all of it.
    """

    name: str
    evals: Mapping[str, EvalSpec]
    exports: tuple[ExportSpec, ...]
    figure: Mapping[str, Any]
    compute: Compute
    batch_tokens: int
    settings: Mapping[str, Any]


def build(config_dict: Mapping[str, Any], changed: Collection[str] = ()) -> Experiment:
    """The experiment that a config describes.

    changed: paths of the fields that the user has set. ValueError names the field that does not
    fit, or that was set and has no use.
    """
    config: dict[str, Any] = plain(config_dict)
    for name in SECTIONS:
        if name not in config:
            raise ValueError(f'{name} is missing; a config has {", ".join(SECTIONS)}')
    ledger = Ledger([config['length']] if 'length' in config else ())
    check_name('name', config['name'])
    seeds = Section('seeds', {'seeds': config['seeds']}, ledger, {'seeds': 'seeds'})
    evals: dict[str, EvalSpec] = {}
    exports: list[ExportSpec] = []
    given = seeds.several('seeds', 'seeds')
    if not all(map(is_seed, given)):
        raise seeds.error('seeds', RULE)
    for seed in given:
        entries = Entries(config, seed, ledger)
        for name, spec in entries.evaluations().items():
            place = name if len(given) == 1 and not name.endswith('/') else f'{name}/seed{seed}'
            evals[place.replace('//', '/')] = spec
        exports += entries.exports()
    if exports and len(given) > 1:
        raise seeds.error('seeds', 'one seed alone is exported; accepted: one, or no exports')
    try:
        _check_figure(config, evals)
    except FileNotFoundError as error:
        if 'recipe' in config and str(error).startswith(('data.source', 'data.mixture')):
            raise FileNotFoundError(f'{error}; {config["recipe"]}') from error
        raise
    for path in ('name', 'figure'):
        ledger.note(path, config[path])
    batch_tokens = Section('evaluation', config['evaluation'], ledger).detailing('batch_tokens')
    section = Section('compute', config['compute'], ledger)
    meshes: dict[str, Any] = {}
    for name in ('mesh', 'later_mesh'):
        meshes[name] = section.below(name).make(MeshConfig, execution=True)
    if set(config['compute']['later_mesh'].values()) == {None}:
        meshes['later_mesh'] = meshes['mesh']
    experiment = Experiment(
        name=config['name'],
        evals=evals,
        exports=tuple(exports),
        figure=config['figure'],
        compute=section.make(Compute, execution=True, **meshes),
        batch_tokens=batch_tokens.at_least('batch_tokens', 1),
        settings=ledger.settings(),
    )
    sections = {name for name, value in config.items() if isinstance(value, Mapping)}
    ledger.check_used(p for p in changed if p.partition('.')[0] in sections)
    return experiment


def _check_figure(config: dict[str, Any], evals: Mapping[str, EvalSpec]) -> None:
    """ValueError unless the figure exists and the evaluations it will ask for are there."""
    figure = config['figure']
    kind = figure['kind']
    if kind not in figures.KINDS:
        raise ValueError(f'figure.kind is {kind!r}; accepted: {", ".join(sorted(figures.KINDS))}')
    options = {key: value for key, value in figure.items() if key != 'kind'}
    try:
        needed = figures.KINDS[kind].required(config['name'], options)
    except (AttributeError, KeyError, TypeError) as error:  # an option of another type
        raise ValueError(f'figure ({kind}): its options do not fit: {error}') from error
    members: dict[str, EvalSpec] = {}
    for name, wanted in needed.items():
        found = {
            key: spec
            for key, spec in evals.items()
            if key == name or key.startswith(name if name.endswith('/') else f'{name}/')
        }
        if not found:
            raise ValueError(
                f'figure ({kind}) asks for {name!r}, which is missing; the config has the evals '
                f'{sorted(evals)}'
            )
        other = {spec.kind for spec in found.values()} - {wanted}
        if other:
            raise ValueError(
                f'figure ({kind}) needs evals.{name} of kind {wanted!r}, it is {other.pop()!r}'
            )
        members |= found
    _check_alike(kind, members, config['evals'])
    known = {name: spec.known for name, spec in members.items()}
    figures.KINDS[kind].check_known(config['name'], options, known)


def _check_alike(kind: str, evals: Mapping[str, EvalSpec], entries: Mapping[str, Any]) -> None:
    """ValueError where the records that a figure compares will differ in what it needs alike."""

    def place(name: str, attribute: str) -> str:
        """Config path of the attribute, or of its entry where it is no one field."""
        group = name.rpartition('/')[0]
        entry = next(x for x in (name, f'{group}/', group) if x in entries)
        typed = [field for field in _TYPED.get(attribute, ()) if field in entries[entry]]
        return '.'.join(['evals', entry, *typed[:1]])

    for attribute in figures.KINDS[kind].SHARED:
        known = {name: spec.known[attribute] for name, spec in evals.items()}
        if len(set(known.values())) > 1:
            by = {f'{value!r} by {place(x, attribute)}' for x, value in known.items()}
            told = ', '.join(sorted(by))
            raise ValueError(f'figure ({kind}) compares records of one {attribute}; it is {told}')
