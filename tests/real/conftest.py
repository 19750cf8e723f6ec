"""Real models, opened once for all tests of them, and what stock gives for them."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import jax
import pytest

from nope.pretrained import Pretrained
from tests.real.models import NAMES, directory


@pytest.fixture(scope='session', params=NAMES)
def model(request: pytest.FixtureRequest) -> Pretrained:
    """On one device: eight would compute eight windows where there is one."""
    path = directory(request.param)
    if path is None:
        pytest.skip(f'NOPE_REAL_MODELS names no folder with {request.param}')
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jax, 'devices', lambda: jax.local_devices()[:1])
        patched.setattr(jax, 'device_count', lambda: 1)
        return Pretrained.open(path)


@pytest.fixture(scope='session')
def wanted(model: Pretrained) -> dict[str, Any]:
    """What `tests.real.stock` wrote."""
    return json.loads(pathlib.Path(__file__).with_name(f'{model.path.name}.json').read_text())
