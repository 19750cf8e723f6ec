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

    column: its name in table 3 of arXiv 2404.12224. metric: a key of `metrics.METRICS`.
    new_tokens: an answer is at most so long. prompt: with the fields {context} and {input}.
    first_line_only: the rest of an answer is not scored. ends_at_newline: an answer is a token
    or more, and ends with its line. samples: how many were published.
    """

    name: str
    column: str
    category: str
    metric: str
    new_tokens: int
    first_line_only: bool = False
    ends_at_newline: bool = False
    samples: int = 200

    @property
    def prompt(self) -> str:
        return _PROMPTS[self.name]


_SINGLE, _MULTI, _SUMMARY = 'single-document QA', 'multi-document QA', 'summarisation'
_FEW_SHOT, _SYNTHETIC, _CODE = 'few-shot learning', 'synthetic', 'code completion'
CONTINUED = (_FEW_SHOT, _CODE)  # prompts that no chat asks, as published

_TABLE = (
    Dataset('narrativeqa', 'NQA', _SINGLE, 'qa_f1', 128),
    Dataset('qasper', 'Qsp', _SINGLE, 'qa_f1', 128),
    Dataset('multifieldqa_en', 'MulF', _SINGLE, 'qa_f1', 64, samples=150),
    Dataset('hotpotqa', 'HpQA', _MULTI, 'qa_f1', 32),
    Dataset('2wikimqa', '2WQA', _MULTI, 'qa_f1', 32),
    Dataset('musique', 'Musq.', _MULTI, 'qa_f1', 32),
    Dataset('gov_report', 'GRpt', _SUMMARY, 'rouge_l', 512),
    Dataset('qmsum', 'QSum', _SUMMARY, 'rouge_l', 512),
    Dataset('multi_news', 'MulN', _SUMMARY, 'rouge_l', 512),
    Dataset('trec', 'TREC', _FEW_SHOT, 'classification', 64, first_line_only=True),
    Dataset('triviaqa', 'TrQA', _FEW_SHOT, 'qa_f1', 32, first_line_only=True),
    Dataset(
        'samsum', 'SSum', _FEW_SHOT, 'rouge_l', 128, first_line_only=True, ends_at_newline=True
    ),
    Dataset('passage_count', 'PsgC', _SYNTHETIC, 'count', 32),
    Dataset('passage_retrieval_en', 'PsgR', _SYNTHETIC, 'retrieval', 32),
    Dataset('lcc', 'Lcc', _CODE, 'code_sim', 64, samples=500),
    Dataset('repobench-p', 'Re-P', _CODE, 'code_sim', 64, samples=500),
)

# In the order of the table's columns.
DATASETS: Mapping[str, Dataset] = {dataset.name: dataset for dataset in _TABLE}

MOST_NEW_TOKENS = max(dataset.new_tokens for dataset in _TABLE)
