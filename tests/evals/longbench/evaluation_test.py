from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nope.data.tokenizers import ByteTokenizer
from nope.evals.generation import Options
from nope.evals.longbench import DATASETS, prompt_budget, read, run
from nope.evals.longbench.evaluation import newline_id, options
from nope.evals.longbench.reading import LongBenchSample
from nope.evals.samples import SampleLog
from tests.evals.longbench.files import row, write

BYTES = ByteTokenizer()
NAMES = ['triviaqa', 'qasper', 'samsum']
SETTINGS: dict[str, Any] = {'max_length': 600, 'beams': 3, 'bos': True}


class Parrot:
    """Answers with what stands between < and > in its prompt, if anything; keeps what it saw."""

    def __init__(self, kill_after: int = 10**6) -> None:
        self.calls: list[tuple[list[np.ndarray], Options]] = []
        self._kill_after = kill_after

    def generate(self, prompts: Sequence[np.ndarray], options: Options) -> list[np.ndarray]:
        if len(self.calls) == self._kill_after:
            raise KeyboardInterrupt
        self.calls.append((list(prompts), options))
        found = [re.search('<(.*?)>', BYTES.decode(ids), re.DOTALL) for ids in prompts]
        return [BYTES.encode(match[1] if match else '') for match in found]

    @property
    def batches(self) -> list[int]:
        return [len(prompts) for prompts, _ in self.calls]


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two answers between two writes to the log."""
    monkeypatch.setattr('nope.evals.answers.BATCH', 2)


@pytest.fixture
def samples(tmp_path: pathlib.Path) -> list[LongBenchSample]:
    says = {
        'qasper': ['<Paris>', '<Lyon>', '<in Paris, now>'],
        'triviaqa': ['<\nParis\nLyon>', '<Lyon\nParis>'],
        'samsum': ['none'],
    }
    for name, answers in says.items():
        write(tmp_path / 'data', name, [row(input=answer) for answer in answers])
    return read(tmp_path / 'data', NAMES)


def test_scores_are_means_of_the_best_reference(
    samples: list[LongBenchSample], log: SampleLog
) -> None:
    found = run(Parrot(), BYTES, samples, log=log, **SETTINGS)
    # Order of the table. 'in Paris now' shares two words with 'in Paris', of three and two.
    assert found.along('dataset', 3).tolist() == ['qasper', 'triviaqa', 'samsum']
    assert found['score'].tolist() == [round(100 * (1 + 0 + 0.8) / 3, 2), 50, 0]
    assert found['samples'].tolist() == [3, 2, 1]
    assert found.measures['score'].axes == found.measures['samples'].axes == ('dataset',)
    assert found.attributes == {
        'evaluation': 'longbench',
        'max_length': 600,
        'beams': 3,
        'bos': True,
        'average': pytest.approx((60 + 50 + 0) / 3),
    }


def test_a_row_keeps_what_was_answered(samples: list[LongBenchSample], log: SampleLog) -> None:
    generator = Parrot()
    run(generator, BYTES, samples, log=log, **SETTINGS)
    template = DATASETS['triviaqa'].prompt.format(
        context='It is in Paris.', input='<\nParis\nLyon>'
    )
    assert log['triviaqa/0'] == {
        'dataset': 'triviaqa',
        'index': 0,
        'prediction': '\nParis\nLyon',
        'score': 1.0,
        'answers': ['Paris', 'in Paris'],
        'prompt_tokens': 1 + len(template),
        'truncated': False,
    }
    # The template of qasper alone is longer.
    assert log['qasper/0']['truncated']
    assert log['qasper/0']['prompt_tokens'] == 600
    sizes = sorted(len(ids) for prompts, _ in generator.calls for ids in prompts)
    assert sizes == sorted(log[sample.key]['prompt_tokens'] for sample in samples)


@pytest.mark.usefixtures('pairs')
def test_batches_are_of_one_data_set_and_longest_first(
    samples: list[LongBenchSample], log: SampleLog
) -> None:
    generator = Parrot()
    run(generator, BYTES, samples, log=log, max_length=2000, beams=3)
    assert generator.batches == [2, 2, 1, 1]
    triviaqa, *qasper, samsum = generator.calls
    assert triviaqa[1] == options(DATASETS['triviaqa'], BYTES, 3)
    assert [each for _, each in qasper] == 2 * [options(DATASETS['qasper'], BYTES, 3)]
    assert samsum[1] == options(DATASETS['samsum'], BYTES, 3)
    sizes = [len(ids) for prompts, _ in qasper for ids in prompts]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3


@pytest.mark.usefixtures('pairs')
@pytest.mark.parametrize('calls', [0, 2])
def test_a_killed_evaluation_goes_on_where_it_was(
    samples: list[LongBenchSample], log: SampleLog, tmp_path: pathlib.Path, calls: int
) -> None:
    whole = SampleLog(tmp_path / 'whole.jsonl')
    expected = run(Parrot(), BYTES, samples, log=whole, **SETTINGS)
    killed = Parrot(kill_after=calls)
    with pytest.raises(KeyboardInterrupt):
        run(killed, BYTES, samples, log=log, **SETTINGS)
    assert len(log) == sum(killed.batches)
    resumed = Parrot()
    log = SampleLog(tmp_path / 'samples.jsonl')
    found = run(resumed, BYTES, samples, log=log, **SETTINGS)
    assert sum(killed.batches) + sum(resumed.batches) == len(samples)
    assert found['score'].tolist() == expected['score'].tolist()
    assert found.attributes == expected.attributes
    assert all(log[sample.key] == whole[sample.key] for sample in samples)


def test_a_log_of_other_files_is_refused(samples: list[LongBenchSample], log: SampleLog) -> None:
    run(Parrot(), BYTES, samples, log=log, **SETTINGS)
    other = [dataclasses.replace(sample, answers=('Rome',)) for sample in samples]
    with pytest.raises(ValueError, match="log has other references for 'triviaqa/0'"):
        run(Parrot(), BYTES, other, log=log, **SETTINGS)


def test_bos_is_a_switch(samples: list[LongBenchSample], log: SampleLog) -> None:
    tokenizer = dataclasses.replace(BYTES, bos_id=None)
    with pytest.raises(ValueError, match='the tokenizer has no BOS'):
        run(Parrot(), tokenizer, samples, log=log, **SETTINGS)
    generator = Parrot()
    found = run(generator, tokenizer, samples, log=log, **(SETTINGS | {'bos': False}))
    assert found.attributes['bos'] is False
    assert all(BYTES.bos_id not in ids for prompts, _ in generator.calls for ids in prompts)


def test_a_window_that_does_not_fit_is_refused(
    samples: list[LongBenchSample], log: SampleLog
) -> None:
    what = 'max_length is 600 and the prompt of .* with 128 of its answer'
    with pytest.raises(ValueError, match=what):
        run(Parrot(kill_after=0), BYTES, samples, log=log, **SETTINGS | {'window': 727})
    assert len(log) == 0


def test_a_cut_prompt_that_grew_out_of_the_window_is_refused(log: SampleLog) -> None:
    """Before anything is generated, also for those that fit. Both halves cut a character."""
    short = LongBenchSample('gov_report', 0, '', 'x', ('Paris',), ())
    grown = [
        LongBenchSample('gov_report', index, '', 'x' * index + '\U00010348' * 999, ('Paris',), ())
        for index in range(1, 5)
    ]
    with pytest.raises(ValueError, match=r"of 'gov_report/\d' has 50\d tokens; with 512 of its"):
        run(Parrot(kill_after=0), BYTES, [short, *grown], log=log, window=1012, max_length=500)
    assert prompt_budget(1024) == 500
    run(Parrot(), BYTES, [short, *grown], log=log, window=1024, max_length=500)
    assert max(log[sample.key]['prompt_tokens'] for sample in grown) > 500


@pytest.mark.parametrize('name', DATASETS)
def test_answers_end_at_eos_or_when_they_are_long_enough(name: str) -> None:
    found = options(DATASETS[name], BYTES, 5)
    assert found.new_tokens == DATASETS[name].new_tokens
    assert (found.beams, found.length_penalty, found.early_stopping) == (5, 1.0, False)
    assert found.temperature == 0
    if name == 'samsum':
        assert (found.least, found.stop_ids) == (1, (BYTES.eos_id, ord('\n')))
    else:
        assert (found.least, found.stop_ids) == (0, (BYTES.eos_id,))


class Pieces:
    """A tokenizer that knows how one newline is spelt, and what its ids mean."""

    eos_id = 2
    stop_ids = (2,)

    def __init__(self, newline: list[int], texts: dict[int, str]) -> None:
        self._newline, self._texts = newline, texts

    def encode(self, text: str) -> np.ndarray:
        assert text == '\n'
        return np.array(self._newline, np.int32)

    def decode(self, ids: Any) -> str:
        return ''.join(self._texts[int(i)] for i in ids)


@pytest.mark.parametrize(
    ('newline', 'texts', 'expected'),
    [
        ([29871, 13], {29871: '', 13: '\n'}, 13),
        ([198], {198: '\n'}, 198),
        ([29871, 0], {29871: '', 0: ' ⁇ '}, None),
        ([5, 6], {5: '\\', 6: 'n'}, None),
        ([], {}, None),
    ],
    ids=['last of several', 'one', 'unknown', 'pieces', 'dropped'],
)
def test_a_line_ends_with_an_id_that_means_a_newline(
    newline: list[int], texts: dict[int, str], expected: int | None
) -> None:
    tokenizer: Any = Pieces(newline, texts)
    assert newline_id(tokenizer) == expected
    stops = options(DATASETS['samsum'], tokenizer, 5).stop_ids
    assert stops == ((2,) if expected is None else (2, expected))
