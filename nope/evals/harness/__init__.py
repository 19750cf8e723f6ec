"""EleutherAI's evaluation harness, lm_eval (the extra `harness`), on models of this project.

Nothing here imports lm_eval before it is called.
"""

from nope.evals.harness.commonsense import TASKS, check, run
from nope.evals.harness.endings import Ending, longest_endings
from nope.evals.harness.evaluate import evaluate
from nope.evals.harness.model import adapter
from nope.evals.harness.tasks import (
    Found,
    check_installed,
    find,
    load,
    metadata_of,
    own_code,
    visible_files,
)

__all__ = [
    'TASKS',
    'Ending',
    'Found',
    'adapter',
    'check',
    'check_installed',
    'evaluate',
    'find',
    'load',
    'longest_endings',
    'metadata_of',
    'own_code',
    'run',
    'visible_files',
]
