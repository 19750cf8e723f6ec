"""Chat templates of checkpoints: a question becomes the user's turn of a conversation.

As `tokenizer.apply_chat_template(..., add_generation_prompt=True)` of transformers: the template is
Jinja2 code of the checkpoint, run in a sandbox; what it spells of special tokens is these tokens,
and no other prefix is put before it.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
import jinja2.ext
import jinja2.sandbox
import numpy as np

from nope.data import special_tokens
from nope.data.prefix import encode_with_bos
from nope.data.tokenizers import Tokenizer, encode_special
from nope.runtime import files

FILE, OBJECT = 'chat_template.jinja', 'chat_template.json'
DEFAULT = 'default'
Messages = Sequence[Mapping[str, str]]
_END = 'THE MESSAGE GOES ON HERE '  # its blank is there behind a template that trims no message


@dataclasses.dataclass(frozen=True)
class Chat:
    """A chat template. named: what it was read from, for messages. tokens: name -> text of the
    special tokens that it may ask for, as `bos_token`. date: that it may ask for; None for today.
    """

    named: str
    source: str
    tokens: Mapping[str, str]
    date: datetime.date | None = None

    def render(self, messages: Messages, *, opened: bool = True) -> str:
        """Text of a conversation, each message with `role` and `content`. opened: the assistant's
        turn is begun after it; False: it ends within the last message, to be continued.
        ValueError for what the template refuses."""
        told = [dict(message) for message in messages]
        if not opened:
            told[-1]['content'] += _END
        try:
            text = _compiled(self.source).render(
                messages=told,
                tools=None,
                documents=None,
                add_generation_prompt=opened,
                strftime_now=(self.date or datetime.datetime.now()).strftime,
                **self.tokens,
            )
            if opened:
                return text
            end = text.rindex(_END.strip())
            return text[:end] if text.startswith(_END, end) else text[:end].rstrip()
        except (jinja2.TemplateError, TypeError, ValueError, LookupError) as error:
            raise ValueError(f'{self.named}: the chat template fails: {error}') from error

    def ids(
        self, tokenizer: Tokenizer, text: str, opening: str = '', system: str = ''
    ) -> np.ndarray:
        """Token ids, int32 [n], of a question as the user's turn. opening: the end of the text with
        which the answer begins already. system: a turn before it; '' for none."""
        told = [{'role': 'system', 'content': system}] if system else []
        asked = {'role': 'user', 'content': text.removesuffix(opening)}
        return encode_special(tokenizer, self.render([*told, asked]) + opening)

    def overhead(self, tokenizer: Tokenizer, system: str = '') -> int:
        """Tokens of the turns around a question."""
        return len(self.ids(tokenizer, 'x', system=system)) - len(tokenizer.encode('x'))


def prompt_ids(
    tokenizer: Tokenizer,
    text: str,
    bos: bool | None,
    chat: Chat | None,
    opening: str = '',
    system: str = '',
) -> np.ndarray:
    """Token ids of a prompt, int32 [n]: after its prefix or, with a chat, as the user's turn."""
    if chat is None:
        return encode_with_bos(tokenizer, text, bos)
    return chat.ids(tokenizer, text, opening, system)


def load_chat(folder: pathlib.Path, date: datetime.date | None = None) -> Chat:
    """The chat template in a folder of a tokenizer; of several the one called `default`. date: as
    of `Chat`.

    ValueError where there is none, and for files that cannot be read.
    """
    try:
        declared = special_tokens.read(folder / 'tokenizer.json')
    except special_tokens.Unusable as error:
        raise ValueError(f'{folder}: {error}') from error
    tokens = {name: text for name, text in declared.tokens.items() if text is not None}
    if (folder / FILE).is_file():
        try:
            source = files.read_utf8(folder / FILE).decode()
        except UnicodeDecodeError as error:
            raise ValueError(f'{folder / FILE} is not UTF-8: {error}') from error
        return Chat(str(folder / FILE), source, tokens, date)
    beside = files.read_object(folder / OBJECT) or {}
    for name, value in ((special_tokens.CONFIG, declared.config), (OBJECT, beside)):
        template = value.get('chat_template')
        if isinstance(template, list):
            of = {each.get('name'): each for each in template if isinstance(each, dict)}
            template = of.get(DEFAULT, {}).get('template')
        if isinstance(template, str):
            return Chat(str(folder / name), template, tokens, date)
    raise ValueError(
        f'{folder} has no chat template: neither {FILE} nor chat_template in '
        f'{special_tokens.CONFIG}'
    )


class _Generation(jinja2.ext.Extension):
    """`{% generation %}`, the mark of an assistant's words, is a block without effect."""

    tags = {'generation'}  # noqa: RUF012 (as the base class has it)

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        body = parser.parse_statements(('name:endgeneration',), drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


@functools.lru_cache(maxsize=8)
def _compiled(source: str) -> jinja2.Template:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, 'jinja2.ext.loopcontrols']
    )
    environment.filters['tojson'] = lambda value, ensure_ascii=False, indent=None, **more: (
        json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **more)
    )
    environment.globals['raise_exception'] = _refuse
    return environment.from_string(source)


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)
