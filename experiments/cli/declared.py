"""Evaluations of `nope evaluate`, as the files of `experiments.evaluations` declare them.

They are read and not imported: importing one loads JAX, which --help and wrong flags do not wait
for.
"""

from __future__ import annotations

import argparse
import ast
import functools
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

FILES = pathlib.Path(__file__).parents[1] / 'evaluations'
LITERALS = ('kind', 'section', 'command', 'defaults', 'flags')


class Command(NamedTuple):
    """An evaluation of the command line. behind: its name, FOLDER, PATH or ''. what: it measures.
    defaults: of its section. flags: flag -> field of the section."""

    name: str
    behind: str
    kind: str
    section: str
    what: str
    defaults: Mapping[str, Any]
    flags: Mapping[str, str]

    @property
    def form(self) -> str:
        return f'{self.name}:{self.behind}' if self.behind else self.name

    def given(self, options: argparse.Namespace) -> dict[str, str]:
        """Texts of its flags, by the fields of the section."""
        texts = {x: vars(options).get(flag.replace('-', '_')) for flag, x in self.flags.items()}
        return {field: text for field, text in texts.items() if text is not None}


@functools.cache
def commands() -> dict[str, Command]:
    """The evaluations of the command line by name."""
    found = {}
    for path in sorted(FILES.glob('*.py')):
        tree = ast.parse(path.read_text())
        for node in tree.body:
            own = _literals(node) if isinstance(node, ast.ClassDef) else {}
            if own.get('command'):
                name, _, behind = own['command'].partition(':')
                what = (ast.get_docstring(tree) or '').partition('\n')[0]
                given = {'bos', 'lengths', *(['folder'] if behind else [])}
                renamed = own.get('flags', {})
                fields = {
                    renamed.get(field, field).replace('_', '-'): field
                    for field in own['defaults']
                    if field not in given
                }
                section = own.get('section', own['kind'])
                about = behind, own['kind'], section, what, own['defaults'], fields
                found[name] = Command(name, *about)
    return found


def _literals(node: ast.ClassDef) -> dict[str, Any]:
    """The attributes of a class that the command reads."""
    found = {}
    for each in node.body:
        if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
            target = each.targets[0] if isinstance(each, ast.Assign) else each.target
            if isinstance(target, ast.Name) and target.id in LITERALS:
                found[target.id] = ast.literal_eval(each.value)
    return found


def owners() -> dict[str, list[Command]]:
    """Flag -> the evaluations that have it."""
    found: dict[str, list[Command]] = {}
    for command in commands().values():
        for flag in command.flags:
            found.setdefault(flag, []).append(command)
    return found
