"""Documents to batches: sources, tokenizers, token shards, training and evaluation blocks."""

from nope.data.config import DataConfig, SourceConfig
from nope.data.evaluation import EvalBlocks, eval_blocks
from nope.data.pipeline import training_batches
from nope.data.sources import describe, identity
from nope.data.tokenizers import Tokenizer, load_tokenizer

__all__ = [
    'DataConfig',
    'EvalBlocks',
    'SourceConfig',
    'Tokenizer',
    'describe',
    'eval_blocks',
    'identity',
    'load_tokenizer',
    'training_batches',
]
