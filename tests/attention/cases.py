"""Cases of attention that between them meet every rule, of sizes that the definition can make."""

from __future__ import annotations

from nope.attention.cases import Case

# Small enough for the reference, and between them every path of an implementation: one block
# and several, ragged ends, grouped heads, every mask, every dtype.
TEST_CASES = (
    Case('one_token', 2, 1, 1, 2, 2, 8),
    Case('tiny', 2, 7, 7, 4, 2, 8),
    Case('one_block', 2, 64, 64, 4, 4, 16),
    Case('ragged', 2, 131, 131, 16, 16, 8),
    Case('grouped', 2, 192, 192, 16, 4, 8),
    Case('one_kv_head', 2, 200, 200, 16, 1, 8),
    Case('packed', 2, 150, 150, 16, 8, 8, segments='packed'),
    Case('packed_one_block', 2, 33, 33, 4, 2, 8, segments='packed'),
    Case('empty_rows', 2, 150, 150, 16, 8, 8, segments='empty'),
    Case('empty_rows_one_block', 2, 33, 33, 4, 2, 8, segments='empty'),
    Case('full', 2, 128, 256, 16, 16, 8, causal=False),
    Case('full_ragged', 2, 70, 211, 16, 8, 8, causal=False),
    Case('full_one_query', 2, 1, 211, 16, 8, 8, causal=False),
    Case('full_empty_rows', 2, 150, 211, 16, 8, 8, causal=False, segments='empty'),
    Case('cached', 2, 70, 211, 16, 8, 8, offset=141),
    Case('cached_one_query', 2, 1, 300, 16, 4, 8, offset=211),
    Case('cached_early', 2, 40, 211, 16, 8, 8, offset=3),
    Case('cached_empty_rows', 2, 150, 250, 16, 8, 8, offset=60, segments='empty'),
    Case('window', 2, 260, 260, 16, 8, 8, window=40),
    Case('window_one_block', 2, 40, 40, 4, 2, 8, window=7),
    Case('window_of_one', 2, 150, 150, 16, 8, 8, window=1),
    Case('window_wide', 2, 200, 200, 16, 16, 8, window=1000),
    Case('window_packed', 2, 260, 260, 16, 8, 8, window=75, segments='packed'),
    Case('window_cached', 2, 90, 260, 16, 8, 8, window=100, offset=150),
    Case('window_full', 2, 200, 260, 16, 8, 8, causal=False, window=60),
    Case('alibi', 2, 150, 150, 16, 8, 8, bias='alibi'),
    Case('alibi_one_block', 2, 40, 40, 4, 2, 8, bias='alibi'),
    Case('alibi_full', 2, 70, 211, 16, 8, 8, causal=False, bias='alibi'),
    Case('alibi_cached', 2, 1, 211, 16, 8, 8, offset=150, bias='alibi'),
    Case('buckets', 2, 200, 200, 16, 4, 8, bias='buckets'),
    Case('buckets_one_block', 2, 40, 40, 4, 2, 8, bias='buckets'),
    Case('buckets_full', 2, 150, 211, 16, 8, 8, causal=False, bias='buckets_two_sided'),
    Case('every_rule', 2, 90, 260, 16, 8, 8, True, 'packed', 'float32', 100, 150, 'buckets'),
    Case('buckets_bfloat16', 2, 150, 150, 16, 8, 8, dtype='bfloat16', bias='buckets'),
    Case('bfloat16', 2, 150, 150, 16, 8, 8, dtype='bfloat16'),
    Case('bfloat16_one_block', 2, 50, 50, 4, 2, 8, dtype='bfloat16'),
    Case('float16', 2, 150, 150, 16, 8, 8, dtype='float16'),
)

# The same for calls with a key bias, alone and together with every other rule.
KEY_BIAS_CASES = (
    Case('key_bias', 2, 131, 131, 16, 16, 8, key_bias=True),
    Case('key_bias_one_block', 2, 40, 40, 4, 2, 8, key_bias=True),
    Case('key_bias_grouped', 2, 200, 200, 16, 4, 8, key_bias=True),
    Case('key_bias_full', 2, 70, 211, 16, 8, 8, causal=False, key_bias=True),
    Case('key_bias_empty_rows', 2, 150, 150, 16, 8, 8, segments='empty', key_bias=True),
    Case('key_bias_cached', 2, 70, 211, 16, 8, 8, offset=141, key_bias=True),
    Case('key_bias_decode', 2, 1, 300, 16, 4, 8, offset=211, key_bias=True),
    Case(
        'key_bias_every_rule', 2, 90, 260, 16, 8, 8, True, 'packed', 'float32', 100, 150,
        'buckets', True,
    ),
    Case('key_bias_bfloat16', 2, 150, 150, 16, 4, 8, dtype='bfloat16', key_bias=True),
    Case('key_bias_float16', 2, 50, 50, 4, 2, 8, dtype='float16', key_bias=True),
)  # fmt: skip

# The same for calls with factors by distance. A parameter's gradient is a sum over all pairs, which
# the definition makes in one float32 sum: no more than some ten thousand.
FACTOR_CASES = (
    Case('factors', 2, 131, 131, 16, 16, 8, bias='scale_invariant'),
    Case('factors_one_block', 2, 40, 40, 4, 2, 8, bias='scale_invariant'),
    Case('factors_grouped', 2, 200, 200, 16, 4, 8, bias='scale_invariant'),
    Case('factors_full', 2, 70, 131, 16, 8, 8, causal=False, bias='scale_invariant'),
    Case('factors_empty_rows', 2, 150, 150, 16, 8, 8, segments='empty', bias='scale_invariant'),
    Case('factors_cached', 2, 70, 131, 16, 8, 8, offset=61, bias='scale_invariant'),
    Case('factors_decode', 2, 1, 300, 16, 4, 8, offset=211, bias='scale_invariant'),
    Case(
        'factors_every_rule', 2, 90, 260, 16, 8, 8, True, 'packed', 'float32', 100, 150,
        'scale_invariant', True,
    ),
    Case('factors_bfloat16', 2, 150, 150, 16, 4, 8, dtype='bfloat16', bias='scale_invariant'),
    Case('factors_float16', 2, 50, 50, 4, 2, 8, dtype='float16', bias='scale_invariant'),
)  # fmt: skip
