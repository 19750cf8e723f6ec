"""Command line of an experiment: trains what is missing, measures, draws the figure.

    nope run fig1:quick --workdir=work/quick [--config.train.steps=1200 ...]
    nope run --config=FILE.py:ARGUMENT --workdir=work/mine

Started again after any stop, it goes on from the last checkpoint. Exit status: 0 done, 1 a
run failed, 2 bad input (nothing was compiled). 3: some trainings diverge, and nothing else failed.
143: stopped by SIGTERM or Ctrl-C and saved; 130: Ctrl-C while
it read its input.

With --plan, or --plan-for=h100:8, it prints what is missing with its least device hours and ends.
"""

from __future__ import annotations

import signal

from nope.runtime import door, memory, paths

if __name__ == '__main__':  # before JAX is imported
    door.enter()
    # A shell that runs it with & has Ctrl-C ignored; until it is heeded it ends the command.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    memory.restart_with_huge_pages()
    memory.few_arenas()

import functools
import operator
import os
import pathlib
import re
import runpy
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from absl import app, flags
from ml_collections import ConfigDict, config_flags

from experiments import config_files, typed
from experiments.statuses import BAD_INPUT

# JAX, which takes seconds, is imported by what `main` needs: what cannot be read is refused before.
arguments: list[str] = []  # as ml_collections reads them, once `parse_flags` has been called
CONFIG = config_flags.DEFINE_config_file(
    'config', None, 'Config file, as FILE.py:SIZE.', sys_argv=arguments
)
WORKDIR = flags.DEFINE_string(
    'workdir', None, 'Folder for runs, records and figures.', required=True
)
DISTRIBUTED = flags.DEFINE_enum(
    'distributed',
    'auto',
    ['auto', 'on', 'off'],
    'Whether other processes belong to this command: as the environment says, or as JAX finds out.',
)
PROFILE = flags.DEFINE_integer(
    'profile',
    None,
    'Steps of each run to trace, for TensorBoard and Perfetto; short for --config.compute.profile.',
)
PLAN = flags.DEFINE_boolean(
    'plan', False, 'Prints the missing pieces with their least work on this device, and ends.'
)
PLAN_FOR = flags.DEFINE_string(
    'plan-for', None, 'As --plan, for devices that need not be there: h100, h100:8, v5e:4x4.'
)
flags.mark_flag_as_required('config')
flags.register_validator('workdir', bool, message='it must name a folder')

FILE = re.compile(r'--config=(.+)')
FIELD = re.compile(r'--config\.([^=]+)')
NONE = re.compile(r'--config\.([^=]+)=None')
changed: list[str] = []  # paths of the fields that the command line has set


def main(argv: Sequence[str]) -> int:
    try:
        memory.check_address_space()
    except MemoryError as error:
        print(f'error: {error}', file=sys.stderr)
        return BAD_INPUT
    with memory.made_to_stay():
        from experiments import command

    if PROFILE.value is not None:
        CONFIG.value.compute.profile = PROFILE.value
    if PLAN.value or PLAN_FOR.value is not None:
        return command.show_plan(CONFIG.value, changed, paths.path(WORKDIR.value), PLAN_FOR.value)
    return command.main(CONFIG.value, changed, paths.path(WORKDIR.value), DISTRIBUTED.value)


def parse_flags(argv: Sequence[str]) -> list[str]:
    """The arguments that are no flags. Exits with 2 for a config file, a flag or a field that is
    not there, or takes another type of value."""
    if {'--help', '-h', '--helpfull'} & set(argv[1:]):
        print(f'{__doc__}\n{flags.FLAGS.main_module_help()}')
        sys.exit(0)
    try:
        argv = [
            f'--config={paths.expanded(found[1])}'
            if (found := FILE.fullmatch(argument))
            else argument
            for argument in typed.joined(argv)
        ]
        known, added = of_entries(argv)
        nones = [found[1] for argument in known if (found := NONE.fullmatch(argument))]
        arguments[:] = [argument for argument in known if not NONE.fullmatch(argument)]
        rest = flags.FLAGS(list(arguments))
        CONFIG.value.keys()  # a file that did not load says so at its first use
        for path in nones:
            set_none(CONFIG.value, path)
        typed.add(CONFIG.value, added)
        given = (*config_flags.get_override_values(flags.FLAGS['config']), *nones)
        changed.extend(typed.plain_path(CONFIG.value, path) for path in given)
        changed.extend(field.place.path for field in added)
        if rest[1:]:
            raise ValueError(
                f'stray arguments {rest[1:]}; options are the config, --workdir, --plan, '
                '--plan-for, --profile, --distributed and --config.FIELD=VALUE'
            )
        return rest
    except Exception as error:  # of flags, of values, or of the config file
        print(f'error: {plain_reason(argv) or error}', file=sys.stderr)
        sys.exit(BAD_INPUT)


