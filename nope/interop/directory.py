"""A local folder of weights as the Hugging Face hub lays one out.

    config.json                     what the model is (`lit_config.json` where there is none)
    model.safetensors.index.json    which file has which tensor, where there are several:
                                    {"metadata": ..., "weight_map": {tensor: file name}}
    model.safetensors               or the only file, whatever its name ends in .safetensors
    nope_export.json                of a folder that this library wrote: {"checksums": {tensor:
                                    64 hex digits of SHA-256}, "train_length": tokens, ...}

What an index names is read only if the folder lists it. A file of the folder may be a link to
elsewhere, as in the hub's cache, and is followed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import pathlib
import re
import shlex
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from nope.interop import safetensors
from nope.interop.safetensors import CheckpointFileError, Entry, shown

log = logging.getLogger(__name__)

CONFIGS = ('config.json', 'lit_config.json')
EXPORT = 'nope_export.json'
INDEX = 'model.safetensors.index.json'
SINGLE = 'model.safetensors'
MAX_CONFIG_BYTES = 16 << 20
MAX_INDEX_BYTES = 64 << 20

_PICKLES = ('.bin', '.pth', '.pt', '.ckpt')
_PAGE = 4096
_PAGES = 16


@dataclasses.dataclass(frozen=True)
class Located:
    """A tensor and the file that holds it."""

    file: pathlib.Path
    entry: Entry


@dataclasses.dataclass(frozen=True)
class Directory:
    """An opened folder: headers were read and checked, no tensor was.

    config: the config file's object. tensors: by name. checksums: `safetensors.digest` by name,
    and train_length, which an extended model's config no longer says: empty and None unless this
    library wrote the folder.
    """

    path: pathlib.Path
    config: Mapping[str, Any]
    tensors: Mapping[str, Located]
    checksums: Mapping[str, str]
    train_length: int | None = None

    def read(self, name: str) -> np.ndarray:
        """The values of one tensor: float32, bfloat16 or float16, of its entry's shape.

        CheckpointFileError where there is no such tensor, it has another dtype, its bytes are
        not those that its checksum was made of, or a value is not finite.
        """
        if name not in self.tensors:
            raise CheckpointFileError(
                f'{self.path}: no tensor {shown(name)} among its {len(self.tensors)}'
            )
        file, entry = self.tensors[name].file, self.tensors[name].entry
        array = safetensors.read(file, entry)
        if name in self.checksums and safetensors.digest(array) != self.checksums[name]:
            raise CheckpointFileError(
                f'{file}: tensor {shown(name)} is not what {EXPORT} has the checksum of: damaged, '
                'or written since by another program'
            )
        safetensors.check_finite(name, array, file)
        return array


def open_directory(path: pathlib.Path) -> Directory:
    """Reads the config, the index and every header of a folder, and checks them.

    CheckpointFileError, naming the file and what is accepted, where the folder cannot be read,
    lacks a config or weights, or has weights as pickles only; where the index and the files
    disagree, or it names anything but a file of the folder; where a file is damaged.
    """
    names = _listing(path)
    config = _read_config(path, names)
    # As `transformers`: one whole file is read even beside the index of an earlier save in parts.
    indexed = INDEX in names and SINGLE not in names
    tensors = _indexed(path, names) if indexed else _single(path, names)
    if EXPORT not in names:
        return Directory(path, config, tensors, {})
    export = _read_object(path / EXPORT, MAX_INDEX_BYTES)
    checksums = _checksums(export, path / EXPORT, tensors)
    return Directory(path, config, tensors, checksums, _train_length(export, path / EXPORT))


def fingerprint(directory: Directory) -> str:
    """16 hex digits that say which model this is: the identity of whatever is made from it.

    A SHA-256 over the config and, of every tensor, its name, dtype, shape and up to 16 evenly
    spaced pages of 4,096 bytes: a second's work where reading all bytes takes minutes. That is
    enough to tell models apart, since training, merging, scaling and casting change values all
    over a tensor. It is no guard against damage or malice, for an edit between the pages goes
    unseen; `checksums` find damage. CheckpointFileError where a file has become shorter or
    cannot be read.
    """
    total = hashlib.sha256(_canonical(directory.config))
    for name, located in sorted(directory.tensors.items()):
        entry = located.entry
        total.update(_canonical([name, entry.code, entry.shape]))
        for start, stop in _pages(entry.start, entry.stop):
            total.update(safetensors.read_bytes(located.file, entry, start, stop))
    return total.hexdigest()[:16]


def _listing(path: pathlib.Path) -> frozenset[str]:
    try:
        return frozenset(os.listdir(path))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CheckpointFileError(
            f'{path}: not a folder that can be read: {reason}; accepted is a folder on this '
            f'machine with {CONFIGS[0]} and {SINGLE} or {INDEX}; nothing is downloaded from a hub'
        ) from error


def _read_object(path: pathlib.Path, most: int) -> dict[str, Any]:
    with safetensors.open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise CheckpointFileError(f'{path}: {size} bytes; accepted are at most {most}')
        return safetensors.json_object(file.read(size), str(path))


def _read_config(path: pathlib.Path, names: Collection[str]) -> dict[str, Any]:
    for name in CONFIGS:
        if name in names:
            return _read_object(path / name, MAX_CONFIG_BYTES)
    raise CheckpointFileError(f'{path}: no config in it; accepted is {" or ".join(CONFIGS)}')


def _checksums(
    export: Mapping[str, Any], file: pathlib.Path, tensors: Collection[str]
) -> dict[str, str]:
    checksums = export.get('checksums')
    if not isinstance(checksums, dict):
        raise CheckpointFileError(
            f'{file}: checksums is {shown(checksums)}; accepted is an object of tensor: checksum'
        )
    for name, value in checksums.items():
        if not isinstance(value, str) or not re.fullmatch('[0-9a-f]{64}', value):
            raise CheckpointFileError(
                f'{file}: the checksum of tensor {shown(name)} is {shown(value)}; accepted are 64 '
                'hex digits of SHA-256'
            )
        if name not in tensors:
            raise CheckpointFileError(
                f'{file}: it has a checksum of tensor {shown(name)}, which no file beside it holds'
            )
    lacking = [name for name in tensors if name not in checksums]
    if lacking:
        raise CheckpointFileError(
            f'{file}: it has no checksum of tensor {shown(lacking[0])}; accepted is one of each of '
            f'{len(tensors)} tensors'
        )
    return checksums


def _train_length(export: Mapping[str, Any], file: pathlib.Path) -> int | None:
    value = export.get('train_length')
    if value is not None and (type(value) is not int or value < 1):
        raise CheckpointFileError(
            f'{file}: train_length is {shown(value)}; accepted is null or a number above 0'
        )
    return value


def _single(path: pathlib.Path, names: Collection[str]) -> dict[str, Located]:
    found = sorted(name for name in names if name.endswith('.safetensors'))
    if SINGLE in found:
        found = [SINGLE]
    if len(found) > 1:
        raise CheckpointFileError(
            f'{path}: {len(found)} files of tensors and no {INDEX} that says which has what: '
            f'{shown(found)}; accepted is that index, or one file'
        )
    if not found:
        raise CheckpointFileError(f'{path}: {_why_nothing(path, names)}')
    return _located(path / found[0])


def _located(file: pathlib.Path) -> dict[str, Located]:
    entries = safetensors.read_header(file).entries
    return {name: Located(file, entry) for name, entry in entries.items()}


def _why_nothing(path: pathlib.Path, names: Collection[str]) -> str:
    pickles = sorted(name for name in names if name.endswith(_PICKLES))
    if not pickles:
        return f'no weights in it; accepted are {SINGLE}, {INDEX} or one other *.safetensors'
    return (
        f'it holds pickle files ({shown(pickles[0])}), which can run code when they are read; '
        f'convert them where you trust them: {_conversion(path, pickles[0])}'
    )


def _conversion(path: pathlib.Path, pickle: str) -> str:
    """One line of shell that makes safetensors of a pickle: of a whole model in the hub's layout
    into a folder beside it, of a lone dictionary of tensors into its own folder."""
    if pickle.endswith('.bin'):
        code = (
            'import sys; from transformers import AutoModelForCausalLM as M; '
            'M.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[2])'
        )
        arguments = [str(path), f'{path}-safetensors']
    else:
        code = (
            'import sys, torch; from safetensors.torch import save_file; '
            "s = torch.load(sys.argv[1], map_location='cpu', weights_only=True); "
            "s = s.get('model', s); "
            'save_file({k: v.clone().contiguous() for k, v in s.items()}, sys.argv[2])'
        )
        arguments = [str(path / pickle), str(path / SINGLE)]
    return f'python -c "{code}" {shlex.join(arguments)}'


def _indexed(path: pathlib.Path, names: Collection[str]) -> dict[str, Located]:
    index = path / INDEX
    weight_map = _read_weight_map(index, names)
    tensors: dict[str, Located] = {}
    for file_name in dict.fromkeys(weight_map.values()):
        file = path / file_name
        for name, located in _located(file).items():
            if name in tensors:
                raise CheckpointFileError(
                    f'{file}: tensor {shown(name)} is in {tensors[name].file.name} too'
                )
            tensors[name] = located
        surplus = tensors.keys() - weight_map.keys()
        if surplus:
            log.warning(
                '%s: %s lacks %d of its tensors, which are not read, as %s',
                *(file, INDEX, len(surplus), shown(min(surplus))),
            )
        tensors = {name: located for name, located in tensors.items() if name in weight_map}
    for name, file_name in weight_map.items():
        if name not in tensors or tensors[name].file.name != file_name:
            raise CheckpointFileError(
                f'{index}: tensor {shown(name)} is to be in {shown(file_name)}, which does not '
                'hold it'
            )
    return tensors


def _read_weight_map(index: pathlib.Path, names: Collection[str]) -> dict[str, str]:
    weight_map = _read_object(index, MAX_INDEX_BYTES).get('weight_map')
    if not isinstance(weight_map, dict):
        raise CheckpointFileError(
            f'{index}: weight_map is {shown(weight_map)}; accepted is an object of tensor: file'
        )
    for name, file_name in weight_map.items():
        where = f'{index}: tensor {shown(name)} is to be in {shown(file_name)}'
        if not _is_plain(file_name):
            raise CheckpointFileError(
                f'{where}; accepted is the plain name of a .safetensors file beside the index'
            )
        if file_name not in names:
            raise CheckpointFileError(f'{where}, and there is no such file beside the index')
    return weight_map


def _is_plain(name: object) -> bool:
    """Whether it names a .safetensors file in whatever folder it is looked up in."""
    return (
        isinstance(name, str)
        and name.endswith('.safetensors')
        and os.path.basename(name) == name
        and not set(name) & {'/', '\\', '\0'}
    )


def _pages(start: int, stop: int) -> list[tuple[int, int]]:
    """Up to `_PAGES` evenly spaced ranges of `_PAGE` bytes, the first and the last ones among
    them; the whole where it has no more bytes than that."""
    if stop - start <= _PAGE * _PAGES:
        return [(start, stop)]
    room = stop - start - _PAGE
    begins = [start + room * page // (_PAGES - 1) for page in range(_PAGES)]
    return [(begin, begin + _PAGE) for begin in begins]


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(',', ':')).encode()
