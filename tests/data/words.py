"""Small tokenizers, for tests."""

from __future__ import annotations

import io
import pathlib
from collections.abc import Iterable
from typing import Any

import tokenizers

from nope.data import Tokenizer, load_tokenizer


def words(folder: pathlib.Path, *names: str) -> Tokenizer:
    """Of words and special tokens (`<s>`), which begins what it decodes without a blank; its
    tokenizer.json is left in the folder."""
    model = tokenizers.models.WordLevel({name: i for i, name in enumerate(names)}, names[0])
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    made.decoder = tokenizers.decoders.Metaspace()
    made.add_special_tokens([name for name in names if name.startswith('<')])
    made.save(str(folder / 'tokenizer.json'))
    return load_tokenizer(str(folder / 'tokenizer.json'))


def sentencepieces(lines: Iterable[str], **options: Any) -> bytes:
    """Bytes of a SentencePiece model that is trained on lines; of pairs unless options say else."""
    import sentencepiece

    stream = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=stream,
        **{'model_type': 'bpe', 'minloglevel': 2, **options},
    )
    return stream.getvalue()
