"""Cases of attention that between them meet every rule, of sizes that the definition can make."""

from __future__ import annotations

from nope.attention.cases import Trial

# Small enough for the reference, and between them every path of an implementation: one block
# and several, ragged ends, grouped heads, every mask, every dtype.
TEST_CASES = (
    Trial('one_token', 2, 1, 1, 2, 2, 8),
    Trial('tiny', 2, 7, 7, 4, 2, 8),
    Trial('one_block', 2, 64, 64, 4, 4, 16),
    Trial('ragged', 2, 131, 131, 16, 16, 8),
    Trial('grouped', 2, 192, 192, 16, 4, 8),
    Trial('one_kv_head', 2, 200, 200, 16, 1, 8),
    Trial('packed', 2, 150, 150, 16, 8, 8, segments='packed'),
    Trial('packed_one_block', 2, 33, 33, 4, 2, 8, segments='packed'),
    Trial('empty_rows', 2, 150, 150, 16, 8, 8, segments='empty'),
    Trial('empty_rows_one_block', 2, 33, 33, 4, 2, 8, segments='empty'),
    Trial('full', 2, 128, 256, 16, 16, 8, causal=False),
    Trial('full_ragged', 2, 70, 211, 16, 8, 8, causal=False),
    Trial('full_one_query', 2, 1, 211, 16, 8, 8, causal=False),
    Trial('full_empty_rows', 2, 150, 211, 16, 8, 8, causal=False, segments='empty'),
    Trial('cached', 2, 70, 211, 16, 8, 8, offset=141),
    Trial('cached_one_query', 2, 1, 300, 16, 4, 8, offset=211),
    Trial('cached_early', 2, 40, 211, 16, 8, 8, offset=3),
    Trial('cached_empty_rows', 2, 150, 250, 16, 8, 8, offset=60, segments='empty'),
    Trial('window', 2, 260, 260, 16, 8, 8, window=40),
    Trial('window_one_block', 2, 40, 40, 4, 2, 8, window=7),
    Trial('window_of_one', 2, 150, 150, 16, 8, 8, window=1),
    Trial('window_wide', 2, 200, 200, 16, 16, 8, window=1000),
    Trial('window_packed', 2, 260, 260, 16, 8, 8, window=75, segments='packed'),
    Trial('window_cached', 2, 90, 260, 16, 8, 8, window=100, offset=150),
    Trial('window_full', 2, 200, 260, 16, 8, 8, causal=False, window=60),
    Trial('alibi', 2, 150, 150, 16, 8, 8, bias='alibi'),
    Trial('alibi_one_block', 2, 40, 40, 4, 2, 8, bias='alibi'),
    Trial('alibi_full', 2, 70, 211, 16, 8, 8, causal=False, bias='alibi'),
    Trial('alibi_cached', 2, 1, 211, 16, 8, 8, offset=150, bias='alibi'),
    Trial('buckets', 2, 200, 200, 16, 4, 8, bias='buckets'),
    Trial('buckets_one_block', 2, 40, 40, 4, 2, 8, bias='buckets'),
    Trial('buckets_full', 2, 150, 211, 16, 8, 8, causal=False, bias='buckets'),
    Trial('every_rule', 2, 90, 260, 16, 8, 8, True, 'packed', 'float32', 100, 150, 'buckets'),
    Trial('buckets_bfloat16', 2, 150, 150, 16, 8, 8, dtype='bfloat16', bias='buckets'),
    Trial('bfloat16', 2, 150, 150, 16, 8, 8, dtype='bfloat16'),
    Trial('bfloat16_one_block', 2, 50, 50, 4, 2, 8, dtype='bfloat16'),
    Trial('float16', 2, 150, 150, 16, 8, 8, dtype='float16'),
)

# The same for calls with a key bias, alone and together with every other rule.
KEY_BIAS_CASES = (
    Trial('key_bias', 2, 131, 131, 16, 16, 8, key_bias=True),
    Trial('key_bias_one_block', 2, 40, 40, 4, 2, 8, key_bias=True),
    Trial('key_bias_grouped', 2, 200, 200, 16, 4, 8, key_bias=True),
    Trial('key_bias_full', 2, 70, 211, 16, 8, 8, causal=False, key_bias=True),
    Trial('key_bias_empty_rows', 2, 150, 150, 16, 8, 8, segments='empty', key_bias=True),
    Trial('key_bias_cached', 2, 70, 211, 16, 8, 8, offset=141, key_bias=True),
    Trial('key_bias_decode', 2, 1, 300, 16, 4, 8, offset=211, key_bias=True),
    Trial(
        'key_bias_every_rule', 2, 90, 260, 16, 8, 8, True, 'packed', 'float32', 100, 150,
        'buckets', True,
    ),
    Trial('key_bias_bfloat16', 2, 150, 150, 16, 4, 8, dtype='bfloat16', key_bias=True),
    Trial('key_bias_float16', 2, 50, 50, 4, 2, 8, dtype='float16', key_bias=True),
)  # fmt: skip

# The same for calls with factors by distance. A parameter's gradient is a sum over all pairs, which
# the definition makes in one float32 sum: no more than some ten thousand.
FACTOR_CASES = (
    Trial('factors', 2, 131, 131, 16, 16, 8, bias='scale_invariant'),
    Trial('factors_one_block', 2, 40, 40, 4, 2, 8, bias='scale_invariant'),
    Trial('factors_grouped', 2, 200, 200, 16, 4, 8, bias='scale_invariant'),
    Trial('factors_full', 2, 70, 131, 16, 8, 8, causal=False, bias='scale_invariant'),
    Trial('factors_empty_rows', 2, 150, 150, 16, 8, 8, segments='empty', bias='scale_invariant'),
    Trial('factors_cached', 2, 70, 131, 16, 8, 8, offset=61, bias='scale_invariant'),
    Trial('factors_decode', 2, 1, 300, 16, 4, 8, offset=211, bias='scale_invariant'),
    Trial(
        'factors_every_rule', 2, 90, 260, 16, 8, 8, True, 'packed', 'float32', 100, 150,
        'scale_invariant', True,
    ),
    Trial('factors_bfloat16', 2, 150, 150, 16, 4, 8, dtype='bfloat16', bias='scale_invariant'),
    Trial('factors_float16', 2, 50, 50, 4, 2, 8, dtype='float16', bias='scale_invariant'),
)  # fmt: skip
