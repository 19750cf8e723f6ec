"""The recall group of HELMET (arXiv 2410.02694): keys and needles in files of given lengths.

Files, prompts and scores are those of princeton-nlp/HELMET at
4526dfbdc512bd9ff721da336bff4e3e75ecfd27, configs/recall.yaml and recall_short.yaml.
"""

from nope.evals.helmet.evaluation import run
from nope.evals.helmet.reading import LENGTHS, HelmetPlan
from nope.evals.helmet.tasks import TASKS

__all__ = ['LENGTHS', 'TASKS', 'HelmetPlan', 'run']
