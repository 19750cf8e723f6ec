"""Phi3ForCausalLM (Phi-3, Phi-3.5, Phi-4 and its mini): LongRoPE, heads of which a share turns, one
matrix for queries, keys and values.

    "original_max_position_embeddings": 4096,
    "rope_scaling": {"type": "longrope" or "su", "short_factor": [...], "long_factor": [...]}

The length of pre-training stands outside the settings, and is 4096 where it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from nope.interop import rope_settings
from nope.interop.families.decoder import Decoder, Defaults
from nope.interop.families.mistral import OneWindow
from nope.interop.fields import MAX_LENGTH, Fields
from nope.interop.rope_settings import ORIGINAL
from nope.model import ModelConfig
from nope.positions import NTK, LongRoPE, RoPE, Unscaled


class _Phi3(Decoder):
    def _read_rope(self, fields: Fields, shape: Mapping[str, int]) -> RoPE:
        given = fields.section(fields.agreed('rope_scaling', 'rope_parameters'))
        key = given.agreed('rope_type', 'type')
        kind = given.text(key, ('default', 'longrope', 'su'), 'default')
        original = fields.integer(ORIGINAL, MAX_LENGTH, 4096)
        given.only(ORIGINAL, original, why=f'{self.architecture} takes what it is outside')
        plain = {k: v for k, v in given.values.items() if k not in (ORIGINAL, 'type')}
        plain['rope_type'] = 'longrope' if kind == 'su' else kind
        if kind != 'default':
            plain[ORIGINAL] = original
        settings, longest = Fields(plain, given.where), self.defaults.longest
        return rope_settings.read(
            fields, longest=longest, settings=settings, head_dim=shape['head_dim']
        )

    def _unwritable_rope(self, config: ModelConfig, rope: RoPE) -> str | None:
        if rope.share < 1 or not isinstance(rope.scaling, Unscaled | NTK | LongRoPE):
            return f'its layers have {rope.describe()}, not plain RoPE or LongRoPE'
        if isinstance(rope.scaling, LongRoPE) and config.head_dim != config.width // config.heads:
            return f'head_dim is {config.head_dim}, by which stock does not count the factors'
        return rope_settings.unwritable(rope, config.head_dim, partial=True)


PHI3 = _Phi3(
    name='phi3',
    architecture='Phi3ForCausalLM',
    defaults=Defaults(
        longest=4096,
        epsilon=1e-5,
        tokens={'bos_token_id': 1, 'eos_token_id': 32_000, 'pad_token_id': 32_000},
    ),
    layers=OneWindow(default=None),
    joined=True,
    # What published files say besides, which stock does not look at.
    notes={'lm_head_bias': (False,), 'full_attn_mod': (1,), 'interpolate_factor': (1,)},
)
