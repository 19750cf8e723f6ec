"""Generation: prompts in, continuations out, with a cache of keys and values."""

from nope.model.decoding.beams import BeamSearch
from nope.model.decoding.choose import Sampling
from nope.model.decoding.reading import next_logits, read, unstack
from nope.model.decoding.steps import Stops

__all__ = ['BeamSearch', 'Sampling', 'Stops', 'next_logits', 'read', 'unstack']
