"""Tokens of a source, prepared on first use."""

from __future__ import annotations

import logging
import pathlib

from nope.data import digest, prepare, shards
from nope.data.config import DataConfig
from nope.data.sources import Source
from nope.data.tokenizers import Tokenizer, load_tokenizer

_log = logging.getLogger(__name__)


def open_store(
    config: DataConfig, index: int, split: str, cache: pathlib.Path, *, alone: bool = False
) -> shards.TokenStore:
    """The tokens of one split of `config.sources[index]`.

    The first process that asks tokenises a raw source into `cache`, under a digest of its content
    and of the tokenizer. Later ones read it there. `nope prepare` does the same for a large corpus
    with many processes. alone: tokenises this split only, unless all are there. Raises
    ValueError or FileNotFoundError naming the field at fault, also for a split without documents
    and for shards of another tokenizer.
    """
    source = config.sources[index]
    tokenizer = load_tokenizer(config.tokenizer)
    prepared = source.prepared()
    if prepared is not None:
        folder = prepared
        metadata = shards.read_metadata(source.name(), folder)
        found = (metadata['tokenizer'], metadata['vocab_size'])
        if found != (tokenizer.fingerprint, tokenizer.vocab_size):
            raise ValueError(
                f'{source.name()}: the shards in {folder} were made with another tokenizer '
                f'(vocabulary {found[1]}, fingerprint {found[0]}) than '
                f'data.tokenizer={config.tokenizer!r} (vocabulary {tokenizer.vocab_size}, '
                f'fingerprint {tokenizer.fingerprint})'
            )
    else:
        folder = _folder(source, tokenizer, cache)
        alone = alone and not (folder / 'metadata.json').is_file()
        if alone:
            folder = folder.with_name(f'{folder.name}-{split}')
        if not (folder / 'metadata.json').is_file():
            _log.info('tokenising %s into %s', source.describe(), folder)
            prepare.prepare(
                source, config.tokenizer, folder, cache=cache, split=split if alone else None
            )
        metadata = shards.read_metadata(source.name(), folder)
    store = shards.TokenStore(folder, split, metadata)
    if store.documents == 0:
        raise ValueError(
            f'{source.name()}: its {split} split has no documents; measure another split, or give '
            'a larger corpus, or one with folders or files named train, validation and test'
        )
    return store


def stored_tokens(config: DataConfig, cache: pathlib.Path) -> int | None:
    """Tokens to train on of the one source, once `open_store` has tokenised all of it. None before,
    and for a mixture: its sources are read at their own weights."""
    if len(config.sources) > 1:
        return None
    (source,) = config.sources
    folder = source.prepared() or _folder(source, load_tokenizer(config.tokenizer), cache)
    if not (folder / 'metadata.json').is_file():
        return None
    return shards.TokenStore(folder, 'train', shards.read_metadata(source.name(), folder)).tokens


def _folder(source: Source, tokenizer: Tokenizer, cache: pathlib.Path) -> pathlib.Path:
    content = [source.identity(), tokenizer.fingerprint, shards.VERSION]
    return cache / 'tokens' / f'{source.kind}-{digest.of_json(content)}'