def spelled(arguments: Sequence[str]) -> list[str]:
    """The arguments with the config, NAME:ARGUMENT or a file, as --config=FILE.py:ARGUMENT."""
    named = any(one.startswith('--config=') for one in arguments)
    for place, (before, one) in enumerate(zip(['', *arguments], arguments, strict=False)):
        # Of a flag without its value: '--workdir W', '--config fig1'.
        asks = before.startswith('--') and '=' not in before and before != '--plan'
        if not (named or one.startswith('-')) and (not asks or before == '--config'):
            left = arguments[: place - (before == '--config')]
            arguments = [*left, f'--config={one}', *arguments[place + 1 :]]
            break
    return [
        f'--config={config_files.resolved(found[1])}' if (found := FILE.fullmatch(one)) else one
        for one in arguments
    ]


def of_entries(argv: Sequence[str]) -> tuple[list[str], tuple[typed.Added, ...]]:
    """The arguments with fields of entries as ml_collections reads them, and those it cannot set.
    A config that cannot be read is left to it."""
    if not any(typed.OF_ENTRY.match(argument) for argument in argv):
        return list(argv), ()
    try:
        config = config_of(argv)
    except Exception:
        return list(argv), ()
    return typed.sort_out(config, argv)


def config_of(argv: Sequence[str]) -> Any:
    """The config that the arguments name, as its file gives it."""
    files = [found[1] for argument in argv if (found := FILE.fullmatch(argument))]
    if not files:
        raise NoConfig('no config is named')
    path, colon, size = files[-1].partition(':')
    if path and not pathlib.Path(path).is_file():
        raise NoConfig(f'there is no file {path}')
    names = runpy.run_path(path)
    if 'get_config' not in names:
        raise NoConfig(f'{path} is no config: it has no get_config')
    return names['get_config'](*[size] if colon else [])


class NoConfig(Exception):
    """Config file that is not there, or a Python file without get_config."""


def plain_reason(argv: Sequence[str]) -> str | None:
    """Error message of one line for refused arguments: what the config file refuses, or the first
    --config.FIELD that it has not; None where neither explains it."""
    try:
        config = config_of(argv)
    except ValueError as error:
        return str(error)
    except NoConfig as error:
        return f'--config: {error}; accepted: NAME:SIZE of a config, or FILE.py:SIZE'
    except Exception as error:  # a file that is broken
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f'{last.filename}, line {last.lineno}'
        return f'--config: it cannot be read: {type(error).__name__}: {error} ({place})'
    for argument in argv:
        path = found[1] if (found := FIELD.match(argument)) else ''
        if not path or typed.place_of(config, path):
            continue  # the build knows which fields an entry may have
        names = typed.names_of(path)
        reason = unknown_field(config, names)
        if reason is not None:
            return reason
        value = argument.partition('=')[2]
        if hasattr(functools.reduce(operator.getitem, names, config), 'items') and value[:1] != '{':
            example = {'kind': value} if names[-1] == 'position' else {'FIELD': 'VALUE'}
            return f'--config.{path}={value}: it takes named values, as "{example}"'
    return None


def unknown_field(section: Any, names: Sequence[str]) -> str | None:
    """Message for the first of the nested names that a config has not."""
    where = '--config'
    for name in names:
        if not isinstance(section, ConfigDict):
            return f'{where} is {section!r}, which has no fields'
        if name not in section:
            return f'{where}.{name} is unknown; accepted: {", ".join(sorted(section))}'
        section, where = section[name], f'{where}.{name}'
    return None


def set_none(config: Any, path: str) -> None:
    """Sets a field to None, which the flags of ml_collections do not take for a value."""
    *sections, last = typed.names_of(path)
    for name in sections:
        config = config[name]
    if last not in config:
        raise KeyError(f'--config.{path}: there is no such field')
    if hasattr(config[last], 'items'):
        raise ValueError(f'--config.{path}=None: it is a section; accepted are its fields')
    with config.ignore_type():
        config[last] = None


if __name__ == '__main__':
    sys.argv[1:] = spelled(sys.argv[1:])
    try:
        app.run(main, flags_parser=parse_flags)
    except BrokenPipeError:  # whoever read it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
