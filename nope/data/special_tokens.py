"""Special tokens as the files beside a tokenizer declare them.

`transformers` (5.23) has the order: `special_tokens_map.json` is read before
`tokenizer_config.json`, unless the latter has `added_tokens_decoder`. Then come the token ids of
`generation_config.json` and `config.json`.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nope.runtime import files

CONFIG, MAP, ADDED = 'tokenizer_config.json', 'special_tokens_map.json', 'added_tokens.json'
MODEL = 'generation_config.json', 'config.json'
BESIDE = (CONFIG, MAP, ADDED, *MODEL)  # files that `read` reads
DECODER = 'added_tokens_decoder'  # a key of CONFIG: {"298": {"content": "<|im_end|>", ...}}
EOS, BOS = 'eos_token', 'bos_token'
EXTRA = ('extra_special_tokens', 'additional_special_tokens')  # the first may have names
MARKS = (BOS, EOS, 'unk_token', 'sep_token', 'pad_token', 'cls_token', 'mask_token')
EOS_PIECES = ('</s>', '<|endoftext|>', '<|end_of_text|>', '<eos>', '<|im_end|>')
BOS_PIECES = ('<s>', '<|endoftext|>', '<|begin_of_text|>', '<bos>', '<|im_start|>')
# Classes of transformers that set `add_prefix_space` of a tokenizer.json anew, False by default.
SET_PREFIX_SPACE = ('CodeGenTokenizer', 'GPT2Tokenizer', 'GPTNeoXTokenizer', 'Qwen2Tokenizer')
CLASSES = {'gpt2': 'GPT2Tokenizer', 'gpt_neox': 'GPTNeoXTokenizer', 'mpt': 'GPTNeoXTokenizer'}
# Kinds of models whose tokenizer.json transformers reads as it is, whatever the class; of qwen2
# with Qwen2's own pattern, which its files have.
READ_AS_IT_IS = (
    *('granite', 'granitemoehybrid', 'ministral3', 'mistral', 'olmo2', 'olmo3', 'phi3', 'qwen2'),
)


class Unusable(Exception):
    """Reason that a tokenizer file cannot be used."""


@dataclasses.dataclass(frozen=True)
class Declared:
    """Declarations of the files beside a tokenizer.

    tokens: name, as `eos_token`, -> text; None for a null. listed: texts of those without a name.
    added: id -> token, with its `content` and the library's flags. ends: ids of `eos_token_id`.
    says: whether there is a file that could declare BOS. config: tokenizer_config.json. model:
    `model_type` of config.json.
    """

    tokens: Mapping[str, str | None]
    listed: Sequence[str]
    added: Mapping[int, Mapping[str, Any]]
    ends: tuple[int, ...]
    says: bool
    config: Mapping[str, Any]
    model: str | None

    @property
    def class_name(self) -> str:
        """The class of transformers that reads it."""
        name = self.config.get('tokenizer_class') or CLASSES.get(str(self.model))
        return str(name).removesuffix('Fast')

    @property
    def class_bos(self) -> str | None:
        """BOS that the class has where no file declares one."""
        return '<|endoftext|>' if self.class_name in CLASSES.values() else None

    @property
    def marks(self) -> list[str]:
        """The named tokens, in the order in which missing ones are added."""
        names = [*(name for name in MARKS if name in self.tokens), *self.tokens]
        found = (self.tokens[name] for name in names)
        return list(dict.fromkeys(text for text in found if text))

    @property
    def adds_bos(self) -> bool:
        """Whether a SentencePiece model puts BOS before a text; a tokenizer.json says so itself."""
        return self.config.get('add_bos_token') is True

    @property
    def prefix_space(self) -> bool | None:
        """`add_prefix_space` as the class sets it anew; None where it leaves it."""
        sets = self.class_name in SET_PREFIX_SPACE
        return bool(self.config.get('add_prefix_space')) if sets else None

    @property
    def prepend_scheme(self) -> str | None:
        """Scheme of the prefix space that `LlamaTokenizer` of transformers sets: 'first' is before
        the text, 'always' behind each special token too, or 'never'. None for other classes."""
        if self.class_name != 'LlamaTokenizer' or self.model in READ_AS_IT_IS:
            return None
        if self.config.get('add_prefix_space') is False:
            return 'never'
        return 'always' if self.config.get('legacy', False) else 'first'


def read(tokenizer: pathlib.Path) -> Declared:
    """Declarations of the files beside a tokenizer. `Unusable` names a file that is no JSON
    object or has ids that are none."""
    config = _object(tokenizer, CONFIG)
    mapped = {} if DECODER in config else _object(tokenizer, MAP)
    tokens = _tokens(config) | _tokens(mapped)
    named, older = EXTRA
    lists = [config.get(named), config.get(older), mapped.get(older)]
    first = next((found for found in lists if found and isinstance(found, list)), [])
    more = mapped.get(named)  # beside the first list that is there
    values = [*first, *(more if isinstance(more, list) else [])]
    listed = [text for value in values if (text := _text(value))]
    return Declared(
        tokens=tokens,
        listed=listed,
        added=dict(_added(tokenizer, config, {*tokens.values(), *listed})),
        ends=_ends(tokenizer),
        says=any(tokenizer.with_name(name).is_file() for name in (CONFIG, MAP)),
        config=config,
        model=_object(tokenizer, 'config.json').get('model_type'),
    )


def _tokens(fields: Mapping[str, Any]) -> dict[str, str | None]:
    """The named tokens: their text, None for a null. What is no text declares nothing."""
    found: dict[str, str | None] = {}
    extra = fields.get(EXTRA[0])
    named = [(key, value) for key, value in fields.items() if key.endswith('_token')]
    for key, value in [*named, *(extra if isinstance(extra, dict) else {}).items()]:
        if value is None or _text(value) is not None:
            found[key] = _text(value)
    return found


def _text(token: Any) -> str | None:
    """The text of a token, which may be an object; None where it is none."""
    content = token.get('content') if isinstance(token, dict) else token
    # JSON can spell a lone surrogate, which UTF-8 and so every piece has not.
    fits = isinstance(content, str) and content.encode('utf-8', 'replace').decode() == content
    return content if fits else None


def _added(
    tokenizer: pathlib.Path, config: Mapping[str, Any], special: set[str | None]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Added tokens by their ids. special: those of added_tokens.json that are."""
    older = {} if DECODER in config else _object(tokenizer, ADDED)
    for content, number in older.items():
        if type(number) is not int or number < 0:
            raise Unusable(f'{ADDED} beside it: {content!r} is {number!r}; accepted: a token id')
        yield number, {'content': content} | ({'special': True} if content in special else {})
    decoder = config.get(DECODER, {})
    if not isinstance(decoder, dict):
        raise Unusable(f'{CONFIG} beside it: {DECODER} is no object of ids and tokens')
    for key, token in decoder.items():
        if not (key.isdecimal() and isinstance(token, dict)):
            raise Unusable(f'{CONFIG} beside it: {DECODER} has {key!r}; accepted: ids and tokens')
        if _text(token) is not None:
            yield int(key), token


def _ends(tokenizer: pathlib.Path) -> tuple[int, ...]:
    """The eos_token_id of generation_config.json or, where that names none, of config.json."""
    for name in MODEL:
        value = _object(tokenizer, name).get('eos_token_id')
        if value is None:
            continue
        ids = value if isinstance(value, list) else [value]
        if any(type(i) is not int or i < 0 for i in ids):
            raise Unusable(
                f'{name} beside it: eos_token_id is {value!r}; accepted: a token id, a list of '
                'them, or null'
            )
        return tuple(ids)
    return ()


def _object(tokenizer: pathlib.Path, name: str) -> dict[str, Any]:
    """JSON object of a file beside the tokenizer; {} where there is no such file."""
    path = tokenizer.with_name(name)
    if not path.is_file():
        return {}
    try:
        return files.read_object(path) or {}
    except ValueError as error:
        raise Unusable(f'{name} beside it is not a JSON object ({error})') from error
