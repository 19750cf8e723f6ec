"""Homes: each folder of a work folder belongs to one spec, which its `spec.json` tells."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping
from typing import Any

from nope.identity import first_difference
from nope.runtime.files import read_object, write_json

SPEC = 'spec.json'
_NAME = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,199}')
SETTINGS = 'settings'  # of a figure's spec: path -> value of the fields that determine it


def check_name(field: str, name: object) -> None:
    """ValueError, naming the field, for what is no name of one folder or file."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f'{field} is {name!r:.300}; accepted: up to 200 letters, digits and _ . = + -, '
            'the first a letter, a digit or _'
        )


def check_home(folder: pathlib.Path, spec: Mapping[str, Any]) -> None:
    """ValueError where `folder` is the home of something else than `spec`."""
    found = read_object(folder / SPEC)
    different = '' if found is None else first_difference(spec, found)
    if different:
        raise ValueError(f'{folder} holds something made from another config: {different}')


def take_home(folder: pathlib.Path, spec: Mapping[str, Any]) -> None:
    """Marks `folder` as the home of `spec`; ValueError as `check_home`."""
    check_home(folder, spec)
    if not (folder / SPEC).exists():
        write_json(folder / SPEC, spec)


def settings_of(figure: pathlib.Path) -> Mapping[str, Any]:
    """Path -> value of a figure's settings, as its folder notes them; {} without a note."""
    settings = (read_object(figure / SPEC) or {}).get(SETTINGS)
    return settings if isinstance(settings, dict) else {}


def check_figure(folder: pathlib.Path, settings: Mapping[str, Any]) -> None:
    """ValueError where the folder of a figure holds one of other settings."""
    found = read_object(folder / SPEC)
    if found is None:
        return
    remedy = (
        f'give this one another name, with --config.name=NAME, or remove {folder}; finished runs '
        'are used as they are'
    )
    if not isinstance(found.get(SETTINGS), dict):
        raise ValueError(f'{folder / SPEC} is damaged: {SETTINGS} are no named values; {remedy}')
    different = first_difference(settings, found[SETTINGS])
    if different:
        raise ValueError(f'{folder} holds a figure made from another config: {different}; {remedy}')


def take_figure(folder: pathlib.Path, settings: Mapping[str, Any]) -> None:
    """Marks the folder of a figure as one of these settings; ValueError as `check_figure`."""
    check_figure(folder, settings)
    if not (folder / SPEC).exists():
        write_json(folder / SPEC, {SETTINGS: dict(settings)})
