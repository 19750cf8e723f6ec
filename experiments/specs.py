"""Specs: frozen values for what an experiment makes, and their identity.

A run ends in a checkpoint, an evaluation in records, an export in a Hugging Face directory. Each
is identified by a hash of what determines its result, so that figures share them and nothing is
made twice.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import pathlib
from collections.abc import Callable
from typing import Any, ClassVar

from experiments.homes import check_home
from nope import data
from nope.data import DataConfig, TaskData
from nope.data.sources import Source
from nope.identity import digest, plain


@dataclasses.dataclass(frozen=True)
class UnknownText(DataConfig):
    """Text that a checkpoint was trained on, of which nothing is known but how it is read."""

    sources: tuple[Source, ...] = ()
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """There is no source to check."""


# Raise when code changes what a run or an evaluation computes from the same spec, or a default.
VERSION = 2


@dataclasses.dataclass(frozen=True)
class Spec(abc.ABC):
    """Something that is made once and kept in a folder of its own.

    room: the folder of a work folder that holds its kind. finished: the file that is there once it
    is whole. There is nothing to make where `room` is empty.
    """

    room: ClassVar[str] = ''
    finished: ClassVar[str] = ''

    @abc.abstractmethod
    def slug(self) -> str:
        """Readable folder name that is unique to the spec."""

    @property
    def needs(self) -> tuple[Spec, ...]:
        """Specs that have to be finished before it can be made, without those they need in turn; of
        one for which nothing is made also those."""
        values = (getattr(self, field.name) for field in dataclasses.fields(self))
        parts = (part for v in values for part in (v if isinstance(v, tuple) else (v,)))
        direct = [part for part in parts if isinstance(part, Spec)]
        return tuple(
            needed for part in direct for needed in (part, *(() if part.room else part.needs))
        )

    def describe(self) -> str:
        """One line of a plan."""
        return self.slug()

    def lock(self, folder: pathlib.Path) -> pathlib.Path:
        """The lock file of whoever makes it."""
        return folder / '.lock'

    def failure(self, folder: pathlib.Path) -> pathlib.Path:
        """The file that says why the last attempt to make it failed."""
        return folder / 'failed.json'

    def check_folder(self, folder: pathlib.Path) -> None:
        """ValueError where `folder` is the home of something else."""
        check_home(folder, identity(self))


def identifier(spec: Any) -> str:
    """Twelve hex digits of the hash of `identity(spec)`."""
    return digest(identity(spec))


# Once for all specs that read the same data: it looks at thousands of files.
_of_data = functools.lru_cache(maxsize=64)(data.identity)


@functools.lru_cache(maxsize=1024)
def identity(spec: Any) -> dict[str, Any]:
    """JSON-able content of a spec: what determines its result and nothing else."""
    return _identity(spec, _of_data)


def check_unchanged(spec: Any) -> None:
    """ValueError where the corpora of a spec are no longer those that its identity names."""
    if _identity(spec, functools.cache(data.identity)) != identity(spec):
        raise ValueError(
            'the files of its text have changed since this command began: put them back, and the '
            'same command goes on; with the new ones it makes all anew'
        )


def _identity(spec: Any, of_data: Callable[[Any], Any]) -> dict[str, Any]:
    data_types = (DataConfig, UnknownText, TaskData)
    return {'version': VERSION, **plain(spec, dict.fromkeys(data_types, of_data))}
