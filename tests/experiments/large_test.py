"""Models of code (`b_large`): shared at small sizes, the published shape at the paper's."""

from __future__ import annotations

from configs.encodings import encodings
from configs.second_paper import b_large
from experiments.build import build
from experiments.evaluations.lengths import LengthsSpec
from experiments.runs import RunSpec
from nope.model import counts


def test_small_sizes_share_the_models_of_encodings() -> None:
    ours = {spec.run.slug() for spec in build(b_large.get_config('quick')).evals.values()}
    theirs = {spec.run.slug() for spec in build(encodings.get_config('quick')).evals.values()}
    assert len(ours) == 3 and ours < theirs


def test_the_papers_size_has_its_shape_contexts_and_tokens() -> None:
    config = b_large.get_config('paper')
    config.data.mixture, config.data.tokenizer = (), 'bytes'
    evals = list(build(config).evals.values())
    assert len(evals) == 4 * 3
    for spec in evals:
        assert isinstance(spec, LengthsSpec) and isinstance(spec.run, RunSpec)
        assert spec.lengths == b_large.CONTEXTS and spec.tail == 200
        assert spec.windows.cut == 'ends' and spec.windows.shortest >= max(spec.lengths)
        assert abs(counts.parameters(spec.run.model) / 1.3e9 - 1) < 0.01
        assert abs(spec.run.train.tokens / 30e9 - 1) < 0.001
