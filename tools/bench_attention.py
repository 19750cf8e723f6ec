"""Speed and memory of attention, one JSON line per measurement.

    python tools/bench_attention.py [--case window_4k --case small_train]
        [--implementation chunked] [--seconds 3]

For every case of `nope.attention.cases.BENCH_CASES` and every pass (forward, forward with
entropy, forward and backward): the median seconds of a call, compilation apart, the temporary
memory of the compiled program, and the useful rate (the products above the diagonal are not
counted) next to the rate of a plain float32 matrix product timed between the calls. Where torch
is installed, its scaled_dot_product_attention on the same shapes follows, in a process of its
own.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import _bench
import jax
import jax.numpy as jnp

from nope.attention import attention
from nope.attention.api import BACKENDS
from nope.attention.cases import BENCH_CASES, Case, Inputs, make_inputs

PEER = 'torch_sdpa'
MATMUL_SIZE = 1024
MOST_TURNS = 100
# Products of [T, S, H] size: two forward; with the backward pass the logits again and four
# gradients.
PRODUCTS = {'forward': 2, 'forward_entropy': 2, 'gradient': 7}


def report(
    case: Case,
    implementation: str,
    kind: str,
    call: Callable[[], object],
    matmul: Callable[[], object],
    budget: float,
    **more: Any,
) -> None:
    """Times `call`, alternating with `matmul` so that a busy machine slows both, and prints."""
    call()
    matmul()
    load = _bench.Load()
    taken = _bench.interleaved(
        {
            'call': functools.partial(_bench.seconds, call),
            'matmul': functools.partial(_bench.seconds, matmul),
        },
        MOST_TURNS,
        budget,
    )
    flops = 2 * PRODUCTS[kind] * case.visible_pairs * case.head_dim
    matmul_rate = 2 * MATMUL_SIZE**3 / taken['matmul']
    _bench.emit(
        {
            'case': case.name,
            'implementation': implementation,
            'pass': kind,
            'seconds': taken['call'],
            'gflops': flops / taken['call'] / 1e9,
            'matmul_gflops': matmul_rate / 1e9,
            'share_of_matmul': flops / taken['call'] / matmul_rate,
            'cores_busy_elsewhere': load.others(),
            **more,
        }
    )


def forward(inputs: Inputs, *, implementation: str, entropy: bool) -> Any:
    return attention(
        inputs.q_BTNH,
        inputs.k_BSKH,
        inputs.v_BSKH,
        mask=inputs.mask,
        bias=inputs.bias,
        entropy=entropy,
        implementation=implementation,
    )


def gradient(inputs: Inputs, *, implementation: str) -> Any:
    """Gradients of q, k and v, the cotangent of `out` being an argument so that nothing folds."""

    def out(q_BTNH, k_BSKH, v_BSKH):
        moved = dataclasses.replace(inputs, q_BTNH=q_BTNH, k_BSKH=k_BSKH, v_BSKH=v_BSKH)
        return forward(moved, implementation=implementation, entropy=False).out

    _, back = jax.vjp(out, inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH)
    return back(inputs.d_out_BTNH)


def measure(case: Case, implementation: str, budget: float) -> None:
    inputs = make_inputs(case)
    names = [field.name for field in dataclasses.fields(Inputs)]
    arrays = [getattr(inputs, name) for name in names]
    square = jnp.ones((MATMUL_SIZE, MATMUL_SIZE))
    product = jax.jit(jnp.matmul).lower(square, square).compile()
    passes = {
        'forward': functools.partial(forward, implementation=implementation, entropy=False),
        'forward_entropy': functools.partial(forward, implementation=implementation, entropy=True),
        'gradient': functools.partial(gradient, implementation=implementation),
    }
    for kind, function in passes.items():

        def unpacked(*arrays, function=function):
            return function(Inputs(**dict(zip(names, arrays, strict=True))))

        lowered = jax.jit(unpacked).lower(*arrays)
        start = time.perf_counter()
        compiled = lowered.compile()
        compile_seconds = time.perf_counter() - start
        memory = compiled.memory_analysis()
        report(
            case,
            implementation,
            kind,
            functools.partial(_wait, compiled, *arrays),
            functools.partial(_wait, product, square, square),
            budget,
            compile_seconds=compile_seconds,
            temp_mib=memory and memory.temp_size_in_bytes / _bench.MIB,
            device=jax.devices()[0].device_kind,
        )


def _wait(function: Callable[..., Any], *arguments: Any) -> None:
    jax.block_until_ready(function(*arguments))


def measure_peer(case: Case, budget: float) -> None:
    import torch

    def heads_first(length: int, heads: int) -> Any:
        # A model's projections give [B, T, N, H]; the kernel is handed a transposed view.
        array = torch.randn(case.batch, length, heads, case.head_dim)
        return array.transpose(1, 2).requires_grad_()

    q = heads_first(case.queries, case.heads)
    k, v = (heads_first(case.keys, case.kv_heads) for _ in range(2))
    d_out = torch.randn_like(q)
    square = torch.ones(MATMUL_SIZE, MATMUL_SIZE)

    def attend() -> Any:
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=case.causal, scale=1.0, enable_gqa=case.heads != case.kv_heads
        )

    def forward_only() -> None:
        with torch.no_grad():
            attend()

    passes = {
        'forward': forward_only,
        'gradient': lambda: torch.autograd.grad(attend(), (q, k, v), d_out),
    }
    for kind, function in passes.items():
        matmul = functools.partial(torch.mm, square, square)
        report(case, PEER, kind, function, matmul, budget, threads=torch.get_num_threads())


def main() -> None:
    names = [case.name for case in BENCH_CASES]
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument('--case', action='append', choices=names, help='default: all of them')
    parser.add_argument('--implementation', default='chunked', choices=[*BACKENDS, PEER])
    parser.add_argument('--seconds', type=float, default=3.0, help='per measurement')
    options = parser.parse_args()
    for case in BENCH_CASES:
        if options.case and case.name not in options.case:
            continue
        if options.implementation == PEER:
            if case.plain:
                measure_peer(case, options.seconds)
            continue
        measure(case, options.implementation, options.seconds)
        if case.plain and importlib.util.find_spec('torch') and jax.default_backend() == 'cpu':
            peer = ['--case', case.name, '--implementation', PEER]
            seconds = ['--seconds', str(options.seconds)]
            subprocess.run([sys.executable, __file__, *peer, *seconds], check=True)


if __name__ == '__main__':
    main()
