"""Model and tokenizer named on a tool's command line: a Hugging Face directory or a run folder."""

from __future__ import annotations

import argparse
import contextlib
import functools
import pathlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jax.sharding import Mesh

from nope import interop
from nope.data import Tokenizer, digest, ids_in_use, load_tokenizer, prefix_of
from nope.data.chat import Chat, load_chat
from nope.data.tasks import words
from nope.interop import Described
from nope.interop.run_folder import imported_from, read_run
from nope.positions import NoPE
from nope.runtime.errors import FieldError
from nope.runtime.files import read_object
from nope.variables import Variables

IMPORT = 'hf:'
BYTES = 'bytes'


class Model(NamedTuple):
    """A model that a command line names.

    variables: reads the weights. identity: tells it from others in its place.

    tokenizer: 'bytes' or a file that the model comes with. trained_by: fingerprint of the tokenizer
    of its training. task: the synthetic task that it was trained on. All three are '' where they
    are not known.
    """

    described: Described
    variables: Callable[[], Variables]
    identity: Callable[[], str]
    tokenizer: str
    trained_by: str = ''
    task: str = ''


def open_model(options: argparse.Namespace, mesh: Mesh) -> Model:
    """The model that `options` name. ValueError and `CheckpointError` as `interop` and `read_run`,
    and for an option that is for the other kind of folder."""
    if options.model.startswith(IMPORT):
        if options.step is not None:
            raise ValueError(f'--step is for a run; {options.model} holds one model')
        directory = interop.open_directory(pathlib.Path(options.model.removeprefix(IMPORT)))
        described = interop.describe(directory, position=NoPE() if options.nope else None)
        load = functools.partial(interop.load, directory, described.model, mesh)
        identity = functools.partial(interop.fingerprint, directory)
        return Model(described, load, identity, interop.tokenizer_in(directory.path) or '')
    if options.nope:
        raise ValueError(f'--nope is for {IMPORT}DIR; the run {options.model} says what it is')
    folder = pathlib.Path(options.model)
    if (folder / 'config.json').is_file() and not (folder / 'spec.json').exists():
        raise ValueError(
            f'--model={folder} is a Hugging Face directory; say so: --model={IMPORT}{folder}'
        )
    run = read_run(folder, mesh, options.step)
    source = '' if options.tokenizer else tokenizer_source(folder, run.spec)
    if not options.tokenizer and (folder / words.FILE).is_file():
        source = str(folder / words.FILE)
    elif source and source != BYTES:
        source = interop.tokenizer_in(pathlib.Path(source)) or ''
    # How long it took tells it from the same run trained again; unfinished ones still change.
    done = read_object(folder / 'done.json')
    identity = functools.partial(digest.of_json, [run.spec, done])
    data = run.spec.get('data', {})
    return Model(
        run.described,
        lambda: run.variables,
        identity,
        source,
        data.get('tokenizer') or '',
        data.get('task', {}).get('name', ''),
    )


def tokenizer_source(folder: pathlib.Path, spec: Mapping[str, Any]) -> str:
    """Tokenizer of a run by its spec.json: 'bytes', or the directory of an imported model, also of
    the one under a search of lambda. '' where there is no such directory, or it has another
    tokenizer or one of no use."""
    wanted = spec.get('data', {}).get('tokenizer')
    if wanted == load_tokenizer(BYTES).fingerprint:
        return BYTES
    if path := spec.get('origin', {}).get('path', ''):
        return path if pathlib.Path(path).is_dir() else ''
    directory = imported_from(folder)
    file = directory and interop.tokenizer_in(directory)
    with contextlib.suppress(ImportError, OSError, ValueError):
        return str(directory) if file and load_tokenizer(file).fingerprint == wanted else ''
    return ''


def tokenizer_of(model: Model, named: str = '') -> Tokenizer:
    """The tokenizer `named`, or else the model's. ValueError where it is not known, has more tokens
    than the model, or is another one than a model of a synthetic task was trained with."""
    name = named or model.tokenizer
    if not name:
        if model.task:
            raise ValueError(
                f'the folder of the model has no {words.FILE} with the words of its task, '
                f'{model.task}, which its training wrote there; if its tokenizer was a file, '
                'name that'
            )
        raise ValueError('the model says no tokenizer; name one: --tokenizer=bytes, or a file')
    tokenizer = load_tokenizer(name, '--tokenizer')
    if model.trained_by and tokenizer.fingerprint != model.trained_by:
        other = other_tokenizer(name)
        if model.task:
            raise ValueError(
                f'{other}, on the task {model.task}: without the flag the words of the task are '
                f'taken, which the command that trained it leaves in its folder ({words.FILE})'
            )
        print(f'warning: {other}', file=sys.stderr)
    size, used = model.described.model.vocab_size, ids_in_use(tokenizer)
    if used > size:
        raise ValueError(f'--tokenizer={name} has {used} tokens; the model has {size}')
    return tokenizer


def other_tokenizer(name: str) -> str:
    return f'--tokenizer={name} is another one than the model was trained with'


def prefix(tokenizer: Tokenizer, bos: bool | None) -> tuple[int, ...]:
    """Tokens that texts begin with by --bos. ValueError where BOS is wanted and there is none."""
    try:
        return prefix_of(tokenizer, bos)
    except FieldError as error:
        raise ValueError('--bos: the tokenizer has no BOS; accepted: --no-bos') from error


def chat_of(model: Model, options: argparse.Namespace) -> Chat | None:
    """The chat template beside the tokenizer, where --chat asks for it."""
    if not options.chat:
        return None
    if options.bos is not None:
        raise ValueError('--chat: the template says how a conversation begins; leave out --bos')
    file = pathlib.Path(options.tokenizer or model.tokenizer)
    if not file.is_file():
        raise ValueError(f'--chat: the tokenizer {str(file)!r} has no chat template beside it')
    return load_chat(file.parent)
