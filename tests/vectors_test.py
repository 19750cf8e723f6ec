"""Every key of vectors.json has a test that compares with it."""

from __future__ import annotations

import pathlib

from tests.vectors import VECTORS

TESTS = pathlib.Path(__file__).parent
USED_BY = {
    'rope': 'positions/rope_test.py',
    'rotate_d4_pos1_x1234': 'positions/rope_test.py',
    'pi': 'positions/scaling/linear_test.py',
    'ntk_static': 'positions/scaling/ntk_test.py',
    'ntk_dynamic': 'positions/scaling/ntk_test.py',
    'yarn': 'positions/scaling/yarn_test.py',
    'yarn_truncate_false_s4': 'positions/scaling/yarn_test.py',
    'llama3_f4_lf1_hf4_old2048_base1e4_d64': 'positions/scaling/llama3_test.py',
    'longrope_attention_factor': 'positions/scaling/longrope_test.py',
    'alibi_slopes': 'positions/alibi_test.py',
    't5_bucket_unidirectional_32_128': 'positions/t5_test.py',
    'bf16_round': 'model/lam/every_law_test.py',
    'uniform_fit': 'model/lam/every_law_test.py',
    'headscale_lr_multiplier': 'training/optim_test.py',
    'divergences': 'evals/attention_distance_test.py',
    'passkey_plan_seed42_max4096': 'evals/passkey/keys_test.py',
    'passkey_token_counts_llama_tokenizer': 'evals/passkey/keys_test.py',
    'longbench_metric_cases': 'evals/longbench/metrics_test.py',
}


def test_no_vector_is_forgotten() -> None:
    assert VECTORS.keys() - {'_'} == USED_BY.keys()
    for key, name in USED_BY.items():
        assert f"'{key}'" in (TESTS / name).read_text(), f'{name} does not use {key}'
