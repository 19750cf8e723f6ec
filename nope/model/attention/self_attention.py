"""Self-attention of a block: projections, position encoding, lambda, and how far it sees."""

from __future__ import annotations

import functools

import flax.linen as nn
import jax

from nope.model import lam
from nope.model.attention import projections
from nope.model.attention.attend import Heads, attend_as
from nope.model.attention.forget_gates import ForgetGates, forgotten
from nope.model.attention.output_gate import output_gates
from nope.model.attention.temperature import AdaptiveTemperature
from nope.model.cache import LayerCache
from nope.model.config import ModelConfig
from nope.model.dropout import head_keys
from nope.model.parameters import parameter
from nope.model.sequence import Sequence
from nope.model.shape import AskedStats, LayerStats


class SelfAttention(nn.Module):
    """Grouped-query self-attention; lambda multiplies the queries after the position encoding.

    keeps: whether the keys and values are returned where there is no cache, for later layers.
    """

    config: ModelConfig
    asked: AskedStats
    keeps: bool = False

    @nn.compact
    def __call__(
        self,
        x_BTD: jax.Array,
        multipliers_N: jax.Array,
        kind: int | jax.Array,
        sequence: Sequence,
        keys_B: jax.Array | None = None,
        cached: LayerCache | None = None,
        source: LayerCache | None = None,
    ) -> tuple[jax.Array, LayerStats, LayerCache | None]:
        """Returns the layer's output [B, T, D], what its attention says of itself, and the cache
        with these tokens in it, or None.

        multipliers_N: p_h, [N], [B, N] or [B, T, N], as `lam.scale_queries` takes them. kind: index
        of the layer's kind, an int if known. keys_B: typed keys of the layer's dropout, None for
        none. Earlier tokens left `cached`. A `source` replaces own keys and values by those of an
        earlier layer, these tokens' included.
        """
        c = self.config
        q_BTNH, k_BTKH, v_BTKH = projections.queries(self, c, x_BTD, kind), None, None
        if source is None:
            k_BTKH, v_BTKH = projections.keys_values(self, c, x_BTD, kind)
        sums_BTN = None
        if c.gate is not None:
            log_gates_BTN = ForgetGates(c, c.gate, name='forget')(x_BTD)
            mask = sequence.mask
            sums_BTN = forgotten(log_gates_BTN, cached, mask.offset, mask.q_segments_BT)
        if c.temperature == 'adaptive':
            adaptive = AdaptiveTemperature(c, name='temperature')
            factors_BTN = adaptive(x_BTD, sequence.positions_BT, kind)
            multipliers_N = lam.times(multipliers_N, factors_BTN)
        sinks_N = None
        if c.sinks:
            sinks_N = parameter(self, 'sinks', nn.initializers.zeros, (c.heads,), ('heads',))
        keys_BN = None
        if keys_B is not None and c.attention_dropout > 0:
            keys_BN = head_keys(keys_B, c.heads)
        heads = Heads(q_BTNH, k_BTKH, v_BTKH, multipliers_N, sums_BTN, sinks_N, keys_BN)
        operands = heads, sequence, cached, source
        ways = [functools.partial(attend_as, c, kind, self.asked, self.keeps) for kind in c.kinds]
        if len(ways) == 1 or isinstance(kind, int):
            way = ways[kind if isinstance(kind, int) else 0]
            seen_BTNH, stats, cached = way(*operands)
        else:
            seen_BTNH, stats, cached = jax.lax.switch(kind, ways, *operands)
        if c.output_gate != 'none':
            seen_BTNH *= output_gates(self, c, x_BTD)
        return projections.output(self, c, seen_BTNH), stats, cached
