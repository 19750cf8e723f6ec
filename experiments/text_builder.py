"""Specs of evaluations of text, from the entries of a config's `evals`."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from experiments import sections
from experiments.evaluations import (
    PASSKEY,
    HarnessSpec,
    LongbenchSpec,
    NeedlesSpec,
    PerplexitySpec,
    TextSpec,
)
from experiments.spec import RunSpec, Source
from nope import data
from nope.data import SPLITS, digest
from nope.data.sources import folders
from nope.data.templates import TEMPLATES
from nope.evals import harness, longbench
from nope.evals.needles import TASKS
from nope.evals.passkey_plan import TESTS

if TYPE_CHECKING:
    from experiments.builder import Builder

# Kind -> fields of its entries beside `kind`, `run`, `scale`, `scale_from` and `position`.
KINDS: dict[str, tuple[str, ...]] = {
    'perplexity': ('times', 'corpus', 'perplexity'),
    'passkey': ('times', 'window', 'needles'),
    'needles': ('task', 'times', 'window', 'needles'),
    'longbench': ('window', 'longbench'),
    'harness': ('window', 'harness'),
}
HUB = 'hub'  # of harness.files: data sets are downloaded


def build(builder: Builder, kind: str, entry: dict[str, Any], run: Source, where: str) -> TextSpec:
    """The evaluation of `entry`, whose section of the config has the fields it does not name.

    ValueError or FileNotFoundError, naming the field, for values that do not fit, files that are
    missing, and sequences longer than the position encoding is defined for.
    """
    makers: Mapping[str, Callable[..., TextSpec]] = {
        'perplexity': _perplexity,
        'longbench': _longbench,
        'harness': _harness,
    }
    name = 'needles' if kind == PASSKEY else kind
    section = builder.section(name, entry, where)
    common = {
        'run': run,
        'bos': section['bos'],
        'scale': builder.scale(entry, where),
        'position': builder.position(entry, run, where),
    }
    spec = makers.get(kind, _needles)(builder, entry, section, where, common)
    builder.check_reach(run, spec.position, spec.extent, where)
    return spec


def _perplexity(
    builder: Builder, entry: dict, section: dict, where: str, common: dict
) -> PerplexitySpec:
    times = entry.get('times', (1.0,))
    if not isinstance(times, list | tuple) or not times:
        raise ValueError(f'{where}.times is {times!r}; kind "perplexity" takes several multiples')
    lengths = tuple(builder.times(t, f'{where}.times') for t in times)
    if len(set(lengths)) < len(lengths):
        raise ValueError(f'{where}.times is {times!r}; every length is measured once')
    corpora = builder.config['corpora']
    name = entry.get('corpus', '')
    if name not in corpora:
        raise ValueError(f'{where}.corpus is {name!r}; the config has the corpora {list(corpora)}')
    fields = {'source': '', 'field': 'text', 'record_length': None, 'split': 'test'}
    corpus = sections.merge(fields, corpora[name], f'corpora.{name}')
    if corpus['split'] not in SPLITS:
        raise ValueError(
            f'corpora.{name}.split is {corpus["split"]!r}; accepted: {", ".join(SPLITS)}'
        )
    stride = section['stride'] or max(builder.length // 8, 1)
    return PerplexitySpec(
        corpus=data.from_section(
            {**corpus, 'tokenizer': common['run'].data.tokenizer},
            builder.length,
            f'corpora.{name}.{{}}'.format,
        ),
        split=corpus['split'],
        lengths=lengths,
        stride=stride,
        budget=sections.at_least('perplexity.budget', section['budget'], stride),
        **common,
    )


def _needles(builder: Builder, entry: dict, section: dict, where: str, common: dict) -> NeedlesSpec:
    task = entry.get('task', PASSKEY)
    if task not in (PASSKEY, *TASKS):
        raise ValueError(f'{where}.task is {task!r}; accepted: {", ".join((PASSKEY, *TASKS))}')
    if section['template'] not in TEMPLATES:
        raise ValueError(
            f'needles.template is {section["template"]!r}; accepted: {", ".join(TEMPLATES)}'
        )
    if not 1 <= section['tests'] <= TESTS:
        raise ValueError(f'needles.tests is {section["tests"]}; accepted: 1 to {TESTS}')
    return NeedlesSpec(
        task=task,
        template=section['template'],
        max_length=builder.times(entry.get('times', 2.0), f'{where}.times'),
        window=_window(builder, entry, where, common['run']),
        plan_seed=section['seed'],
        tests=section['tests'],
        **common,
    )


def _longbench(
    builder: Builder, entry: dict, section: dict, where: str, common: dict
) -> LongbenchSpec:
    if not section['folder']:
        raise ValueError(
            'longbench.folder is empty: --config.longbench.folder=FOLDER with the files of '
            'LongBench, which cannot come with this code: NAME.jsonl for each data set ('
            + ', '.join(longbench.DATASETS)
            + '), as in the published archive'
        )
    names = tuple(section['datasets'] or longbench.DATASETS)
    folder = pathlib.Path(section['folder'])
    longbench.check(folder, names)
    window = _window(builder, entry, where, common['run'])
    files = [f'{name}.jsonl' for name in names]
    max_length = section['max_length'] or longbench.prompt_budget(window)
    longest = max_length + max(longbench.DATASETS[name].new_tokens for name in names)
    if longest > window and not section['beyond']:
        raise ValueError(
            f'longbench.max_length is {max_length}: with an answer {longest} tokens, more than '
            f'the window, {window}; accepted with longbench.beyond=True'
        )
    return LongbenchSpec(
        folder=section['folder'],
        fingerprint=digest.of_json(folders.identity('longbench', folder, files)),
        datasets=names,
        limit=sections.at_least('longbench.limit', section['limit'], 0),
        max_length=max_length,
        window=window,
        beyond=section['beyond'],
        beams=sections.at_least('longbench.beams', section['beams'], 1),
        **common,
    )


def _harness(builder: Builder, entry: dict, section: dict, where: str, common: dict) -> HarnessSpec:
    names = tuple(section['tasks'] or harness.TASKS)
    if not section['files']:
        raise ValueError(
            'harness.files is empty: --config.harness.files=FOLDER with the data of the tasks '
            f'({", ".join(names)}), which cannot come with this code; the layout is in '
            f'nope/evals/harness/published.py. {HUB!r} downloads them instead'
        )
    local = '' if section['files'] == HUB else section['files']
    harness.find(names, include=_folder(section['include']), data=_folder(local))
    return HarnessSpec(
        tasks=names,
        files=local,
        include=section['include'],
        fingerprint=digest.of_json(
            [
                version('lm_eval'),
                _content(section['include'], ('*.yaml', '*.yml', '*.py')),
                _content(local, tuple(f'{name}.*' for name in names)),
            ]
        ),
        window=_window(builder, entry, where, common['run']),
        limit=sections.at_least('harness.limit', section['limit'], 0),
        **common,
    )


def _folder(path: str) -> pathlib.Path | None:
    return pathlib.Path(path) if path else None


def _content(path: str, patterns: tuple[str, ...]) -> Any:
    """Identity of the files in a folder that match; None for no folder."""
    folder = _folder(path)
    if folder is None:
        return None
    found = {p for pattern in patterns for p in folder.rglob(pattern) if p.is_file()}
    names = sorted(p.relative_to(folder).as_posix() for p in found)
    return folders.identity('files', folder, names)


def _window(builder: Builder, entry: dict[str, Any], where: str, run: Source) -> int:
    """`window` in multiples of L; without it the length that the model was tuned at, if it was,
    else L."""
    if 'window' in entry:
        return builder.times(entry['window'], f'{where}.window')
    if isinstance(run, RunSpec) and run.init is not None:
        return run.train.block
    return builder.length
