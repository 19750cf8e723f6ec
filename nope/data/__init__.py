"""Documents to batches: sources, tokenizers, token shards, training and evaluation blocks."""

from nope.data.batch import Batch
from nope.data.config import DataConfig, RunData, describe, from_section, identity, tokenizer_of
from nope.data.continuation import Continuation
from nope.data.evaluation import EvalBlocks, eval_blocks
from nope.data.pipeline import training_batches
from nope.data.prefix import encode_with_bos, prefix_of
from nope.data.splits import SPLITS
from nope.data.stores import stored_tokens
from nope.data.tasks.config import TaskData
from nope.data.tokenizers import Tokenizer, ids_in_use, load_tokenizer, spells_special, split_stops

__all__ = [
    'SPLITS',
    'Batch',
    'Continuation',
    'DataConfig',
    'EvalBlocks',
    'RunData',
    'TaskData',
    'Tokenizer',
    'describe',
    'encode_with_bos',
    'eval_blocks',
    'from_section',
    'identity',
    'ids_in_use',
    'load_tokenizer',
    'prefix_of',
    'spells_special',
    'split_stops',
    'stored_tokens',
    'tokenizer_of',
    'training_batches',
]
