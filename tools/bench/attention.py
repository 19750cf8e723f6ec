"""Speed and memory of attention, one JSON line per measurement.

    python -m tools.bench attention                             # sizes for a CPU
    python -m tools.bench attention --set accelerator --check   # sizes for a GPU or TPU
    python -m tools.bench attention --set accelerator --budget 480   # stops after 8 minutes
    python -m tools.bench attention --set accelerator --target h200  # only compile, anywhere

Passes are forward, forward and backward, and each with the entropy. In every case and pass the
implementations that the device has take turns. A line has the median seconds of a call without
compilation, the temporary memory of the program, and the useful rate. A causal case counts half of
its products. The rate's share is that of the device's peak, or on a CPU of a float32 matrix product
timed between the calls. `times_as_long` compares with the library, else with the dense reference;
a case with a key bias is compared with the same without it.

On an accelerator calls queue behind each other, since the start of one alone takes as long as a
short kernel.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from nope.attention import attention
from nope.attention.api import BACKENDS
from nope.attention.backend import Call, describe
from nope.attention.cases import (
    ACCELERATOR_CASES,
    BENCH_CASES,
    LENGTH_CASES,
    Inputs,
    Trial,
    abstract_inputs,
    make_inputs,
)
from nope.runtime import hardware, targets
from tools.bench import harness

PLAIN = ' without key_bias_BNS'
SETS = {'model': BENCH_CASES, 'accelerator': ACCELERATOR_CASES, 'lengths': LENGTH_CASES}
MATMUL_SIZE = 1024
MOST_TURNS = 100
QUEUED_SECONDS = 0.05  # of calls behind each other on an accelerator
# Logits of one array that a dense implementation is given at most; it holds a few such.
MOST_DENSE = {'cpu': 2**29, 'tpu': 2**29, 'gpu': 2**31}
# Products of [T, S, H] size: two forward; with the backward pass the logits again and four
# gradients.
PRODUCTS = {'forward': 2, 'forward_entropy': 2, 'gradient': 7, 'gradient_entropy': 7}


def run_pass(inputs: Inputs, *, kind: str, implementation: str) -> Any:
    """One pass; cotangents are arguments, so that nothing folds. Those of the entropy pull too
    where the pass has it."""
    entropy = kind.endswith('entropy')

    def attend(q_BTNH, k_BSKH, v_BSKH, key_bias_BNS) -> tuple[jax.Array, jax.Array | None]:
        result = attention(
            q_BTNH, k_BSKH, v_BSKH, mask=inputs.mask, bias=inputs.bias, key_bias_BNS=key_bias_BNS,
            entropy=entropy, implementation=implementation,
        )  # fmt: skip
        return result.out, result.entropy

    arguments = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH, inputs.key_bias_BNS
    if kind.startswith('forward'):
        return attend(*arguments)
    (out, found), back = jax.vjp(attend, *arguments)
    d_out = inputs.d_out_BTNH.astype(out.dtype)
    return back((d_out, None if found is None else inputs.d_entropy_BNT))


def implementations(case: Trial, inputs: Inputs, kind: str, wanted: Sequence[str]) -> list[str]:
    """Those of `wanted` (empty: all) that can run a pass of the case on the device of the current
    mesh."""
    entropy = kind.endswith('entropy')
    call: Call = describe(
        inputs.q_BTNH, inputs.k_BSKH, inputs.mask, inputs.bias, entropy, key_bias=case.key_bias
    )
    dense = {'reference'} | ({'library'} if call.platform == 'cpu' else set())
    logits = case.batch * case.heads * case.queries * case.keys
    too_large = logits > MOST_DENSE[call.platform]
    return [
        name
        for name, backend in BACKENDS.items()
        if backend.unsupported(call) is None
        and (not wanted or name in wanted)
        and not (too_large and name in dense)
    ]


def lower(kind: str, implementation: str, inputs: Inputs) -> jax.stages.Lowered:
    return jax.jit(functools.partial(run_pass, kind=kind, implementation=implementation)).lower(
        inputs
    )


def describe_program(case: Trial, implementation: str, kind: str, lowered: Any) -> tuple[Any, dict]:
    """(the compiled program, what is known of it before it runs)."""
    start = time.perf_counter()
    compiled = lowered.compile()
    memory = compiled.memory_analysis()
    return compiled, {
        'case': case.name,
        'implementation': implementation,
        'pass': kind,
        'dtype': case.dtype,
        'compile_seconds': time.perf_counter() - start,
        'temp_mib': memory and memory.temp_size_in_bytes / harness.MIB,
    }


def measure(
    case: Trial,
    passes: Sequence[str],
    wanted: Sequence[str],
    budget: float,
    check: bool,
    ends: float = math.inf,
) -> None:
    """ends: when `time.perf_counter()` is there, what is left is named and not measured."""
    inputs = make_inputs(case)
    for kind in passes:
        programs, facts = {}, {}
        for name, arrays in calls_of(case, inputs, kind, wanted).items():
            implementation = name.removesuffix(PLAIN)
            if time.perf_counter() > ends:
                left = {'case': case.name, 'implementation': name, 'pass': kind}
                harness.emit(left | {'error': 'left out: the time is over'})
                continue
            try:
                lowered = lower(kind, implementation, arrays)
                program, found = describe_program(case, name, kind, lowered)
                result = jax.block_until_ready(program(arrays))
                if check:
                    found |= errors(kind, arrays, result)
            except Exception as error:  # one that fails leaves the others to be measured
                failed = f'{type(error).__name__}: {error}'[:300]
                harness.emit(
                    {'case': case.name, 'implementation': name, 'pass': kind, 'error': failed}
                )
                continue
            programs[name], facts[name] = functools.partial(program, arrays), found
        report(case, kind, programs, facts, min(budget, (ends - time.perf_counter()) / 10))


def calls_of(case: Trial, inputs: Inputs, kind: str, wanted: Sequence[str]) -> dict[str, Inputs]:
    """Arrays by implementation; for each that is given a key bias, also those without one."""
    names = implementations(case, inputs, kind, wanted)
    calls = dict.fromkeys(names, inputs)
    if case.key_bias:
        without = dataclasses.replace(inputs, key_bias_BNS=None)
        calls |= dict.fromkeys([name + PLAIN for name in names], without)
    return calls


def errors(kind: str, inputs: Inputs, found: Any) -> dict[str, float]:
    """Largest deviation from the same pass in float32, relative to the largest entry."""
    as_float32 = functools.partial(jax.tree.map, lambda x: x.astype(jnp.float32))
    arrays = as_float32((inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH))
    precise = dataclasses.replace(
        inputs, **dict(zip(('q_BTNH', 'k_BSKH', 'v_BSKH'), arrays, strict=True))
    )
    with jax.default_matmul_precision('highest'):
        right = lower(kind, 'chunked', precise).compile()(precise)
    pairs = zip(jax.tree.leaves(as_float32(found)), jax.tree.leaves(right), strict=True)
    deviations = [float(jnp.max(jnp.abs(x - y)) / jnp.max(jnp.abs(y))) for x, y in pairs]
    return {'largest_error': float(np.max(deviations))}  # NaN where any is


def report(
    case: Trial,
    kind: str,
    calls: Mapping[str, Callable[[], object]],
    facts: dict[str, dict],
    budget: float,
) -> None:
    """Times the calls in turns, on a CPU with a matrix product among them, and prints."""
    timed = dict(calls)
    if jax.default_backend() == 'cpu':
        square = jnp.ones((MATMUL_SIZE, MATMUL_SIZE))
        timed['matmul'] = functools.partial(jax.jit(jnp.matmul), square, square)
    for call in timed.values():
        jax.block_until_ready(call())
    timers = {name: functools.partial(_seconds, call) for name, call in timed.items()}
    taken, others = harness.beside_load(timers, budget * len(timed), MOST_TURNS)
    peak = hardware.peak_flops(case.dtype)
    if 'matmul' in taken:
        peak = 2 * MATMUL_SIZE**3 / taken['matmul']
    for name in calls:
        ending = PLAIN if name.endswith(PLAIN) else ''
        bases = name + PLAIN, 'library' + ending, 'reference' + ending
        base = next((other for other in bases if other in calls), None)
        rate = 2 * PRODUCTS[kind] * case.visible_pairs * case.head_dim / taken[name]
        harness.emit(
            {
                **facts[name],
                'seconds': taken[name],
                'tflops': rate / 1e12,
                'share_of_peak': rate / peak,
                'against': base,
                'times_as_long': base and taken[name] / taken[base],
                'device': jax.devices()[0].device_kind,
                'cores_busy_elsewhere': others,
            }
        )


def _seconds(call: Callable[[], object]) -> float:
    if jax.default_backend() == 'cpu':
        return harness.seconds(lambda: jax.block_until_ready(call()))
    return harness.per_call(call, jax.block_until_ready, QUEUED_SECONDS)


def compile_for(case: Trial, passes: Sequence[str], wanted: Sequence[str], target: str) -> None:
    """Every program of the case for a device that is not there."""
    mesh = Mesh(np.array(targets.devices(target)[:1]), ('x',), axis_types=(AxisType.Auto,))
    inputs = abstract_inputs(case, NamedSharding(mesh, PartitionSpec()))
    with jax.set_mesh(mesh):
        for kind in passes:
            for name in implementations(case, inputs, kind, wanted):
                try:
                    lowered = lower(kind, name, inputs)
                    _, facts = describe_program(case, name, kind, lowered)
                except Exception as error:  # the compiler's own message is the result
                    facts = {'case': case.name, 'implementation': name, 'pass': kind}
                    facts['error'] = f'{type(error).__name__}: {error}'[:300]
                harness.emit({**facts, 'target': target})


def main() -> None:
    names = [case.name for cases in SETS.values() for case in cases]
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument('--set', choices=SETS, default='model')
    parser.add_argument('--case', action='append', choices=names, help='default: all of the set')
    parser.add_argument('--implementation', action='append', choices=BACKENDS, default=[])
    parser.add_argument('--pass', action='append', choices=PRODUCTS, dest='passes')
    parser.add_argument('--seconds', type=float, default=3.0, help='per measurement')
    parser.add_argument('--budget', type=float, default=math.inf, help='seconds in all')
    parser.add_argument('--check', action='store_true', help='compare with float32 first')
    parser.add_argument('--target', help='compile for this device (h200, v5e:1x1) and run nothing')
    options = parser.parse_args()
    in_set = [case.name for case in SETS[options.set]]
    for name in options.case or ():
        if name not in in_set:
            parser.error(f'--case {name}: not of --set {options.set}; it has {", ".join(in_set)}')
    passes = options.passes or list(PRODUCTS)
    ends = time.perf_counter() + options.budget
    for case in SETS[options.set]:
        if options.case and case.name not in options.case:
            continue
        if options.target:
            compile_for(case, passes, options.implementation, options.target)
        else:
            measure(case, passes, options.implementation, options.seconds, options.check, ends)
