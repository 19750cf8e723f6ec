"""`--config.FIELD=VALUE` for every field of several configs, up to the plan of the work."""

from __future__ import annotations

import contextlib
import io
import pathlib
import sys
from typing import Any

from absl import flags
from ml_collections import config_flags

from experiments import run
from experiments.build import Experiment, build
from experiments.config import flat, plain
from experiments.plan import make_plan
from experiments.workspace import Workspace
from tests.experiments.build_test import config_of
from tests.experiments.fields_test import names_it
from tests.fuzz.case import Case, Target, Wrong, attempt, expect
from tests.fuzz.mutation import Draw, choice, one_in

CONFIGS = pathlib.Path(__file__).parents[3] / 'configs'
NAMES = (
    *('fig1', 'fig2', 'fig4', 'fig6', 'fig7', 'fig_dynamic', 'fig10', 'laws'),
    *('biases', 'encodings', 'split', 'split_heads', 'zero_shot', 'frontier', 'drope'),
)
VALUES = (
    *('', '0', '-1', '1', '2', '3', '7', '64', '1000', '1000003', '-0.0', '0.5', '1.5', '1e-9'),
    *('1e308', '1e400', 'nan', 'inf', '-inf', '2147483648', '9223372036854775808', '9' * 30),
    *('None', 'True', 'False', 'none', 'x', '..', '/', 'a/b', '~', '\0', 'é', '\n', 'x' * 300),
    *('()', '(1,)', '(0,)', '(-1, 2)', '(1, 1)', "('x',)", '(nan,)', '(None,)', '(0.5, 1e400)'),
    *('[]', '[1, [2]]', '{}', "{'a': 1}", "'quoted'", '((1,),)', 'jsonl:/nowhere', 'hf:/nowhere'),
    *('bytes', 'stdlib', 'text:', 'rotary', 'auto', 'full', 'reference', 'float32', 'bfloat16'),
)


def given(arguments: list[str]) -> Any:
    """The config of a command line, as `experiments.run` takes it, and the paths that were set.
    ValueError with what it prints before it ends with 2."""
    before, said = (flags.FLAGS, run.CONFIG, sys.argv), io.StringIO()
    run.changed.clear()
    flags.FLAGS = flags.FlagValues()
    try:
        # Flags of its own: those of a process remember what they were set to.
        run.CONFIG = config_flags.DEFINE_config_file(
            'config', flag_values=flags.FLAGS, sys_argv=run.arguments
        )
        sys.argv = ['run', *arguments]
        with contextlib.redirect_stderr(said):
            run.parse_flags(sys.argv)
        return run.CONFIG.value, list(run.changed)
    except SystemExit as end:
        expect(end.code == 2, f'exit status {end.code}')
        raise ValueError(said.getvalue()) from end
    finally:
        flags.FLAGS, run.CONFIG, sys.argv = before


def planned(arguments: list[str], folder: pathlib.Path) -> tuple[Any, Experiment]:
    config, changed = given(arguments)
    experiment = build(config, changed)
    make_plan(Workspace(folder), [*experiment.evals.values(), *experiment.exports]).describe()
    return config, experiment


def _fields(folder: pathlib.Path) -> Case:
    fields = {name: flat(plain(config_of(name))) for name in NAMES}
    work = folder / 'work'

    def case(draw: Draw) -> bool:
        name = choice(draw, NAMES)
        typed = {}
        for _ in range(2 if one_in(draw, 4) else 1):
            path = choice(draw, [p for p in fields[name] if '=' not in p])
            typed[path] = _value(draw, fields[name][path])
        arguments = [f'--config={CONFIGS / name}.py:quick']
        arguments += [f'--config.{path}={value}' for path, value in typed.items()]
        try:
            accepted, found = attempt(lambda: planned(arguments, work), *typed, *_words(typed))
        except Wrong as error:
            raise Wrong(f'{arguments[1:]}: {error}') from error
        except Exception as error:
            error.args = (f'{arguments[1:]!r:.200}: {error}',)
            raise
        if accepted:
            read = flat(plain(found[0]))
            for path, value in typed.items():
                held = read.get(path, read)
                expect(value != 'None' or held is None, f'{path} is {held!r}, not None')
        elif len(typed) == 1:
            (path, value), message = *typed.items(), str(found)
            fine = path.startswith('figure') or names_it(message, path, value)
            fine = fine or _as_a_limit(message, path, value)
            expect(fine, f'{arguments[1:]}: {message[:400]!r}')
        return accepted

    return case


def _as_a_limit(message: str, path: str, value: str) -> bool:
    """Whether a message about another field of the section says this one and its value."""
    section, _, field = path.rpartition('.')
    return f'{section}.' in message and f'{field}, {value}' in message


def _words(typed: dict[str, str]) -> list[str]:
    """What may stand for a field in a message: the one it belongs to, an option of a figure."""
    above = [path.rpartition('.')[0] for path in typed if path.count('.') > 2]
    limits = [path.rpartition('.')[0] + '.' for path in typed]
    return [*above, *limits, *('figure' for path in typed if path.startswith('figure'))]


def _value(draw: Draw, old: Any) -> str:
    """Of any type, or near the one that the field has."""
    if one_in(draw, 3):
        if isinstance(old, int) and not isinstance(old, bool):
            return str(choice(draw, (old + 1, old - 1, old * 2, -old, old * 1000, old + 0.5)))
        if isinstance(old, float):
            return repr(choice(draw, (old * 2, -old, old / 3, old * 1e6, float(round(old)))))
        if isinstance(old, str):
            return str(choice(draw, (f'{old}x', old[:-1], old.upper(), f'{old}/', f' {old}')))
        if isinstance(old, tuple) and old:
            return repr(choice(draw, (old[:-1], (*old, old[-1]), old[::-1], old * 3, (*old, -1))))
    return str(choice(draw, VALUES))


TARGETS = (Target('overrides.fields', 800, _fields),)
