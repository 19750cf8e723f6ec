"""A tokenizer of whole words, for tests."""

from __future__ import annotations

import pathlib

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
