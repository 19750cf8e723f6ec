"""From a config file's plain data to frozen specs: the one place where names are checked.

A config has sections with defaults (`model`, `data`, `train`, `search`, `evaluation`,
`finetune`, `grid`, `compute`) and lists of names: `runs`, `evals` and `exports`, whose entries
change fields of the sections, and `figure`. Lengths are multiples of `train.length` (`times`), so
that one field moves all of them, or shares of one length in tokens (`target`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from experiments import figures, sections
from experiments.builder import Builder
from experiments.evaluations import EvalSpec
from experiments.spec import ExportSpec
from nope.training.config import Compute


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Everything one command has to make: evaluations by name, the figure of them, and models
    to write for other libraries."""

    name: str
    evals: Mapping[str, EvalSpec]
    exports: tuple[ExportSpec, ...]
    figure: Mapping[str, Any]
    compute: Compute
    batch_tokens: int


def build(config_dict: Mapping[str, Any]) -> Experiment:
    """The experiment a config describes. ValueError names the field that does not fit."""
    config: dict[str, Any] = sections.plain(config_dict)
    seeds = config['seeds']
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError(f'seeds is {seeds}; it takes one or more different numbers')
    evals: dict[str, EvalSpec] = {}
    exports: list[ExportSpec] = []
    for seed in seeds:
        builder = Builder(config, seed)
        for name, spec in builder.evals().items():
            if not name.endswith('/') and len(seeds) > 1:
                raise ValueError(
                    f'seeds is {seeds}, but evals.{name} holds one seed; a name that ends in "/" '
                    'holds several'
                )
            evals[f'{name}seed{seed}' if name.endswith('/') else name] = spec
        exports += builder.exports()
    _check_figure(config, evals)
    return Experiment(
        name=config['name'],
        evals=evals,
        exports=tuple(exports),
        figure=config['figure'],
        compute=sections.compute(config['compute']),
        batch_tokens=sections.at_least(
            'evaluation.batch_tokens', config['evaluation']['batch_tokens'], 1
        ),
    )


def _check_figure(config: dict[str, Any], evals: Mapping[str, EvalSpec]) -> None:
    """ValueError unless the figure exists and the evaluations it will ask for are there."""
    figure = config['figure']
    kind = figure['kind']
    if kind not in figures.KINDS:
        raise ValueError(f'figure.kind is {kind!r}; accepted: {", ".join(sorted(figures.KINDS))}')
    options = {key: value for key, value in figure.items() if key != 'kind'}
    for name, wanted in figures.KINDS[kind].required(config['name'], options).items():
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
