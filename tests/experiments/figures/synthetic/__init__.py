"""Records of models that do not exist, plausible in shape and exact where a test needs it."""

# ruff: noqa: F403
from tests.experiments.figures.synthetic.inputs import *
from tests.experiments.figures.synthetic.keys import *
from tests.experiments.figures.synthetic.lengths import *
from tests.experiments.figures.synthetic.making import *
from tests.experiments.figures.synthetic.positions import *
from tests.experiments.figures.synthetic.ruler import *
from tests.experiments.figures.synthetic.tables import *
from tests.experiments.figures.synthetic.tasks import *
