"""An imported model has the perplexity that stock `transformers` and PyTorch give it."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import torch

from nope.data.documents import Documents
from nope.evals import sliding
from nope.evals.samples import SampleLog
from tests import tiny
from tests.data.documents import whole
from tests.interop import stock

VOCAB = 258  # of the byte tokenizer, with its marks
# Each is one number of stock, and one compilation of ours.
LENGTHS, STRIDE, BUDGET = (48, 96), 16, 16 * 12
CASES: dict[str, dict[str, Any]] = {
    'llama': {},
    # The base follows the length of the window beyond the 64 of the config: 48 is plain.
    'dynamic': {'rope_parameters': {'rope_type': 'dynamic', 'rope_theta': 500.0, 'factor': 2.0}},
}


def stock_perplexity(model: Any, documents: Documents, length: int) -> float:
    """Every window by itself, in a loop over documents and ends."""
    losses: list[torch.Tensor] = []
    for document in whole(documents):
        for end in range(length, len(document), STRIDE):
            window = torch.from_numpy(document[end - length : end].astype(np.int64))
            labels = window.clone()
            labels[:-STRIDE] = -100
            with torch.no_grad():
                losses.append(model(window[None], labels=labels[None]).loss)
    return float(torch.stack(losses[: BUDGET // STRIDE]).double().mean().exp())


@pytest.mark.parametrize('case', CASES)
def test_perplexity_is_that_of_stock(case: str, books: Documents, tmp_path: pathlib.Path) -> None:
    model = stock.make('llama', vocab_size=VOCAB, **CASES[case])
    described, variables = stock.ours(stock.save(model, tmp_path / 'model'))
    found = sliding.run(
        described.model,
        variables,
        books,
        LENGTHS,
        stride=STRIDE,
        budget=BUDGET,
        aligned=False,
        mesh=tiny.mesh(),
        batch_tokens=4 * LENGTHS[-1],
        log=SampleLog(tmp_path / 'samples.jsonl'),
    )
    expected = [stock_perplexity(model, books, length) for length in LENGTHS]
    assert found['windows'].tolist() == [12, 12]
    np.testing.assert_allclose(found['perplexity'], expected, rtol=1e-5)
