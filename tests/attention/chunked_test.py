"""The chunked implementation keeps the contract, at any block size, in linear memory."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import Bias, Buckets, Mask, attention
from nope.attention.cases import Trial, make_inputs
from nope.attention.chunked import layout
from tests.attention.cases import FACTOR_CASES, KEY_BIAS_CASES, TEST_CASES
from tests.attention.contract import TOLERANCE, AttentionContract, assert_agrees, assert_close
from tests.attention.factor_contract import FactorContract
from tests.attention.key_bias_contract import KeyBiasContract

MiB = 2**20


class TestChunked(AttentionContract):
    implementation = 'chunked'


class TestFactors(FactorContract):
    implementation = 'chunked'


class TestKeyBias(KeyBiasContract):
    implementation = 'chunked'


SMALL_BLOCKS = (
    'full_empty_rows', 'cached_early', 'buckets_full', 'every_rule', 'key_bias_every_rule',
    'factors_every_rule',
    *(pytest.param(name, marks=pytest.mark.slow)
      for name in ('ragged', 'window', 'grouped', 'packed', 'window_full', 'key_bias_grouped',
                   'factors_grouped')),
)  # fmt: skip


@pytest.mark.parametrize('name', SMALL_BLOCKS)
def test_small_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops of many steps."""
    monkeypatch.setattr(layout, '_CPU_BLOCKS', (16, 16))
    known = TEST_CASES + KEY_BIAS_CASES + FACTOR_CASES
    assert_agrees('chunked', next(case for case in known if case.name == name))


