"""LongBench as an evaluation: prompts in, answers out, scores of data sets as `Records`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from nope.data.chat import Chat
from nope.data.prefix import prefix_of
from nope.data.tokenizers import Tokenizer
from nope.evals import answers
from nope.evals.forward import Progress
from nope.evals.generation import Generator, Options
from nope.evals.longbench import metrics
from nope.evals.longbench.datasets import DATASETS, Dataset
from nope.evals.longbench.prompts import LongBenchPrompt, prompt
from nope.evals.longbench.reading import LongBenchSample
from nope.evals.samples import SampleLog
from nope.records import Measure, Records

logger = logging.getLogger(__name__)

BEAMS = 5


def run(
    generator: Generator,
    tokenizer: Tokenizer,
    samples: Sequence[LongBenchSample],
    *,
    max_length: int,
    beams: int = BEAMS,
    log: SampleLog,
    bos: bool | None = None,
    chat: Chat | None = None,
    window: int | None = None,
    progress: Progress = iter,
) -> Records:
    """Lets the model answer every sample that `log` has not, and scores all of `samples`.

    max_length: tokens of a prompt, prefix included; `prompt_budget` has the rule. bos: as
    `nope.data.prefix` has it. chat: asks in turns. window: where given, no prompt with its answer
    may be longer. Answers are logged as by `answers.ask`, longest prompts of a data set first, each
    under 'dataset/index' with its prediction, its score in 0 .. 1, its references, the tokens
    of its prompt and whether the prompt was cut.

    Measures: `score` [dataset] 0 .. 100, the mean over samples of the best value over the
    references, rounded to two decimals; `samples` [dataset]. Attribute `average`: the plain mean
    of `score`.

    ValueError, before anything is generated, for settings that do not fit each other or the
    tokenizer (`check_settings` has the others), and for a log that belongs to other samples.
    """
    waiting = []
    for sample in samples:
        if sample.key not in log:
            waiting.append(sample)
        elif log[sample.key]['answers'] != list(sample.answers):
            raise ValueError(f'log has other references for {sample.key!r}: it is of other files')
    logger.info('%d of %d samples are answered', len(samples) - len(waiting), len(samples))
    asked = [
        prompt(sample, tokenizer, max_length=max_length, bos=bos, chat=chat) for sample in waiting
    ]
    entries: dict[str, list[tuple[LongBenchSample, LongBenchPrompt]]] = {}
    for sample, each in zip(waiting, asked, strict=True):
        # A cut prompt may be longer than max_length.
        new = DATASETS[sample.dataset].new_tokens
        if window is not None and max(len(each.ids), max_length) + new > window:
            raise ValueError(
                f'max_length is {max_length} and the prompt of {sample.key!r} has '
                f'{len(each.ids)} tokens; with {new} of its answer neither may exceed the window, '
                f'{window}'
            )
        entries.setdefault(sample.dataset, []).append((sample, each))
    groups = []
    for name, of_one in entries.items():
        longest_first = sorted(of_one, key=lambda entry: -len(entry[1].ids))
        questions = [_question(*entry) for entry in longest_first]
        groups.append((options(DATASETS[name], tokenizer, beams), questions))
    answers.ask(generator, tokenizer, groups, log=log, progress=progress)
    begins = bool(prefix_of(tokenizer, bos))
    return _records(samples, log, {'max_length': max_length, 'beams': beams, 'bos': begins})


def _question(sample: LongBenchSample, asked: LongBenchPrompt) -> answers.Question:
    dataset = DATASETS[sample.dataset]

    def row(text: str) -> dict[str, Any]:
        given = dataset.metric, text, sample.answers, sample.classes
        return {
            'dataset': sample.dataset,
            'index': sample.index,
            'prediction': text,
            'score': metrics.score(*given, first_line_only=dataset.first_line_only),
            'answers': list(sample.answers),
            'prompt_tokens': len(asked.ids),
            'truncated': asked.truncated,
        }

    return answers.Question(sample.key, lambda: asked.ids, row)


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


def _records(
    samples: Sequence[LongBenchSample], log: SampleLog, attributes: dict[str, Any]
) -> Records:
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
