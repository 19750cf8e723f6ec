"""LRU cache of a method's results that does not keep its object alive."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec('P')
R = TypeVar('R')


def cached_method(method: Callable[P, R], maxsize: int) -> Callable[P, R]:
    """`method`, bound, with its latest `maxsize` results kept, for an attribute of its object.

    `functools.lru_cache` of a bound method refers to its own object. A text in memory would stay
    until a full garbage collection.
    """
    bound = weakref.WeakMethod(method)  # type: ignore[type-var]

    def call(*args: Any, **kwargs: Any) -> Any:
        alive = bound()
        assert alive is not None  # the cache is an attribute of the object
        return alive(*args, **kwargs)

    return functools.lru_cache(maxsize=maxsize)(call)  # type: ignore[return-value]
