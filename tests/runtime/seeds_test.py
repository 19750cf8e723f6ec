from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from nope.evals.generation import Options
from nope.runtime.errors import FieldError
from nope.runtime.seeds import check_seed, is_seed
from nope.variables import fresh_variables
from tests import tiny

NO_SEEDS = [2**32, 2**32 + 1, 2**63, -1, 0.5, 1.0, 'a', True, None]


@pytest.mark.parametrize('seed', [0, 1, 2**31, 2**32 - 1, np.int64(7), np.uint32(2**32 - 1)])
def test_all_of_a_seed_enters_its_key(seed: Any) -> None:
    assert is_seed(seed)
    assert jax.random.key_data(jax.random.key(seed)).tolist() == [0, int(seed)]


@pytest.mark.parametrize('seed', NO_SEEDS)
def test_what_would_be_the_seed_of_other_keys_is_refused(seed: Any) -> None:
    message = r' is .*; accepted: whole numbers from 0 to 4294967295$'
    with pytest.raises(FieldError, match=f'^a seed{message}'):
        check_seed(seed, 'a seed')
    with pytest.raises(FieldError, match=f'^seed{message}'):
        Options(new_tokens=1, seed=seed)
    with pytest.raises(FieldError, match=f'^seed{message}'):
        fresh_variables(tiny.MODEL, tiny.mesh(), seed)
