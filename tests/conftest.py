"""The whole session runs on eight virtual CPU devices, so that any test may ask for a mesh.

Set here and not through the environment: commands that a test starts see the machine as it is.
JAX_PLATFORMS chooses another platform.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
from collections.abc import Iterator

import jax
import pytest

jax.config.update('jax_num_cpu_devices', 8)
if not os.environ.get('JAX_PLATFORMS'):
    jax.config.update('jax_platforms', 'cpu')

# Where no dtype is promoted in silence. Not where optimizers run: the schedules of optax divide
# an integer step by a Python float.
STRICT_DTYPES = ('attention', 'evals', 'positions')

# Comparisons with other libraries are left out where these are not installed. With NOPE_PARITY, as
# tools/test sets it, that is an error when they are collected.
PEERS = ('safetensors', 'torch', 'transformers')
MISSING = [name for name in PEERS if importlib.util.find_spec(name) is None]
COMPARISONS = ['interop/parity_test.py', 'experiments/extend_test.py']
collect_ignore = COMPARISONS if MISSING and not os.environ.get('NOPE_PARITY') else []


def pytest_report_header() -> list[str]:
    left_out = ', '.join(collect_ignore)
    return [f'without {", ".join(MISSING)}: {left_out} left out'] if left_out else []


@pytest.fixture(autouse=True)
def strict_dtypes(request: pytest.FixtureRequest) -> Iterator[None]:
    part = request.path.relative_to(pathlib.Path(__file__).parent).parts[0]
    with jax.numpy_dtype_promotion('strict' if part in STRICT_DTYPES else 'standard'):
        yield