def program(length: int, *, backward: bool, biased: bool = False):
    """The compiled attention of 2 heads over `length` positions."""
    shape = jax.ShapeDtypeStruct((1, length, 2, 16), 'float32')

    def forward(q, k, v):
        bias = Buckets(jnp.arange(64.0).reshape(32, 2) * q[0, 0, 0, 0]) if biased else None
        mask = Mask(window=length // 2) if biased else Mask()
        result = attention(q, k, v, mask=mask, bias=bias, entropy=True, implementation='chunked')
        return (jnp.sum(result.out) + jnp.sum(result.lse) + jnp.sum(result.entropy)), result

    function = jax.grad(forward, argnums=(0, 1, 2), has_aux=True) if backward else forward
    return jax.jit(function).lower(shape, shape, shape).compile()


@pytest.mark.parametrize('biased', [False, True], ids=['plain', 'window_and_bias'])
@pytest.mark.parametrize('backward', [False, True], ids=['forward', 'backward'])
def test_memory_is_linear_in_length(backward: bool, biased: bool) -> None:
    temporary = [
        program(length, backward=backward, biased=biased).memory_analysis().temp_size_in_bytes
        for length in (2048, 4096, 8192)
    ]
    assert temporary[1] < 2.3 * temporary[0]
    assert temporary[2] < 2.3 * temporary[1]
    # The scores of the longest alone would take 512 MiB.
    assert temporary[2] < 32 * MiB


def test_no_array_is_as_large_as_the_scores() -> None:
    """Not even among the inputs and constants: the text of the program has no T x T shape."""
    assert '2048,2048' not in program(2048, backward=True, biased=True).as_text()


def test_blocks_above_the_diagonal_are_not_visited() -> None:
    """Keys and values of NaN there would reach the outputs through 0 * NaN."""
    inputs = make_inputs(Trial('', 1, 256, 256, 32, 32, 8))
    plan = layout.make_plan(
        causal=True, entropy=False, rows=32, queries=256, keys=256, backend='cpu'
    )
    assert plan.k_block <= 128
    late_S = jnp.arange(256) >= plan.k_block
    k, v = (
        jnp.where(late_S[None, :, None, None], jnp.nan, x) for x in (inputs.k_BSKH, inputs.v_BSKH)
    )
    result = jax.jit(functools.partial(attention, implementation='chunked'))(inputs.q_BTNH, k, v)
    assert np.all(np.isfinite(np.asarray(result.out[:, : plan.q_block])))
    assert np.all(np.isnan(np.asarray(result.out[:, plan.q_block :])))


@pytest.mark.parametrize(
    ('rows', 'group', 'queries', 'window', 'threads', 'block'),
    [
        (8, 1, 4096, None, 1, 256),
        (8, 1, 4096, None, 2, 512),
        (16, 1, 4096, None, 16, 512),
        (32, 1, 4096, None, 2, 128),  # more logits than caches hold
        (16, 4, 4096, None, 2, 512),
        (8, 4, 4096, None, 2, 512),
        (14, 7, 4096, None, 2, 256),  # large enough with seven heads on a key
        (8, 1, 4096, 1024, 2, 512),
        (8, 1, 4096, 600, 2, 256),  # most of a larger block would be hidden
        (8, 1, 600, None, 2, 256),
    ],
)
def test_blocks_of_several_threads_are_large(
    rows: int, group: int, queries: int, window: int | None, threads: int, block: int
) -> None:
    def plan_of(keys: int) -> layout.BlockPlan:
        return layout.make_plan(
            causal=True, window=window, aligned=keys == queries, entropy=False, rows=rows,
            group=group, queries=queries, keys=keys, backend='cpu', threads=threads,
        )  # fmt: skip

    plan = plan_of(queries)
    assert (plan.q_block, plan.k_block) == (block, block)
    assert plan_of(8192).q_block == block


def test_few_queries_have_the_blocks_of_one_thread() -> None:
    one, two = (
        layout.make_plan(
            causal=True, aligned=False, entropy=False, rows=8, queries=64, keys=4096,
            backend='cpu', threads=threads,
        )
        for threads in (1, 2)
    )  # fmt: skip
    assert one == two


@pytest.mark.parametrize('causal', [True, False])
def test_blocks_out_of_the_window_are_not_visited(
    causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NaN beyond the blocks that the window of the last query block reaches."""
    monkeypatch.setattr(layout, '_CPU_BLOCKS', (32, 32))
    inputs = make_inputs(Trial('', 1, 256, 256, 32, 32, 8, causal=causal, window=33))
    early_S = jnp.arange(256) < 192
    k, v = (
        jnp.where(early_S[None, :, None, None], jnp.nan, x) for x in (inputs.k_BSKH, inputs.v_BSKH)
    )
    function = functools.partial(attention, implementation='chunked', mask=inputs.mask)
    result = jax.jit(function)(inputs.q_BTNH, k, v)
    assert np.all(np.isfinite(np.asarray(result.out[:, 224:])))
    assert np.all(np.isnan(np.asarray(result.out[:, :192])))


@pytest.mark.parametrize('biased', [False, True], ids=['plain', 'window_and_bias'])
def test_one_block_has_no_loop(biased: bool) -> None:
    assert 'while' not in program(64, backward=True, biased=biased).as_text()


@pytest.mark.parametrize('length', [40, 150])
def test_entropy_costs_nothing_where_it_is_not_used(length: int) -> None:
    """Neither asked for, nor pulled on: the programs have no operation for it."""
    inputs = make_inputs(Trial('', 1, length, length, 32, 32, 8))

    def out(q, entropy):
        return attention(q, inputs.k_BSKH, inputs.v_BSKH, entropy=entropy).out

    def operations(function) -> str:
        return str(jax.make_jaxpr(function)(inputs.q_BTNH))

    plain = operations(functools.partial(out, entropy=False))
    measured = operations(functools.partial(out, entropy=True))
    assert plain.count('dot_general') < measured.count('dot_general')

    def pulled(q, entropy):
        value, back = jax.vjp(functools.partial(out, entropy=entropy), q)
        return back(value)

    forward, both = (
        [operations(functools.partial(f, entropy=e)).count('mul') for e in (False, True)]
        for f in (out, pulled)
    )
    assert both[1] - forward[1] == both[0] - forward[0]


def test_rematerialised_scanned_and_sharded() -> None:
    """As a model uses it: `jax.checkpoint` in a scan over layers, batch and heads sharded."""
    inputs = make_inputs(Trial('', 4, 150, 150, 16, 8, 8, segments='packed'))

    def loss(q):
        @functools.partial(jax.checkpoint, prevent_cse=False)
        def layer(q, _):
            result = attention(
                q,
                inputs.k_BSKH,
                inputs.v_BSKH,
                mask=inputs.mask,
                entropy=True,
                implementation='chunked',
            )
            return result.out, jnp.mean(result.entropy)

        q, entropy = jax.lax.scan(layer, q, None, length=2)
        return jnp.sum(q**2) + jnp.sum(entropy)

    alone = jax.jit(jax.grad(loss))(inputs.q_BTNH)
    mesh = jax.make_mesh((2, 2), ('data', 'tensor'), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    spread = jax.sharding.NamedSharding(mesh, jax.P('data', None, 'tensor', None))
    sharded = jax.jit(jax.grad(loss))(jax.device_put(inputs.q_BTNH, spread))
    assert_close(sharded, alone, TOLERANCE['float32'])


@pytest.mark.parametrize('queries', [8, 1], ids=['blocks', 'decoding'])
def test_float16_gradients_of_logits_beyond_its_range(queries: int) -> None:
    """Those of q and k are finite where the logits' are above 65,504."""
    inputs = make_inputs(Trial('', 1, queries, 8, 1, 1, 16, dtype='float16', offset=8 - queries))
    q, k, v, d_out = (
        scale * jnp.asarray(x, 'float16')
        for x, scale in (
            *((inputs.q_BTNH, 0.04), (inputs.k_BSKH, 0.01)),
            *((inputs.v_BSKH, 300), (inputs.d_out_BTNH, 300)),
        )
    )

    def gradients(implementation: str, dtype: str) -> list[jax.Array]:
        def out(*arrays: jax.Array) -> jax.Array:
            how = {'mask': inputs.mask, 'implementation': implementation}
            return attention(*arrays, **how).out

        pull = jax.jit(lambda *arrays: jax.vjp(out, *arrays[:3])[1](arrays[3]))
        return pull(*(x.astype(dtype) for x in (q, k, v, d_out)))

    d_p_TS = jnp.einsum('BTNH,BSNH->TS', d_out.astype('float32'), v.astype('float32'))
    assert jnp.ptp(d_p_TS) / 8 > 65504
    exact = gradients('reference', 'float32')
    for found, wanted in zip(gradients('chunked', 'float16'), exact, strict=True):
        assert found.dtype == jnp.float16
        assert_close(found, wanted, TOLERANCE['float16'])


@pytest.mark.parametrize('kind', ['alibi', 'scale_invariant'])
@pytest.mark.parametrize('queries', [300, 1], ids=['blocks', 'decoding'])
def test_float64_parameters_of_a_bias_are_used_in_float32(queries: int, kind: str) -> None:
    """With gradients in their own dtype."""
    inputs = make_inputs(Trial('', 1, queries, 300, 2, 2, 8, offset=300 - queries, bias=kind))

    def attend(bias: Bias) -> tuple[jax.Array, Bias]:
        def total(bias: Bias) -> jax.Array:
            found = attention(
                *(inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH),
                mask=inputs.mask, bias=bias, implementation='chunked',
            )  # fmt: skip
            assert found.out.dtype == found.lse.dtype == jnp.float32
            return jnp.sum(found.lse)

        return jax.jit(jax.value_and_grad(total))(bias)

    single = attend(inputs.bias)
    with jax.enable_x64(True):
        double = attend(jax.tree.map(lambda x: jnp.asarray(x, 'float64'), inputs.bias))
        assert {x.dtype.name for x in jax.tree.leaves(double[1])} == {'float64'}
    for found, wanted in zip(jax.tree.leaves(double), jax.tree.leaves(single), strict=True):
        assert_close(found, wanted, 1e-5)


@pytest.mark.slow
def test_a_length_just_over_a_power_of_two_in_linear_memory() -> None:
    """T = 65,537 against rows in float64: first, last and at the ends of blocks; a block more than
    65,536 needs half again as much memory at most."""
    length = 2**16 + 1
    rng = np.random.default_rng(0)
    q_BTNH, k_BSKH, v_BSKH = (rng.normal(size=(1, length, 1, 16), scale=0.7).astype(np.float32)
                              for _ in range(3))  # fmt: skip

    def attend(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        found = attention(*arrays, entropy=True, implementation='chunked')
        return found.out, found.entropy

    def compiled(size: int) -> jax.stages.Compiled:
        return jax.jit(attend).lower(q_BTNH[:, :size], k_BSKH[:, :size], v_BSKH[:, :size]).compile()

    programs = {size: compiled(size) for size in (2**16, length)}
    sizes = {size: program.memory_analysis() for size, program in programs.items()}
    assert sizes[length].temp_size_in_bytes < 1.5 * sizes[2**16].temp_size_in_bytes < 32 * MiB
    out_BTNH, entropy_BNT = map(np.asarray, programs[length](q_BTNH, k_BSKH, v_BSKH))
    for row in (0, 1, 511, 512, 32767, 32768, 65534, 65535, 65536):
        seen = slice(0, row + 1)
        logits = k_BSKH[0, seen, 0].astype(np.float64) @ q_BTNH[0, row, 0]
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
        np.testing.assert_allclose(out_BTNH[0, row, 0], weights @ v_BSKH[0, seen, 0], atol=1e-5)
        entropy = -(weights * np.log(weights)).sum()
        np.testing.assert_allclose(entropy_BNT.ravel()[row], entropy, atol=1e-5)
