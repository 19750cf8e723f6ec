"""Families of checkpoints: one small file and one `Family` each.

A new one is a file here and an entry in `FAMILIES`. They are asked in order: lit-gpt's, known by
its tensors alone, first; of those that can write a model the plainest before the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nope.interop.families.base import Described, Family, Ignored
from nope.interop.families.bloom import BLOOM
from nope.interop.families.cohere2 import COHERE2
from nope.interop.families.exaone4 import EXAONE4
from nope.interop.families.gemma3 import GEMMA3
from nope.interop.families.gemma4 import GEMMA4, GEMMA4_UNIFIED
from nope.interop.families.granite import GRANITE
from nope.interop.families.granite_swa import GRANITE_SWA
from nope.interop.families.granitemoehybrid import GRANITE_HYBRID
from nope.interop.families.inside import Inside
from nope.interop.families.litgpt import LITGPT
from nope.interop.families.llama import LLAMA
from nope.interop.families.ministral3 import MINISTRAL3
from nope.interop.families.mistral import MISTRAL
from nope.interop.families.mpt import MPT
from nope.interop.families.muse_glimmer import MUSE_GLIMMER
from nope.interop.families.nemotron_h import NEMOTRON_H
from nope.interop.families.olmo2 import OLMO2
from nope.interop.families.olmo3 import OLMO3
from nope.interop.families.phi3 import PHI3
from nope.interop.families.qwen2 import QWEN2
from nope.interop.families.qwen3 import QWEN3
from nope.interop.families.smollm3 import SMOLLM3
from nope.interop.safetensors import shown
from nope.model import ModelConfig

FAMILIES: tuple[Family, ...] = (
    *(LITGPT, LLAMA, MISTRAL, QWEN2, QWEN3, SMOLLM3, COHERE2),
    *(OLMO2, OLMO3, EXAONE4, MINISTRAL3, GEMMA3, GEMMA4, GEMMA4_UNIFIED, PHI3),
    *(GRANITE, GRANITE_SWA, BLOOM, MPT, NEMOTRON_H, GRANITE_HYBRID),
    Inside('gemma3', 'Gemma3ForConditionalGeneration', GEMMA3),
    Inside('gemma4', 'Gemma4ForConditionalGeneration', GEMMA4),
    Inside('gemma4_unified', 'Gemma4UnifiedForConditionalGeneration', GEMMA4_UNIFIED),
    # Its class of stock leaves `logit_scale` out, which its text model and engines have, and ours.
    Inside('cohere2_vision', 'Cohere2VisionForConditionalGeneration', COHERE2),
    Inside('exaone4_5', 'Exaone4_5_ForConditionalGeneration', EXAONE4, 'exaone4_5_text'),
    Inside('muse_glimmer', 'MuseGlimmerForConditionalGeneration', MUSE_GLIMMER),
    Inside('mistral3', 'Mistral3ForConditionalGeneration', MISTRAL),
    Inside('mistral3', 'Mistral3ForConditionalGeneration', MINISTRAL3),
)

__all__ = ['FAMILIES', 'Described', 'Family', 'Ignored', 'family_of', 'writer_of']


def family_of(config: Mapping[str, Any], names: frozenset[str]) -> Family:
    """The family of a directory with this config.json and these tensors; ValueError for none."""
    for family in FAMILIES:
        if family.owns(config, names):
            return family
    found = {key: config.get(key) for key in ('model_type', 'architectures')}
    inner = config.get('text_config')
    text = ''
    if isinstance(inner, dict):
        text = f', text_config.model_type {shown(inner.get("model_type"))}'
    raise ValueError(
        f'config.json: model_type is {shown(found["model_type"])} and architectures '
        f'{shown(found["architectures"])}{text}; accepted: {", ".join(f.name for f in FAMILIES)}'
    )


def writer_of(model: ModelConfig) -> Family:
    """The first family that can write the model; ValueError with the reason of each."""
    reasons = []
    for family in FAMILIES:
        reason = family.unwritable(model)
        if reason is None:
            return family
        reasons.append(f'{family.name}: {reason}')
    raise ValueError('no family of checkpoints can hold this model; ' + '; '.join(reasons))
