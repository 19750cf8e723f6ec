"""Frozen values as JSON, their hash, and the first difference between two of them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any


def plain(value: Any, special: Mapping[type, Callable[[Any], Any]] | None = None) -> Any:
    """JSON-able form of a tree of dataclasses and tuples.

    Fields at their default are left out, so that a new field leaves identities alone; a default
    must not change. Fields marked `metadata={'identity': False}` are left out too. `special` maps
    types to what stands for them.
    """
    special = special or {}
    if type(value) in special:
        return special[type(value)](value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        execution = execution_fields(type(value))
        fields = {
            f.name: plain(getattr(value, f.name), special)
            for f in dataclasses.fields(value)
            if f.name not in execution and getattr(value, f.name) != f.default
        }
        return {'type': type(value).__name__, **fields}
    if isinstance(value, tuple):
        return [plain(item, special) for item in value]
    return value


def execution_fields(kind: type) -> frozenset[str]:
    """Fields of a dataclass that change speed or memory, not results, as their metadata say."""
    fields = dataclasses.fields(kind)
    return frozenset(f.name for f in fields if not f.metadata.get('identity', True))


def digest(value: Any) -> str:
    """Twelve hex digits of the SHA-256 of a JSON-able value."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def first_difference(wanted: Any, found: Any) -> str:
    """'a.b is 1 here and 2 there' for the first field in which two JSON-able values differ, or ''.

    Tuples and lists are the same, as they are in JSON.
    """
    as_read, as_found = (json.loads(json.dumps(value)) for value in (wanted, found))
    return _first_difference(as_read, as_found, '')


def _first_difference(wanted: Any, found: Any, path: str) -> str:
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for key in sorted({*wanted, *found}):
            below = f'{path}.{key}' if path else str(key)
            different = _first_difference(wanted.get(key), found.get(key), below)
            if different:
                return different
        return ''
    return (
        ''
        if wanted == found
        else f'{path or "value"} is {wanted!r:.300} here and {found!r:.300} there'
    )
