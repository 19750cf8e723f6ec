"""Models in run folders: `spec.json`, which says what the model is, and its checkpoints.

A search of lambda is saved without the weights it starts from. `base_model.json` in its folder says
where these are: {"folder": PATH}, another run folder (relative to this one) or a Hugging Face
directory. Which model that has to be is `init` in `spec.json`.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from jax.sharding import Mesh

from nope.checkpoints import folders
from nope.checkpoints.manager import Checkpoints
from nope.identity import first_difference, plain
from nope.interop.describe import describe
from nope.interop.directory import fingerprint, open_directory
from nope.interop.families.base import Described
from nope.interop.load import load
from nope.model import LayerKind, ModelConfig
from nope.model.lam import LAWS, GivenLaw, Product
from nope.model.mixers import MIXERS
from nope.positions import KINDS, SCALINGS
from nope.runtime import files
from nope.runtime.errors import brief
from nope.runtime.files import read_object, write_json
from nope.runtime.sections import rebuild
from nope.variables import Variables, abstract_variables, with_lam_from

BASE_MODEL = 'base_model.json'


def model_types() -> dict[str, type]:
    """Every dataclass that a model's identity may be made of, by its name."""
    own = ModelConfig, LayerKind, GivenLaw, Product
    kinds = (*own, *LAWS.values(), *KINDS.values(), *SCALINGS.values(), *MIXERS.values())
    return {kind.__name__: kind for kind in kinds}


# What values of another type than the field's come to where a model is made of them.
_MISFITS = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


class SavedModel(NamedTuple):
    """Content of a run folder: the model, its variables, and `spec.json`."""

    described: Described
    variables: Variables
    spec: Mapping[str, Any]


def read_run(folder: pathlib.Path, mesh: Mesh, step: int | None = None) -> SavedModel:
    """The model of a finished run at its last checkpoint, or the best where training was validated,
    or of any run at `step`.

    ValueError for a folder without a run, for an unfinished run (without a step), and for one that
    this version cannot read. ValueError also if its base model is missing or another one.
    `nope.checkpoints.errors.CheckpointError` for a damaged or missing checkpoint.
    """
    spec = read_object(folder / 'spec.json')
    checkpoints_in = folders.of_run(folder)
    if spec is None or not checkpoints_in.is_dir():
        raise ValueError(f'{folder} is no run folder: it needs spec.json and checkpoints')
    if step is None and not (folder / 'done.json').exists():
        raise ValueError(
            f'{folder} is not finished; start its command again, or name the step of a checkpoint'
        )
    try:
        earlier: Any = spec.get('earlier')
        own: dict[str, Any] = {}
        # A run that drops its position encoding has it up to that step.
        before = step is not None and earlier is not None and step <= earlier['steps']
        model = rebuild(earlier['model'] if before else spec['model'], model_types())
        train_length = int(spec['train_length']) or None
        for name in ('longest', 'bos', 'eos', 'pad'):  # of an imported model
            if spec.get(name) is not None:
                own[name] = int(spec[name])
        if ends := spec.get('ends'):
            own['ends'] = tuple(int(end) for end in ends)
        target = abstract_variables(model, mesh)
    except _MISFITS as error:
        raise ValueError(
            f'{folder / "spec.json"} describes no model we know: {brief(error)}; if an earlier '
            'version wrote it, make it again'
        ) from error
    base, inherited = _base_model(folder, spec, mesh, model)
    with Checkpoints(checkpoints_in, spec) as checkpoints:
        checkpoints.stand_on(base)
        found = checkpoints.read({k: v for k, v in target.items() if k not in base}, step)
    variables = {**base, **found}
    optimizer = spec.get('train', {}).get('optimizer', {})
    if optimizer.get('straight_through'):
        # What is saved is the free copy of lambda; see `nope.training.optim.as_used`.
        variables = with_lam_from(variables, float(optimizer['bound']))
    source: Any = spec
    while isinstance(source, Mapping) and 'dtype' not in source:
        source = source.get('init')
    dtype = str(source['dtype']) if source else 'float32'  # that the weights were imported in
    described = inherited._replace(model=model, train_length=train_length, dtype=dtype, **own)
    lengths = spec.get('train', {}).get('lengths', ())
    if (longest := max(lengths, default=0)) > (described.longest or 0):
        described = described._replace(longest=int(longest))
    return SavedModel(described, variables, spec)


