"""Evaluations, one file a kind: spec, accepted fields, check of the data, measurement, caption.

A new kind is a file with a subclass of `EvalSpec` and a line in `KINDS`.
"""

from collections.abc import Mapping

from experiments.evaluations.attended_distance import AttendedDistanceSpec
from experiments.evaluations.attention_distance import AttentionDistanceSpec
from experiments.evaluations.attention_shape import ShapeSpec
from experiments.evaluations.base import EvalSpec
from experiments.evaluations.entry import EvalEntry
from experiments.evaluations.exact_match import ExactMatchSpec
from experiments.evaluations.harness import HarnessSpec
from experiments.evaluations.helmet import HelmetSpec
from experiments.evaluations.key_attention import KeyAttentionSpec
from experiments.evaluations.lengths import LengthsSpec
from experiments.evaluations.longbench import LongbenchSpec
from experiments.evaluations.longppl import LongpplSpec
from experiments.evaluations.multiplier_grid import GridSpec
from experiments.evaluations.nolima import NolimaSpec
from experiments.evaluations.passkey import PasskeySpec
from experiments.evaluations.perplexity import PerplexitySpec
from experiments.evaluations.positions import PositionsSpec
from experiments.evaluations.ruler import RulerSpec

KINDS: Mapping[str, type[EvalSpec]] = {
    spec.kind: spec
    for spec in (
        PositionsSpec,
        ShapeSpec,
        AttentionDistanceSpec,
        AttendedDistanceSpec,
        GridSpec,
        LengthsSpec,
        PerplexitySpec,
        LongpplSpec,
        PasskeySpec,
        KeyAttentionSpec,
        LongbenchSpec,
        HarnessSpec,
        RulerSpec,
        HelmetSpec,
        NolimaSpec,
        ExactMatchSpec,
    )
}

__all__ = ['KINDS', 'EvalEntry', 'EvalSpec']
