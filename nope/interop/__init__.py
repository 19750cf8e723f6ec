"""Import and export of Hugging Face directories."""

from nope.interop.describe import describe, ignored_tensors
from nope.interop.directory import EXPORT as EXPORT_FACTS
from nope.interop.directory import Directory, fingerprint, open_directory
from nope.interop.families.base import Described
from nope.interop.fold import fold
from nope.interop.load import load
from nope.interop.safetensors import CheckpointFileError
from nope.interop.save import Export, check_export, save
from nope.interop.tokenizer_files import tokenizer_in

__all__ = [
    'EXPORT_FACTS',
    'CheckpointFileError',
    'Described',
    'Directory',
    'Export',
    'check_export',
    'describe',
    'fingerprint',
    'fold',
    'ignored_tensors',
    'load',
    'open_directory',
    'save',
    'tokenizer_in',
]
