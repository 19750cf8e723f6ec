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
import shlex
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from nope.interop import safetensors
from nope.interop.mapping import LAM_TENSOR
from nope.interop.safetensors import CheckpointFileError, Entry, shown

log = logging.getLogger(__name__)

CONFIGS = ('config.json', 'lit_config.json')
EXPORT = 'nope_export.json'
INDEX = 'model.safetensors.index.json'
SINGLE = 'model.safetensors'
MAX_CONFIG_BYTES = 16 << 20
MAX_INDEX_BYTES = 64 << 20

_PICKLES = ('.bin', '.pth', '.pt', '.ckpt')
_PAGE = 512
_PAGES = 128


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

    @property
    def brings_lambda(self) -> bool:
        """Whether it has tensors of multipliers, which stock leaves unread."""
        return any(name.endswith(f'.{LAM_TENSOR}') for name in self.tensors)

    def read(self, name: str) -> np.ndarray:
        """The values of one tensor: float32, bfloat16 or float16, of its entry's shape.

        CheckpointFileError where it has another dtype, its bytes are not those that its checksum
        was made of, or a value is not finite.
        """
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

    CheckpointFileError names the file and what is accepted. It is raised for a folder without a
    readable config or weights, for pickles, for an index that disagrees with the files or leads
    outside the folder, and for damage.
    """
    try:
        names = frozenset(os.listdir(path))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CheckpointFileError(
            f'{path}: not a folder that can be read: {reason}; accepted is a folder on this '
            f'machine with {CONFIGS[0]} and {SINGLE} or {INDEX}; nothing is downloaded from a hub'
        ) from error
    name = next((name for name in CONFIGS if name in names), None)
    if name is None:
        raise CheckpointFileError(f'{path}: no config in it; accepted is {" or ".join(CONFIGS)}')
    config = _read_object(path / name, MAX_CONFIG_BYTES)
    # As `transformers`: one whole file is read even beside the index of an earlier save in parts.
    indexed = INDEX in names and SINGLE not in names
    file = INDEX if indexed else _single(path, names)
    asked = config.get('transformers_weights')
    if asked not in (None, file):
        raise CheckpointFileError(
            f'{path / name}: transformers_weights is {shown(asked)}; accepted is {file}, which is '
            'read, or null'
        )
    tensors = _indexed(path, names) if indexed else _located(path / file)
    if EXPORT not in names:
        return Directory(path, config, tensors, {})
    export = _read_object(path / EXPORT, MAX_INDEX_BYTES)
    checksums = export.get('checksums')
    if not isinstance(checksums, dict) or checksums.keys() != tensors.keys():
        raise CheckpointFileError(
            f'{path / EXPORT}: checksums is {shown(checksums)}; accepted is an object with one of '
            f'each of the {len(tensors)} tensors'
        )
    length = export.get('train_length')
    if length is not None and (type(length) is not int or length < 1):
        raise CheckpointFileError(
            f'{path / EXPORT}: train_length is {shown(length)}; accepted is an integer from 1, or '
            'null'
        )
    return Directory(path, config, tensors, checksums, length)


def fingerprint(directory: Directory) -> str:
    """16 hex digits that say which model this is: the identity of whatever is made from it.

    A SHA-256 over the config and, of every tensor, its name, dtype, shape and up to 128 evenly
    spaced pages of 512 bytes: seconds where reading all bytes takes minutes. That is enough to tell
    models apart: training, merging and casting change values all over a tensor, and of every head
    some page is read. It is no guard against damage or malice, for an edit between the pages goes
    unseen; `checksums` find damage. CheckpointFileError where a file has become shorter or cannot
    be read.
    """
    total = hashlib.sha256(_canonical(directory.config))
    for name, located in sorted(directory.tensors.items()):
        entry = located.entry
        total.update(_canonical([name, entry.code, entry.shape]))
        spans = [(entry.start, entry.stop)]
        if (room := entry.stop - entry.start - _PAGE) > _PAGE * (_PAGES - 1):
            begins = [entry.start + room * page // (_PAGES - 1) for page in range(_PAGES)]
            spans = [(begin, begin + _PAGE) for begin in begins]
        for start, stop in spans:
            total.update(safetensors.read_bytes(located.file, entry, start, stop))
    return total.hexdigest()[:16]


def _read_object(path: pathlib.Path, most: int) -> dict[str, Any]:
    with safetensors.open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise CheckpointFileError(f'{path}: {size} bytes; accepted are at most {most}')
        return safetensors.json_object(file.read(size), str(path))


def _single(path: pathlib.Path, names: Collection[str]) -> str:
    """Name of the one file of weights."""
    found = sorted(name for name in names if name.endswith('.safetensors'))
    if SINGLE in found:
        return SINGLE
    if len(found) > 1:
        raise CheckpointFileError(
            f'{path}: {len(found)} files of tensors and no {INDEX} that says which has what: '
            f'{shown(found)}; accepted is that index, or one file'
        )
    if not found:
        accepted = f'accepted are {SINGLE}, {INDEX} or one other *.safetensors'
        for name in sorted(names):
            if name.endswith(_PICKLES):
                raise CheckpointFileError(
                    f'{path}: it holds pickle files ({shown(name)}), which can run code when they '
                    f'are read; convert those you trust: {_conversion(path, name)}'
                )
        raise CheckpointFileError(f'{path}: no weights in it; {accepted}')
    return found[0]


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


def _located(file: pathlib.Path) -> dict[str, Located]:
    return {name: Located(file, entry) for name, entry in safetensors.read_header(file).items()}


def _indexed(path: pathlib.Path, names: Collection[str]) -> dict[str, Located]:
    index = path / INDEX
    weight_map = _read_object(index, MAX_INDEX_BYTES).get('weight_map')
    if not isinstance(weight_map, dict):
        raise CheckpointFileError(
            f'{index}: weight_map is {shown(weight_map)}; accepted is an object of tensor: file'
        )
    for name, file_name in weight_map.items():
        # A name that the folder lists has no path in it, and so leads nowhere else.
        listed = isinstance(file_name, str) and file_name in names
        if not listed or not file_name.endswith('.safetensors'):
            raise CheckpointFileError(
                f'{index}: tensor {shown(name)} is to be in {shown(file_name)}; accepted is the '
                'name of a .safetensors file beside the index'
            )
    tensors: dict[str, Located] = {}
    for file_name in dict.fromkeys(weight_map.values()):
        file, found = path / file_name, _located(path / file_name)
        if twice := sorted(found.keys() & tensors.keys()):
            raise CheckpointFileError(
                f'{file}: tensor {shown(twice[0])} is in {tensors[twice[0]].file.name} too'
            )
        if surplus := found.keys() - weight_map.keys():
            log.warning(
                '%s: %s lacks %d of its tensors, which are not read, as %s',
                *(file, INDEX, len(surplus), shown(min(surplus))),
            )
        tensors |= {name: found[name] for name in found if name in weight_map}
    for name, file_name in weight_map.items():
        if name not in tensors or tensors[name].file.name != file_name:
            raise CheckpointFileError(
                f'{index}: tensor {shown(name)} is to be in {shown(file_name)}, which does not '
                'hold it'
            )
    return tensors


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(',', ':')).encode()
