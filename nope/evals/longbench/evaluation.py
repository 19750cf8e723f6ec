"""LongBench as an evaluation: prompts in, answers out, scores of data sets as `Records`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from nope.data.chat import Chat
from nope.data.prefix import prefix_of
from nope.data.tokenizers import Tokenizer
from nope.evals.forward import Progress
from nope.evals.generation import Generator, Options
from nope.evals.longbench import metrics
from nope.evals.longbench.datasets import DATASETS, Dataset
from nope.evals.longbench.prompts import Prompt, check_settings, prompt
from nope.evals.longbench.reading import Sample
from nope.evals.samples import SampleLog
from nope.records import Measure, Records

logger = logging.getLogger(__name__)

BEAMS = 5


def run(
    generator: Generator,
    tokenizer: Tokenizer,
    samples: Sequence[Sample],
    *,
    max_length: int,
    beams: int = BEAMS,
    log: SampleLog,
    bos: bool | None = None,
    chat: Chat | None = None,
    window: int | None = None,
    batch_size: int = 32,
    progress: Progress = iter,
) -> Records:
    """Lets the model answer every sample that `log` has not, and scores all of `samples`.

    max_length: tokens of a prompt, prefix included; `prompt_budget` has the rule. bos: as
    `nope.data.prefix` has it. chat: asks in turns. window: where given, no prompt with its answer
    may be longer. Answers are logged batch_size at a time, longest prompts of a data set first,
    each under 'dataset/index' with its prediction, its score in 0 .. 1, its references, the tokens
    of its prompt and whether the prompt was cut.

    Measures: `score` [dataset] 0 .. 100, the mean over samples of the best value over the
    references, rounded to two decimals; `samples` [dataset]. Attribute `average`: the plain mean
    of `score`.

    ValueError, before anything is generated, for settings that do not fit each other or the
    tokenizer, and for a log that belongs to other samples.
    """
    _check(tokenizer, samples, max_length, beams, bos, window, batch_size)
    waiting = [sample for sample in samples if not _is_answered(sample, log)]
    logger.info('%d of %d samples are answered', len(samples) - len(waiting), len(samples))
    asked = [
        prompt(sample, tokenizer, max_length=max_length, bos=bos, chat=chat) for sample in waiting
    ]
    _check_fit(waiting, asked, window)
    for dataset, batch in progress(_batches(waiting, asked, batch_size)):
        prompts = [each.ids for _, each in batch]
        found = generator.generate(prompts, options(dataset, tokenizer, beams))
        log.append(
            {
                sample.key: _row(dataset, sample, each, tokenizer.decode(new))
                for (sample, each), new in zip(batch, found, strict=True)
            }
        )
    begins = bool(prefix_of(tokenizer, bos))
    return _records(samples, log, {'max_length': max_length, 'beams': beams, 'bos': begins})


def options(dataset: Dataset, tokenizer: Tokenizer, beams: int) -> Options:
    """Decoding options of answers: beam search with length penalty 1 up to EOS.

    samsum's have a token at least and end with their line.
    """
    stops = [*tokenizer.stop_ids]
    newline = newline_id(tokenizer) if dataset.ends_at_newline else None
    if newline is not None:
        stops.append(newline)
    return Options(
        new_tokens=dataset.new_tokens,
        least=1 if dataset.ends_at_newline else 0,
        stop_ids=tuple(stops),
        beams=beams,
        length_penalty=1.0,
        early_stopping=False,
    )


def newline_id(tokenizer: Tokenizer) -> int | None:
    """The last id of an encoded newline, if it means a newline by itself: 13 in Llama's vocabulary.

    None where the tokenizer has no such id (it drops newlines, or calls them unknown). Answers
    then run on; as only their first line is scored, that costs time and can change which beam
    wins.
    """
    ids = tokenizer.encode('\n')
    if len(ids) and tokenizer.decode(ids[-1:]) == '\n':
        return int(ids[-1])
    return None


def _check(
    tokenizer: Tokenizer,
    samples: Sequence[Sample],
    max_length: int,
    beams: int,
    bos: bool | None,
    window: int | None,
    batch_size: int,
) -> None:
    if not samples:
        raise ValueError('samples is empty; it must have one or more')
    check_settings(tokenizer, max_length, bos)
    for name, value in (('beams', beams), ('batch_size', batch_size)):
        if value < 1:
            raise ValueError(f'{name} is {value}; it must be at least 1')
    longest = max((DATASETS[s.dataset] for s in samples), key=lambda d: d.new_tokens)
    if window is not None and max_length + longest.new_tokens > window:
        raise ValueError(
            f'max_length is {max_length}; with the {longest.new_tokens} tokens of an answer of '
            f'{longest.name} it must not exceed the window, {window}'
        )


def _is_answered(sample: Sample, log: SampleLog) -> bool:
    """ValueError where the log has an answer to another question."""
    if sample.key not in log:
        return False
    if log[sample.key]['answers'] != list(sample.answers):
        raise ValueError(f'log has other references for {sample.key!r}: it is of other files')
    return True


def _check_fit(samples: Sequence[Sample], asked: Sequence[Prompt], window: int | None) -> None:
    """A cut prompt may be longer than max_length."""
    for sample, each in zip(samples, asked, strict=True):
        new = DATASETS[sample.dataset].new_tokens
        if window is not None and len(each.ids) + new > window:
            raise ValueError(
                f'the prompt of {sample.key!r} has {len(each.ids)} tokens; with {new} of its '
                f'answer it must not exceed the window, {window}: max_length must be lower'
            )


def _batches(
    samples: Sequence[Sample], asked: Sequence[Prompt], batch_size: int
) -> list[tuple[Dataset, list[tuple[Sample, Prompt]]]]:
    """Samples of one data set and of similar length, longest first."""
    entries: dict[str, list[tuple[Sample, Prompt]]] = {}
    for sample, each in zip(samples, asked, strict=True):
        entries.setdefault(sample.dataset, []).append((sample, each))
    batches = []
    for name, of_one in entries.items():
        of_one.sort(key=lambda entry: -len(entry[1].ids))
        for start in range(0, len(of_one), batch_size):
            batches.append((DATASETS[name], of_one[start : start + batch_size]))
    return batches


def _row(dataset: Dataset, sample: Sample, each: Prompt, prediction: str) -> dict[str, Any]:
    return {
        'dataset': sample.dataset,
        'index': sample.index,
        'prediction': prediction,
        'score': metrics.score(
            dataset.metric,
            prediction,
            sample.answers,
            sample.classes,
            first_line_only=dataset.first_line_only,
        ),
        'answers': list(sample.answers),
        'prompt_tokens': len(each.ids),
        'truncated': each.truncated,
    }


def _records(samples: Sequence[Sample], log: SampleLog, attributes: dict[str, Any]) -> Records:
    rows = [log[sample.key] for sample in samples]
    names = [name for name in DATASETS if any(row['dataset'] == name for row in rows)]
    scores = [[row['score'] for row in rows if row['dataset'] == name] for name in names]
    score = np.array([round(100 * sum(values) / len(values), 2) for values in scores])
    return Records(
        attributes={'evaluation': 'longbench', **attributes, 'average': float(score.mean())},
        measures={
            'score': Measure(score, ('dataset',), '0..100'),
            'samples': Measure(np.array([len(values) for values in scores]), ('dataset',), ''),
        },
        coordinates={'dataset': np.array(names)},
    )
