"""One attention call for a profiler or a sanitizer to watch: a JSON line.

python tools/_one_call.py --implementation=mosaic_gpu --case=h64_8k --pass=gradient_entropy
python tools/_one_call.py ... --kernels    # the milliseconds of each of its kernels, by CUPTI
"""

from __future__ import annotations

from nope.runtime import door

if __name__ == '__main__':  # before what it imports
    door.enter(__file__)

import argparse
import sys

import _bench
import bench_attention
import jax
import jax.numpy as jnp

from nope.attention.api import BACKENDS
from nope.attention.cases import ACCELERATOR_CASES, Trial, make_inputs

# Every rule in blocks that are cut, for tools under which a call takes minutes.
PACKED = Trial('packed', 1, 384, 384, 4, 2, 64, segments='packed', dtype='bfloat16')
CASES = {case.name: case for case in (*ACCELERATOR_CASES, PACKED)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument('--implementation', choices=BACKENDS, required=True)
    parser.add_argument('--case', choices=CASES, required=True)
    parser.add_argument('--pass', choices=bench_attention.PRODUCTS, dest='kind', required=True)
    parser.add_argument('--kernels', action='store_true', help='on a CUDA device')
    options = parser.parse_args()
    inputs = make_inputs(CASES[options.case])
    program = bench_attention.lower(options.kind, options.implementation, inputs).compile()
    result = jax.block_until_ready(program(inputs))
    finite = all(bool(jnp.all(jnp.isfinite(x))) for x in jax.tree.leaves(result))
    found = {
        'case': options.case,
        'implementation': options.implementation,
        'pass': options.kind,
        'finite': finite,
    }
    if options.kernels:
        from jax.experimental.mosaic.gpu import profiler

        _, kernels = profiler.measure(program, aggregate=False)(inputs)
        found['kernels_ms'] = dict(sorted(kernels or [], key=lambda kernel: -kernel[1]))
    _bench.emit(found)
    sys.exit(not finite)


if __name__ == '__main__':
    main()
