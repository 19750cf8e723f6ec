"""The 16 English data sets of LongBench, as data: how each is asked, answered and scored.

The prompts are in prompts.json, letter by letter as published: slips of spelling, and spaces at
the end, are a part of the benchmark.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Mapping

_PROMPTS = json.loads(pathlib.Path(__file__).with_name('prompts.json').read_text('utf-8'))


@dataclasses.dataclass(frozen=True)
class Dataset:
    """One data set.

    metric: a key of `metrics.METRICS`. new_tokens: an answer is at most so long. prompt: with the
    fields {context} and {input}. continued: no chat asks it, as published. first_line_only: the
    rest of an answer is not scored. ends_at_newline: an answer is a token or more, and ends with
    its line. samples: how many were published.
    """

    name: str
    metric: str
    new_tokens: int
    continued: bool = False
    first_line_only: bool = False
    ends_at_newline: bool = False
    samples: int = 200

    @property
    def prompt(self) -> str:
        return _PROMPTS[self.name]


_TABLE = (
    Dataset('narrativeqa', 'qa_f1', 128),
    Dataset('qasper', 'qa_f1', 128),
    Dataset('multifieldqa_en', 'qa_f1', 64, samples=150),
    Dataset('hotpotqa', 'qa_f1', 32),
    Dataset('2wikimqa', 'qa_f1', 32),
    Dataset('musique', 'qa_f1', 32),
    Dataset('gov_report', 'rouge_l', 512),
    Dataset('qmsum', 'rouge_l', 512),
    Dataset('multi_news', 'rouge_l', 512),
    Dataset('trec', 'classification', 64, continued=True, first_line_only=True),
    Dataset('triviaqa', 'qa_f1', 32, continued=True, first_line_only=True),
    Dataset('samsum', 'rouge_l', 128, continued=True, first_line_only=True, ends_at_newline=True),
    Dataset('passage_count', 'count', 32),
    Dataset('passage_retrieval_en', 'retrieval', 32),
    Dataset('lcc', 'code_sim', 64, continued=True, samples=500),
    Dataset('repobench-p', 'code_sim', 64, continued=True, samples=500),
)

# In the order of table 3 of arXiv 2404.12224.
DATASETS: Mapping[str, Dataset] = {dataset.name: dataset for dataset in _TABLE}

MOST_NEW_TOKENS = max(dataset.new_tokens for dataset in _TABLE)