def name_base_model(folder: pathlib.Path, base: pathlib.Path) -> None:
    """Writes the place of a search's base model into its run folder: the folder of a run, by its
    relative path if both lie in one work folder, or a Hugging Face directory."""
    folder, base = folder.resolve(), base.resolve()
    beside = base.parent == folder.parent
    path = os.path.relpath(base, folder) if beside else os.fspath(base)
    write_json(folder / BASE_MODEL, {'folder': path})


def imported_from(folder: pathlib.Path) -> pathlib.Path | None:
    """The Hugging Face directory whose weights a search's run has, at any remove; None where it has
    others, or that is not there."""
    while (base := _place_of_base(folder)) is not None:
        folder = base
        if not (folder / 'spec.json').exists():
            return folder if folder.is_dir() else None
    return None


def _place_of_base(folder: pathlib.Path) -> pathlib.Path | None:
    """Path of a search's base model, as its run folder names it; None where it names none."""
    named = read_object(folder / BASE_MODEL)
    return None if named is None else folder.resolve() / folders.named(named, folder / BASE_MODEL)


def _base_model(
    folder: pathlib.Path, spec: Mapping[str, Any], mesh: Mesh, model: ModelConfig
) -> tuple[Variables, Described]:
    """{'params': ...} of the base model and what is known of it; empty, and of `model` nothing
    more, for a run that has all its variables itself."""
    place = _place_of_base(folder)
    if place is None:
        return {}, Described(model, None)
    init = spec.get('init')
    if not isinstance(init, dict):
        raise ValueError(
            f'{folder / "spec.json"} has no model that the run starts from, and '
            f'{folder / BASE_MODEL} names one'
        )
    while init.get('type') == 'TemperatureSpec':  # it has the weights of the run below it
        init = init['init']
    if not place.is_dir():
        raise ValueError(
            f'{folder} was searched on the model in {place}, which is not there; put it back, or '
            f'write where it is into {folder / BASE_MODEL}'
        )
    if 'fingerprint' in init:
        directory = open_directory(place)
        _check_base(folder, place, init['fingerprint'], fingerprint(directory))
        params = load(directory, rebuild(init['model'], model_types()), mesh)['params']
        return {'params': params}, describe(directory)
    saved = read_object(place / 'spec.json') or {}
    _check_base(folder, place, init, {k: v for k, v in saved.items() if k != 'version'})
    found = read_run(place, mesh)
    return {'params': found.variables['params']}, found.described


def _check_base(folder: pathlib.Path, place: pathlib.Path, wanted: Any, found: Any) -> None:
    different = first_difference(wanted, found)
    if different:
        raise ValueError(
            f'{place} holds another model than {folder} was searched on: {different}; write where '
            f'that one is into {folder / BASE_MODEL}'
        )


def write_run(
    folder: pathlib.Path, described: Described, variables: Variables, origin: Mapping[str, Any]
) -> None:
    """Saves an imported model as a finished run of no steps, which `read_run` reads.

    ValueError where the folder is there already.
    """
    if folder.exists():
        raise ValueError(f'{folder} is there already; nothing was written')
    spec = {
        'type': 'Imported',
        'model': plain(described.model),
        'train_length': described.train_length or 0,
        'dtype': described.dtype,
        'longest': described.longest,
        'bos': described.bos,
        'eos': described.eos,
        'ends': list(described.ends),
        'pad': described.pad,
        'origin': dict(origin),
    }
    with files.unfinished_folder(folder.absolute()) as partial:
        write_json(partial / 'spec.json', spec)
        with Checkpoints(partial / 'checkpoints', spec) as checkpoints:
            checkpoints.save(0, variables, {'consumed': 0})
        write_json(partial / 'done.json', {'steps': 0, 'seconds': 0})
        partial.rename(folder)
