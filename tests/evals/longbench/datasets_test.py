from __future__ import annotations

import pathlib
import string
import tomllib

import pytest

import nope.evals.longbench
from nope.data import digest
from nope.evals.longbench import DATASETS, Dataset
from nope.evals.longbench.datasets import MOST_NEW_TOKENS
from nope.evals.longbench.metrics import METRICS

PROMPTS_DIGEST = '8fbee41cce2ebd456880d1236036ac15'  # of the published prompts, by name

PUBLISHED = {
    'narrativeqa': ('NQA', 200, 128, 'qa_f1', False),
    'qasper': ('Qsp', 200, 128, 'qa_f1', False),
    'multifieldqa_en': ('MulF', 150, 64, 'qa_f1', False),
    'hotpotqa': ('HpQA', 200, 32, 'qa_f1', False),
    '2wikimqa': ('2WQA', 200, 32, 'qa_f1', False),
    'musique': ('Musq.', 200, 32, 'qa_f1', False),
    'gov_report': ('GRpt', 200, 512, 'rouge_l', False),
    'qmsum': ('QSum', 200, 512, 'rouge_l', False),
    'multi_news': ('MulN', 200, 512, 'rouge_l', False),
    'trec': ('TREC', 200, 64, 'classification', True),
    'triviaqa': ('TrQA', 200, 32, 'qa_f1', True),
    'samsum': ('SSum', 200, 128, 'rouge_l', True),
    'passage_count': ('PsgC', 200, 32, 'count', False),
    'passage_retrieval_en': ('PsgR', 200, 32, 'retrieval', False),
    'lcc': ('Lcc', 500, 64, 'code_sim', False),
    'repobench-p': ('Re-P', 500, 64, 'code_sim', False),
}
EVERY = pytest.mark.parametrize('dataset', DATASETS.values(), ids=list(DATASETS))


def test_the_data_sets_are_those_of_the_table_in_its_order() -> None:
    found = {
        name: (d.column, d.samples, d.new_tokens, d.metric, d.first_line_only)
        for name, d in DATASETS.items()
    }
    assert list(found.items()) == list(PUBLISHED.items())
    assert sum(d.samples for d in DATASETS.values()) == 13 * 200 + 150 + 2 * 500


def test_categories_are_as_many_as_in_the_table() -> None:
    categories = [d.category for d in DATASETS.values()]
    sizes = [categories.count(category) for category in dict.fromkeys(categories)]
    assert sizes == [3, 3, 3, 3, 2, 2]
    assert categories == sorted(categories, key=categories.index), 'they stand together'


def test_answers_of_samsum_alone_end_with_their_line() -> None:
    assert [d.name for d in DATASETS.values() if d.ends_at_newline] == ['samsum']


def test_no_answer_is_longer_than_the_longest() -> None:
    assert MOST_NEW_TOKENS == 512


@EVERY
def test_a_data_set_can_be_asked_and_scored(dataset: Dataset) -> None:
    assert dataset.metric in METRICS
    fields = [field for _, field, _, _ in string.Formatter().parse(dataset.prompt) if field]
    assert 'context' in fields
    assert len(set(fields)) == len(fields)
    assert set(fields) <= {'context', 'input'}


def test_prompts_are_the_published_ones_letter_by_letter() -> None:
    prompts = {name: dataset.prompt for name, dataset in DATASETS.items()}
    assert digest.of_json(prompts) == PROMPTS_DIGEST


def test_prompts_keep_their_slips_and_spaces() -> None:
    prompts = {name: dataset.prompt for name, dataset in DATASETS.items()}
    assert {name: text.count('asconcisely') for name, text in prompts.items()} == {
        name: 2 if name == 'narrativeqa' else 0 for name in DATASETS
    }
    assert [name for name, text in prompts.items() if text.endswith(' ')] == [
        'passage_count',
        'passage_retrieval_en',
    ]
    assert '\n\n Answer the question' in prompts['qasper']
    assert 'summary of all news. \n' in prompts['multi_news']
    for name in ('lcc', 'repobench-p'):
        assert prompts[name].startswith('Please complete the code given below. \n{context}')
        assert prompts[name].endswith('}Next line of code:\n')
    # These ask nothing of their own.
    without = [name for name, text in prompts.items() if '{input}' not in text]
    assert without == ['gov_report', 'multi_news', 'passage_count', 'lcc']


def test_an_installed_package_has_the_prompts() -> None:
    root = pathlib.Path(__file__).parents[3]
    settings = tomllib.loads((root / 'pyproject.toml').read_text())['tool']['setuptools']
    package = pathlib.Path(nope.evals.longbench.__file__).parent
    listed = settings['package-data']['nope.evals.longbench']
    assert sorted(listed) == sorted(path.name for path in package.glob('*.json'))
