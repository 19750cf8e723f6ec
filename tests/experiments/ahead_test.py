"""Whether the attention that a model names can run what is asked of the model."""

from __future__ import annotations

import re

import pytest

from configs.first_paper import fig6
from experiments.ahead import check_attention
from experiments.build import build
from experiments.runs import RunSpec


def test_attention_that_cannot_run_an_evaluation_is_named_with_it() -> None:
    config = fig6.get_config('quick')
    config.model.attention = 'library'
    experiment = build(config)
    how = experiment.compute, experiment.batch_tokens
    retrieval = experiment.evals['nope_passkey/seed0']
    assert isinstance(retrieval.run, RunSpec)
    check_attention(retrieval.run, *how)  # its training can
    message = "model.attention is 'library', which cannot score 256: its queries begin at position"
    with pytest.raises(ValueError, match=re.escape(message)):
        check_attention(retrieval, *how)


@pytest.mark.parametrize('attention', [None, 'chunked'])
def test_attention_that_can_or_that_is_chosen_is_accepted(attention: str | None) -> None:
    config = fig6.get_config('quick')
    config.model.attention = attention
    experiment = build(config)
    retrieval = experiment.evals['nope_passkey/seed0']
    check_attention(retrieval, experiment.compute, experiment.batch_tokens)
