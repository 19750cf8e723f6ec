"""Generation: prompts in, continuations out, with a cache of keys and values."""

from nope.model.decoding.beams import BeamSearch
from nope.model.decoding.choose import Sampling
from nope.model.decoding.prompt import next_logits, read
from nope.model.decoding.steps import Stops
from nope.model.decoding.weights import unstack

__all__ = ['BeamSearch', 'Sampling', 'Stops', 'next_logits', 'read', 'unstack']
