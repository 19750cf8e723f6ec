"""Documents to batches: sources, tokenizers, token shards, training and evaluation blocks."""

from nope.data.batch import Batch
from nope.data.config import DataConfig, describe, from_section, identity
from nope.data.evaluation import EvalBlocks, eval_blocks
from nope.data.pipeline import training_batches
from nope.data.splits import SPLITS
from nope.data.tokenizers import Tokenizer, encode_with_bos, load_tokenizer

__all__ = [
    'SPLITS',
    'Batch',
    'DataConfig',
    'EvalBlocks',
    'Tokenizer',
    'describe',
    'encode_with_bos',
    'eval_blocks',
    'from_section',
    'identity',
    'load_tokenizer',
    'training_batches',
]
