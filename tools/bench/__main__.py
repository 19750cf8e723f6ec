"""Entrance of the benchmarks: python -m tools.bench PROGRAM [--FLAG ...], with --help for flags."""

from __future__ import annotations

import importlib
import os
import sys

from nope.runtime import door, memory

PROGRAMS = {
    'train': 'training and search steps, evaluation passes; PyTorch beside them',
    'model': 'the 1.1B model on an accelerator; PyTorch beside it',
    'evals': 'perplexity, passkey, generation; transformers beside them',
    'attention': 'attention backends; cuDNN or splash attention beside them',
    'interop': 'import, evaluation and export of a checkpoint',
    'device': 'whether the kernels are right on a GPU or TPU, and how fast',
    'device_calls': 'single calls on a device, which `device` starts',
    'aot': 'compilation for TPUs and GPUs that are not there',
    'theorems': 'constructions without position encoding, by number format',
}
LARGE_SCRATCH = 'train', 'evals'  # as in experiments.run: huge pages, few arenas


def main() -> None:
    door.enter()
    name = sys.argv[1] if len(sys.argv) > 1 else ''
    if name not in PROGRAMS:
        lines = [f'    {known:13} {purpose}' for known, purpose in PROGRAMS.items()]
        refused = [f'{name}: no such program'] if name not in ('', '-h', '--help') else []
        print(*refused, (__doc__ or ''), *lines, sep='\n', file=sys.stderr)
        sys.exit(2 if refused else 0)
    if name in LARGE_SCRATCH:  # before imports whose threads allocate
        memory.restart_with_huge_pages()
        memory.few_arenas()
    if name == 'aot' or any(word.startswith('--target') for word in sys.argv):
        os.environ.setdefault('JAX_PLATFORMS', 'cpu')
    sys.argv = [f'tools.bench {name}', *sys.argv[2:]]
    sys.exit(importlib.import_module(f'tools.bench.{name}').main())


if __name__ == '__main__':
    main()
