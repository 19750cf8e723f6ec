"""The published files of LongBench: one NAME.jsonl for each data set, one sample in each line."""

from __future__ import annotations

import dataclasses
import itertools
import json
import logging
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from nope.evals.longbench import metrics
from nope.evals.longbench.datasets import DATASETS, Dataset
from nope.runtime.files import are_texts, json_rows

log = logging.getLogger(__name__)

_LAYOUT = (
    'it must hold one file NAME.jsonl for each data set, as the folder data/ of the published '
    'archive, data.zip, does when it is unpacked'
)
MOST_SHOWN = 40  # characters of a value in an error
_FIELDS = ('input', 'context', 'answers', 'all_classes', 'length')


@dataclasses.dataclass(frozen=True)
class LongBenchSample:
    """One question: `dataset` is a key of DATASETS, `index` counts its samples from 0."""

    dataset: str
    index: int
    input: str
    context: str
    answers: tuple[str, ...]
    classes: tuple[str, ...]

    @property
    def key(self) -> str:
        return f'{self.dataset}/{self.index}'


def found_in(folder: pathlib.Path) -> tuple[str, ...]:
    """Names of the data sets whose files are in a folder; all where none is, which `check` says."""
    found = tuple(name for name in DATASETS if _file(folder, name).is_file())
    return found or tuple(DATASETS)


def check(folder: pathlib.Path, names: Sequence[str] = tuple(DATASETS)) -> None:
    """Reads the data sets `names` from beginning to end, and refuses what `run` could not use.

    FileNotFoundError names the missing folder or all missing files. ValueError for unknown names
    and for files without samples. A line that is no sample is named with its file. Warns where a
    file has not as many samples as were published.
    """
    _check_files(folder, names)
    for name in names:
        count = sum(1 for _ in _samples(folder, DATASETS[name]))
        if count != DATASETS[name].samples:
            log.warning(
                '%s has %d samples; %d were published',
                _file(folder, name),
                count,
                DATASETS[name].samples,
            )


def read(
    folder: pathlib.Path, names: Sequence[str] = tuple(DATASETS), limit: int | None = None
) -> list[LongBenchSample]:
    """The samples of the data sets `names`, in that order; of each the first `limit`.

    Errors as `check`, in what is read.
    """
    _check_files(folder, names)
    each = (itertools.islice(_samples(folder, DATASETS[name]), limit) for name in names)
    return list(itertools.chain.from_iterable(each))


def _check_files(folder: pathlib.Path, names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in DATASETS]
    if unknown or not names or len(set(names)) < len(names):
        raise ValueError(
            f'names is {", ".join(map(str, names)) or "empty"}; it must be one or more of '
            f'{", ".join(DATASETS)}, each once'
        )
    if not folder.is_dir():
        raise FileNotFoundError(f"folder is '{folder}': there is no such folder; {_LAYOUT}")
    missing = [f'{name}.jsonl' for name in names if not _file(folder, name).is_file()]
    if missing:
        raise FileNotFoundError(f"folder is '{folder}': {', '.join(missing)} missing; {_LAYOUT}")


def _file(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / f'{name}.jsonl'


def _samples(folder: pathlib.Path, dataset: Dataset) -> Iterator[LongBenchSample]:
    path = _file(folder, dataset.name)
    numbers = itertools.count()
    yield from json_rows(path, lambda row: _sample(dataset, next(numbers), row))
    if not next(numbers):
        raise ValueError(f'{path}: there is no sample in it')


def _sample(dataset: Dataset, index: int, row: dict[str, Any]) -> LongBenchSample:
    """ValueError saying what is wrong with the row."""
    missing = [name for name in _FIELDS if name not in row]
    if missing:
        raise ValueError(f'no {", ".join(missing)}; a sample has {", ".join(_FIELDS)}')
    _require(row, 'input', 'a text', isinstance(row['input'], str))
    _require(row, 'context', 'a text', isinstance(row['context'], str))
    _require(row, 'length', 'an integer', type(row['length']) is int)
    answers, classes = row['answers'], row['all_classes']
    _require(row, 'answers', 'a list of one or more texts', are_texts(answers) and answers)
    _require(row, 'all_classes', 'null or a list of texts', classes is None or are_texts(classes))
    sample = LongBenchSample(
        dataset=dataset.name,
        index=index,
        input=row['input'],
        context=row['context'],
        answers=tuple(answers),
        classes=tuple(classes or ()),
    )
    # Raises for answers and classes that the metric cannot compare a prediction with.
    metrics.score(dataset.metric, '', sample.answers, sample.classes)
    return sample


def _require(row: dict[str, Any], field: str, kind: str, fulfilled: object) -> None:
    if not fulfilled:
        text = json.dumps(row[field])
        shown = text if len(text) <= MOST_SHOWN else f'{text[:MOST_SHOWN]} ...'
        raise ValueError(f'{field} is {shown}; it must be {kind}')
