"""Public names of the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

import nope
from nope.attention import attention
from nope.pretrained import Pretrained


@pytest.mark.parametrize('name', nope.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(nope, name) is not None
    assert name in dir(nope)


def test_names_are_those_of_their_modules() -> None:
    from nope import Pretrained as found

    assert found is Pretrained and nope.attention.attention is attention
    with pytest.raises(AttributeError, match="'nope' has no attribute 'RoPE'"):
        _ = nope.RoPE


def test_importing_the_package_imports_no_jax() -> None:
    code = 'import sys, nope; dir(nope); sys.exit(bool({"jax", "numpy"} & sys.modules.keys()))'
    subprocess.run([sys.executable, '-c', code], check=True)
