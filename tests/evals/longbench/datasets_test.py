from __future__ import annotations

import pathlib
import tomllib

import nope.evals.longbench
from nope.data import digest
from nope.evals.longbench import DATASETS

PROMPTS_DIGEST = '8fbee41cce2ebd456880d1236036ac15'  # of the published prompts, by name

PUBLISHED = {
    'narrativeqa': (200, 128, 'qa_f1', False),
    'qasper': (200, 128, 'qa_f1', False),
    'multifieldqa_en': (150, 64, 'qa_f1', False),
    'hotpotqa': (200, 32, 'qa_f1', False),
    '2wikimqa': (200, 32, 'qa_f1', False),
    'musique': (200, 32, 'qa_f1', False),
    'gov_report': (200, 512, 'rouge_l', False),
    'qmsum': (200, 512, 'rouge_l', False),
    'multi_news': (200, 512, 'rouge_l', False),
    'trec': (200, 64, 'classification', True),
    'triviaqa': (200, 32, 'qa_f1', True),
    'samsum': (200, 128, 'rouge_l', True),
    'passage_count': (200, 32, 'count', False),
    'passage_retrieval_en': (200, 32, 'retrieval', False),
    'lcc': (500, 64, 'code_sim', False),
    'repobench-p': (500, 64, 'code_sim', False),
}


def test_the_data_sets_are_those_of_the_table_in_its_order() -> None:
    found = {
        name: (d.samples, d.new_tokens, d.metric, d.first_line_only) for name, d in DATASETS.items()
    }
    assert list(found.items()) == list(PUBLISHED.items())
    assert [d.name for d in DATASETS.values() if d.ends_at_newline] == ['samsum']
    continued = [d.name for d in DATASETS.values() if d.continued]
    assert continued == ['trec', 'triviaqa', 'samsum', 'lcc', 'repobench-p']


def test_prompts_are_the_published_ones_letter_by_letter() -> None:
    prompts = {name: dataset.prompt for name, dataset in DATASETS.items()}
    assert digest.of_json(prompts) == PROMPTS_DIGEST


def test_an_installed_package_has_the_prompts() -> None:
    root = pathlib.Path(__file__).parents[3]
    settings = tomllib.loads((root / 'pyproject.toml').read_text())['tool']['setuptools']
    package = pathlib.Path(nope.evals.longbench.__file__).parent
    listed = settings['package-data']['nope.evals.longbench']
    assert sorted(listed) == sorted(path.name for path in package.glob('*.json'))
