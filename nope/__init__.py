"""Length generalization of causal Transformers without position encoding.

    from nope import ModelConfig, Pretrained, Transformer, lam_of
    from nope.attention import attention

The names below are imported when they are first asked for: the command line needs neither JAX nor a
model to say what it can do.
"""

from __future__ import annotations

import importlib
from typing import Any

_MODULE_OF = {
    'LayerKind': 'nope.model',
    'ModelConfig': 'nope.model',
    'ModelOutput': 'nope.model',
    'Pretrained': 'nope.pretrained',
    'Transformer': 'nope.model',
    'apply': 'nope.model',
    'lam_of': 'nope.variables',
}
_PACKAGES = 'attention', 'positions'

__all__ = sorted([*_MODULE_OF, *_PACKAGES])


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f'nope.{name}')
    if name not in _MODULE_OF:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(importlib.import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
