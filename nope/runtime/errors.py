"""Errors of values that a person gave: which field, what it is, what is accepted."""

from __future__ import annotations

from typing import Any


class FieldError(ValueError):
    """A field of a typed value that does not fit.

    field: its name in the dataclass. value: as given. rule: what is accepted, as a clause. Whoever
    made the value from something a person typed knows where that stands and says it in place of
    the bare name (`experiments.config.Section`).
    """

    def __init__(self, field: str, value: Any, rule: str) -> None:
        super().__init__(describe(field, value, rule))
        self.field, self.value, self.rule = field, value, rule


def describe(where: str, value: Any, rule: str) -> str:
    """'search.steps is 0; it must be at least 1'."""
    return f'{where} is {value!r}; {rule}'


def one_of(accepted: Any) -> str:
    """The clause for a choice."""
    return f'accepted: {", ".join(map(str, accepted))}'
