from __future__ import annotations

import numpy as np
import pytest

from tests.evals.divergences import attention_distance, jensen_shannon, swapped_jensen_shannon
from tests.vectors import VECTORS

OWN = VECTORS['divergences']
NAMES = {'jsd_nats': jensen_shannon, 'released_code_reverse_jsd': swapped_jensen_shannon}


def distributions(seed: int, *shape: int, sharpness: float = 3.0) -> np.ndarray:
    logits = sharpness * np.random.default_rng(seed).normal(size=shape)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def causal(seed: int, *shape: int) -> np.ndarray:
    weights = np.tril(distributions(seed, *shape))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('case', OWN)
def test_vector(case: str, name: str) -> None:
    p, q = np.array(OWN[case]['p']), np.array(OWN[case]['q'])
    np.testing.assert_allclose(NAMES[name](p, q), OWN[case][name], rtol=1e-6)


def test_attention_distance_compares_all_pairs_of_heads() -> None:
    p_NTT, q_NTT = causal(0, 3, 9, 9), causal(1, 4, 9, 9)
    found = attention_distance(p_NTT[:, None], q_NTT[None])
    assert found.shape == (3, 4)
    np.testing.assert_allclose(found[1, 2], attention_distance(p_NTT[1], q_NTT[2]), rtol=1e-12)
