"""Documents to batches: sources, tokenizers, token shards, training and evaluation blocks."""

from nope.data.batch import Batch
from nope.data.config import DataConfig, from_section
from nope.data.continuation import Continuation
from nope.data.evaluation import EvalBlocks, eval_blocks
from nope.data.pipeline import training_batches
from nope.data.run_data import RunData, describe, identity, tokenizer_of
from nope.data.splits import SPLITS
from nope.data.stores import stored_tokens
from nope.data.tasks.config import TaskData
from nope.data.tokenizers import (
    Tokenizer,
    begins_with_bos,
    encode_with_bos,
    ids_in_use,
    load_tokenizer,
    spells_special,
    takes_bos,
)

__all__ = [
    'SPLITS',
    'Batch',
    'Continuation',
    'DataConfig',
    'EvalBlocks',
    'RunData',
    'TaskData',
    'Tokenizer',
    'begins_with_bos',
    'describe',
    'encode_with_bos',
    'eval_blocks',
    'from_section',
    'identity',
    'ids_in_use',
    'load_tokenizer',
    'spells_special',
    'stored_tokens',
    'takes_bos',
    'tokenizer_of',
    'training_batches',
]
