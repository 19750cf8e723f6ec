"""Data of a run: text through `DataConfig`, or one synthetic task through `TaskData`."""

from __future__ import annotations

from typing import Any

from nope.data import config as text
from nope.data.config import DataConfig
from nope.data.tasks.config import TaskData
from nope.data.tokenizers import Tokenizer, load_tokenizer

RunData = DataConfig | TaskData


def identity(data: RunData) -> dict[str, Any]:
    """Identity of a run's data, for the run's content hash, without paths and times: see
    `nope.data.config.identity` and `TaskData.identity`."""
    return data.identity() if isinstance(data, TaskData) else text.identity(data)


def describe(data: RunData) -> str:
    """The data in a few words: 'Python standard library sources, bytes'."""
    return data.describe() if isinstance(data, TaskData) else text.describe(data)


def tokenizer_of(data: RunData) -> Tokenizer:
    """The tokenizer that a run reads its data through."""
    return data.load_tokenizer() if isinstance(data, TaskData) else load_tokenizer(data.tokenizer)
