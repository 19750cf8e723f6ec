"""Text models inside models of images and text, such as Gemma3ForConditionalGeneration.

    config.json     {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", ...}, ...}
    tensors         language_model.model.layers.0.self_attn.q_proj.weight, language_model.lm_head...
                    or, of newer files, model.language_model.layers.0..., lm_head.weight

Without an image such a model computes what its text model does. Its encoders of images and sound
and the projections from them are left out.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from nope.interop.families import common
from nope.interop.families.base import Described, Family, Ignored
from nope.interop.fields import WHERE, Fields
from nope.interop.mapping import Tensor
from nope.model import ModelConfig

_TEXT = 'text_config'
_TIED = 'tie_word_embeddings'
# What the whole model says for its text model too, where that says nothing itself: names of one
# thing stand together.
_ABOVE = (('dtype', 'torch_dtype'), ('bos_token_id',), ('eos_token_id',), ('pad_token_id',))

_LAYERS = re.compile(r'(model\.)?language_model\.(model\.)?(?!lm_head\.)')
_HEAD = re.compile(r'language_model\.(?=lm_head\.)')
_IMAGES = Ignored(
    re.compile(
        r'(model\.)?(vision_(tower|adapter|projection|embedder)|visual|multi_modal_projector|audio_tower|'
        r'embed_(vision|audio))\..+'
    ),
    'for images and sound; the text model alone is read',
)


@dataclasses.dataclass(eq=False)
class Inside:
    """A `nope.interop.families.base.Family`: models of `text` in the files of another class.

    outer: the `model_type` of the files. architecture: their class of stock `transformers`. text:
    the family of the text model, whose name is the `model_type` in `text_config`; `older` may
    stand there too.
    """

    outer: str
    architecture: str
    text: Family
    older: str | None = None
    name: str = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.name = f'{self.outer} with {self.text.name}'

    def owns(self, config: Mapping[str, Any], names: frozenset[str]) -> bool:
        inner = config.get(_TEXT)
        return (
            common.is_type(config, self.outer, self.architecture)
            and isinstance(inner, dict)
            and inner.get('model_type') in (self.text.name, self.older or self.text.name)
        )

    def read_config(self, config: Mapping[str, Any], names: frozenset[str]) -> Described:
        common.check_plain(Fields(config))
        inner = dict(config[_TEXT])
        for keys in _ABOVE:
            if all(inner.get(key) is None for key in keys):
                inner |= {key: config[key] for key in keys if key in config}
        plain = frozenset(_plain_names(names))
        # The head is the whole model's. Stock saves models whose head it found to be another matrix
        # than the embedding as tied outside and not inside.
        apart = inner.get(_TIED) is False and 'lm_head.weight' in plain
        if config.get(_TIED) is not None and not apart:
            inner[_TIED] = config[_TIED]
        try:
            return self.text.read_config(inner, plain)
        except ValueError as error:
            raise ValueError(str(error).replace(WHERE, f'{WHERE}{_TEXT}.', 1)) from error

    def tensors(self, config: ModelConfig, names: frozenset[str]) -> list[Tensor]:
        given = _plain_names(names)
        found = self.text.tensors(config, frozenset(given))
        return [
            dataclasses.replace(
                tensor, name=given.get(tensor.name, f'language_model.{tensor.name}')
            )
            for tensor in found
        ]

    def ignored(self, config: ModelConfig) -> tuple[Ignored, ...]:
        inner = (
            Ignored(
                re.compile(rf'(model\.)?(language_model\.)?{rule.pattern.pattern}'), rule.reason
            )
            for rule in self.text.ignored(config)
        )
        return (_IMAGES, common.FURTHER, *inner)

    def unwritable(self, config: ModelConfig) -> str | None:
        return 'models of images and text are only read'

    def write_config(self, config: ModelConfig, described: Described) -> dict[str, Any]:
        raise ValueError(f'{self.name}: {self.unwritable(config)}')


def _plain_names(names: frozenset[str]) -> dict[str, str]:
    """Names of the text model's tensors as they are in files of it alone -> names here."""
    found = {}
    for name in names:
        if _LAYERS.match(name):
            found[_LAYERS.sub('model.', name, count=1)] = name
        elif not _IMAGES.pattern.fullmatch(name):
            found[_HEAD.sub('', name)] = name
    return found
