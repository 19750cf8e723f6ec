"""Training of a tokenizer on a corpus: byte-level BPE, in the files of Hugging Face."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Iterator

import numpy as np

from nope.data.sources import Source
from nope.data.splits import SPLITS
from nope.data.tokenizers import Tokenizer, load_tokenizer
from nope.runtime import files, progress

BOS, EOS = '<s>', '</s>'
LEAST = 256 + 2  # every byte, BOS and EOS
MOST_BYTES = 2 << 30  # a pair is counted in 31 bits, and has a byte or more


def train(
    source: Source, out: pathlib.Path, *, vocab_size: int, cache: pathlib.Path, field: str
) -> Tokenizer:
    """Learns `vocab_size` entries from the training split and writes tokenizer.json and
    tokenizer_config.json into the folder `out`. Returns the tokenizer that they are.

    Every text has tokens, since every byte has one, and is decoded to itself. Words are split as
    GPT-2 splits them, and every digit stands alone, so that a key has the same tokens wherever it
    is written. Nothing is put before a text. The same corpus gives the same files.

    field: the name of vocab_size in messages. ValueError where it is below 258 or the corpus has
    not so many entries, or more than 2 GiB of text, whose pairs the library would miscount, and
    where `out` holds a tokenizer. Errors as `Source.list_parts`.
    """
    from tokenizers import Tokenizer as Library
    from tokenizers import decoders, models, pre_tokenizers, trainers

    if vocab_size < LEAST:
        raise ValueError(f'{field}={vocab_size}; accepted: {LEAST} or more, a token for each byte')
    path = out / 'tokenizer.json'
    for found in (path, path.with_name('tokenizer_config.json'), path.with_name('tokenizer.model')):
        if found.exists():
            raise ValueError(f'{found} is there already: choose another folder, or remove it')
    source.check_outside(out)
    library = Library(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.pre_tokenizer = pre_tokenizers.Sequence([digits, level])  # type: ignore[assignment]
    library.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[BOS, EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    texts = _texts(source, cache)
    first = next(texts, None)
    if first is None:
        raise ValueError(f'{source.describe()}: its train split has no text')
    library.train_from_iterator(itertools.chain([first], texts), trainer)
    if library.get_vocab_size() < vocab_size:
        raise ValueError(
            f'{field}={vocab_size}; accepted: up to {library.get_vocab_size()}, which is all that '
            f'the corpus has, {source.describe()}'
        )
    out.mkdir(parents=True, exist_ok=True)
    about = {
        'tokenizer_class': 'PreTrainedTokenizerFast',
        'bos_token': BOS,
        'eos_token': EOS,
        'clean_up_tokenization_spaces': False,
    }
    files.write_json(out / 'tokenizer_config.json', about)
    files.write_text(path, library.to_str(pretty=True))
    return load_tokenizer(str(path))


def _texts(source: Source, cache: pathlib.Path) -> Iterator[str]:
    parts = source.list_parts(cache)
    total = sum(part.size for part in parts)
    left = MOST_BYTES
    with progress.bar(total=total, desc='counting words', unit='B', unit_scale=True) as bar:
        for part in parts:
            for split, text in part.documents():
                if split == SPLITS[0] and not isinstance(text, np.ndarray):
                    left -= len(text)
                    if left < 0:
                        raise ValueError(
                            f'{source.describe()}: the train split has more than '
                            f'{MOST_BYTES >> 30} GiB of text; give a sample of it'
                        )
                    yield text.decode('utf-8', 'replace')
                bar.update(len(text))
