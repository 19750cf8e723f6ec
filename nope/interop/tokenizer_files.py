"""Tokenizer files of a Hugging Face directory."""

from __future__ import annotations

import pathlib

from nope.data.special_tokens import CONFIG, READ_AS_IT_IS
from nope.data.tokenizers import BYTE_VALUES, ByteTokenizer, Tokenizer
from nope.runtime.files import read_bytes, read_object, write_json

# What `transformers` may read beside the weights; the weights and their config are ours to write.
VOCABULARIES = ('tokenizer.json', 'tokenizer.model', 'vocab.json', 'merges.txt')
DECLARATIONS = (
    'tokenizer_config.json',
    'special_tokens_map.json',
    'added_tokens.json',
    'chat_template.jinja',
    'chat_template.json',
    'generation_config.json',
)
END, BEGIN = '</s>', '<s>'


def write_tokenizer(source: str, folder: pathlib.Path) -> None:
    """Copies the tokenizer files of a directory, or one file and the declarations beside it, or
    writes that of bytes.

    ValueError where `source` is none of them, or a pointer of Git LFS, and where a file is a link
    out of its folder, but to the hub's cache: whoever made it would choose what is published.
    """
    if source == 'bytes':
        _write_bytes_tokenizer(folder)
    for name, file in copied(source).items():
        (folder / name).write_bytes(read_bytes(file))


def copied(source: str) -> dict[str, pathlib.Path]:
    """The files that `write_tokenizer` copies, by their names there, with its errors."""
    path = pathlib.Path(source)
    if source == 'bytes':
        return {}
    if path.is_file():
        found = {f'tokenizer{path.suffix}': path}
        found |= {name: path.with_name(name) for name in DECLARATIONS if name != path.name}
    elif path.is_dir():
        found = {name: path / name for name in (*VOCABULARIES, *DECLARATIONS)}
    else:
        raise ValueError(f'tokenizer {source!r} is neither bytes nor a file nor a directory')
    found = {name: file for name, file in found.items() if file.is_file()}
    for file in found.values():
        real, home = file.resolve(), file.parent.resolve()
        if file != path and not real.is_relative_to(home) and real.parent.name != 'blobs':
            raise ValueError(f'{file} is a link to {real}; accepted: files of its folder')
    return found


def keep_as_it_is(source: str, folder: pathlib.Path, kind: str) -> None:
    """Lets stock take the tokenizer.json in `folder` as it is where it does so in `source`, by the
    kind of model there, and would build it anew by its class for a model of the `kind` written.

    ValueError for a tokenizer that stock would build anew whatever is declared: beside a `qwen2`
    model it reads every one with Qwen2's normaliser and split pattern.
    """
    path, declared = pathlib.Path(source), folder / CONFIG
    beside = (path.parent if path.is_file() else path) / 'config.json'
    was = (read_object(beside) or {}).get('model_type')
    found = read_object(declared) or {}
    if kind == 'qwen2' != was and found.get('tokenizer_class') != 'Qwen2Tokenizer':
        raise ValueError(
            f'tokenizer {source!r} beside a model that is written as qwen2: stock would split text '
            "by Qwen2's pattern. Accepted: a Qwen2 directory as tokenizer, or a model with "
            'output_bias, which is written as llama'
        )
    if was in READ_AS_IT_IS and kind not in READ_AS_IT_IS and (folder / 'tokenizer.json').is_file():
        write_json(declared, found | {'tokenizer_class': 'PreTrainedTokenizerFast'})


def raise_length(folder: pathlib.Path, longest: int | None) -> None:
    """Lets stock's tokenizer in `folder` truncate no text that the model is for."""
    found = read_object(folder / CONFIG) or {}
    limit = found.get('model_max_length')
    if longest is not None and isinstance(limit, int | float) and limit < longest:
        write_json(folder / CONFIG, found | {'model_max_length': longest})


def ends_within(tokenizer: Tokenizer, vocab_size: int) -> tuple[int, ...]:
    """Tokens besides EOS that end a text, those that a model of that vocabulary can say."""
    ends = (end for end in tokenizer.stop_ids if end != tokenizer.eos_id)
    return tuple(end for end in ends if end < vocab_size)


def tokenizer_in(directory: pathlib.Path) -> str | None:
    """The tokenizer file of a directory that `nope.data` can read; None if it has none."""
    for name in ('tokenizer.json', 'tokenizer.model'):
        if (directory / name).is_file():
            return str(directory / name)
    return None


def has_tokenizer(directory: pathlib.Path) -> bool:
    """Whether `write_tokenizer` finds a vocabulary there, readable for `nope.data` or not."""
    return tokenizer_in(directory) is not None or (directory / 'vocab.json').is_file()


def _write_bytes_tokenizer(folder: pathlib.Path) -> None:
    """Byte tokenizer as a byte-level BPE without merges: ids are byte values, then EOS and BOS."""
    ours = ByteTokenizer()
    assert ours.bos_id is not None
    vocabulary = {character: byte for byte, character in enumerate(byte_characters())}
    marks = {END: ours.eos_id, BEGIN: ours.bos_id}
    flags = dict.fromkeys(('single_word', 'lstrip', 'rstrip', 'normalized'), False)
    added = [
        {'id': number, 'content': content, **flags, 'special': True}
        for content, number in marks.items()
    ]
    level = {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True}
    write_json(
        folder / 'tokenizer.json',
        {
            'version': '1.0',
            **dict.fromkeys(('truncation', 'padding', 'normalizer', 'post_processor')),
            'added_tokens': added,
            'pre_tokenizer': {**level, 'use_regex': False},
            'decoder': {**level, 'use_regex': False},
            'model': {'type': 'BPE', 'vocab': vocabulary | marks, 'merges': []},
        },
    )
    write_json(
        folder / 'tokenizer_config.json',
        {'tokenizer_class': 'PreTrainedTokenizerFast', 'bos_token': BEGIN, 'eos_token': END},
    )


def byte_characters() -> list[str]:
    """The printable character that stands for each byte value in byte-level vocabularies: itself
    where it is printable, else the next one from U+0100 on."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    characters, following = [], 256
    for byte in range(BYTE_VALUES):
        if byte in printable:
            characters.append(chr(byte))
        else:
            characters.append(chr(following))
            following += 1
    return characters
