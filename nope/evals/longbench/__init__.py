"""LongBench (arXiv 2308.14508) in English: 16 data sets of long prompts with short answers.

`check` and `read` take the published files, `prompt_budget` says how long a prompt may be,
`run` lets a model answer and scores it. arXiv 2404.12224 reports the scores in its table 3.
"""

from nope.evals.longbench.datasets import DATASETS, Dataset
from nope.evals.longbench.evaluation import run
from nope.evals.longbench.prompts import prompt_budget
from nope.evals.longbench.reading import LongBenchSample, check, found_in, read

__all__ = [
    'DATASETS',
    'Dataset',
    'LongBenchSample',
    'check',
    'found_in',
    'prompt_budget',
    'read',
    'run',
]
