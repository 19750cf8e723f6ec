"""RULER v1 (arXiv 2404.06654): 13 tasks that ask for what is stated in long prompts."""

from nope.evals.ruler.corpora import FILES, Corpora
from nope.evals.ruler.evaluation import effective, run
from nope.evals.ruler.prompts import SAMPLES, SEED, RulerPlan, build
from nope.evals.ruler.tasks import FREE, TASKS
from nope.evals.ruler.vocabulary import load as load_words

__all__ = [
    'FILES',
    'FREE',
    'SAMPLES',
    'SEED',
    'TASKS',
    'Corpora',
    'RulerPlan',
    'build',
    'effective',
    'load_words',
    'run',
]
