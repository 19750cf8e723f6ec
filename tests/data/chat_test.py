"""Chat templates: rendered as stock renders them, in a sandbox."""

from __future__ import annotations

import datetime
import json
import pathlib

import pytest

from nope.data import load_tokenizer
from nope.data.chat import load_chat, prompt_ids
from tests.data.tokenizers_test import CLASS, hugging_face_json

TURNS = """{{ bos_token }}{% for message in messages %}
{%- if message['role'] == 'system' and not loop.first %}{{ raise_exception('late') }}{% endif %}
<|{{ message['role'] }}|>
{{ message['content'] | trim }}{{ eos_token }}
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""
EACH = '{%% for m in messages %%}%s{%% endfor %%}'
TEMPLATES = {
    'turns': TURNS,
    'json': EACH % '{{ m | tojson }}{{ {"a": "<é>"} | tojson(indent=1) }}',
    'marked': EACH % '{% generation %}{{ m.content }}{% endgeneration %}',
    'loops': EACH % '{% if loop.index > 1 %}{% break %}{% endif %}{{ m.role }}',
    'spaced': '{% for m in messages %}{{ m.content + "|" }}{% endfor %}',
    'namespace': '{% set n = namespace(x=0) %}' + EACH % '{% set n.x = n.x + 1 %}' + '{{ n.x }}',
}
TALK = [
    {'role': 'user', 'content': ' the fox <s> '},
    {'role': 'assistant', 'content': 'jumps'},
    {'role': 'user', 'content': 'over\n'},
]


def test_a_template_is_told_the_date_that_it_is_loaded_with(folder: pathlib.Path) -> None:
    (folder / 'chat_template.jinja').write_text('{{ strftime_now("%d %b %Y") }}')
    assert load_chat(folder, datetime.date(2024, 7, 26)).render(TALK) == '26 Jul 2024'
    assert str(datetime.date.today().year) in load_chat(folder).render(TALK)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / 'tokenizer.json').write_text(hugging_face_json(['<s>', '</s>', '<|user|>']))
    marks = {'bos_token': '<s>', 'eos_token': '</s>'}
    (tmp_path / 'tokenizer_config.json').write_text(json.dumps(CLASS | marks))
    return tmp_path


@pytest.mark.peers
@pytest.mark.parametrize('name', TEMPLATES)
def test_a_conversation_is_that_of_stock(folder: pathlib.Path, name: str) -> None:
    transformers = pytest.importorskip('transformers')

    (folder / 'chat_template.jinja').write_text(TEMPLATES[name])
    stock = transformers.AutoTokenizer.from_pretrained(folder)
    chat, tokenizer = load_chat(folder), load_tokenizer(str(folder / 'tokenizer.json'))
    begun = [*TALK[:-1], {'role': 'assistant', 'content': ' the fox '}]
    for told, opened in ((TALK, True), (TALK[:-1], False), (begun, False)):
        asked = {'add_generation_prompt': opened, 'continue_final_message': not opened}
        if name in ('turns', 'marked', 'spaced') or opened:
            text = stock.apply_chat_template(told, tokenize=False, **asked)
            assert chat.render(told, opened=opened) == text
    question = [{'role': 'user', 'content': 'the quick fox'}]
    ids = stock.apply_chat_template(question, add_generation_prompt=True)['input_ids']
    assert prompt_ids(tokenizer, 'the quick fox', None, chat).tolist() == ids
    if name == 'turns':
        assert chat.overhead(tokenizer) == len(ids) - len(tokenizer.encode('the quick fox'))


def test_a_template_stands_in_one_of_three_files(folder: pathlib.Path) -> None:
    config = json.loads((folder / 'tokenizer_config.json').read_text())
    with pytest.raises(ValueError, match=r'has no chat template: neither chat_template\.jinja nor'):
        load_chat(folder)
    (folder / 'chat_template.json').write_text('{"chat_template": "three"}')
    assert load_chat(folder).source == 'three'
    several = [{'name': 'tool_use', 'template': 'no'}, {'name': 'default', 'template': 'two'}]
    for template in ('two', several):
        declared = json.dumps(config | {'chat_template': template})
        (folder / 'tokenizer_config.json').write_text(declared)
        assert load_chat(folder).source == 'two'
    (folder / 'chat_template.jinja').write_text('one')
    assert load_chat(folder).source == 'one'


def test_files_that_cannot_be_read_are_named(folder: pathlib.Path) -> None:
    (folder / 'chat_template.jinja').write_bytes(b'\xff')
    with pytest.raises(ValueError, match=r'chat_template\.jinja is not UTF-8'):
        load_chat(folder)
    (folder / 'tokenizer_config.json').write_text('{')
    with pytest.raises(ValueError, match=r'tokenizer_config\.json beside it is not a JSON object'):
        load_chat(folder)


def test_bos_of_a_template_stands_once(folder: pathlib.Path) -> None:
    (folder / 'chat_template.jinja').write_text(TURNS)
    ids = prompt_ids(load_tokenizer(str(folder / 'tokenizer.json')), 'fox', True, load_chat(folder))
    assert ids[0] == 0 and 0 not in ids[1:]


def test_an_answer_is_begun_in_its_own_turn(folder: pathlib.Path) -> None:
    (folder / 'chat_template.jinja').write_text(TURNS)
    chat, tokenizer = load_chat(folder), load_tokenizer(str(folder / 'tokenizer.json'))
    ids = prompt_ids(tokenizer, 'the fox? It is', None, chat, ' It is')
    wanted = chat.render([{'role': 'user', 'content': 'the fox?'}]) + ' It is'
    assert ids.tolist() == tokenizer.encode(wanted, special=True).tolist()
    told = [{'role': 'system', 'content': 'the dog'}, {'role': 'user', 'content': 'the fox?'}]
    asked = prompt_ids(tokenizer, 'the fox?', None, chat, system='the dog')
    assert asked.tolist() == tokenizer.encode(chat.render(told), special=True).tolist()
    assert prompt_ids(tokenizer, 'the fox? It is', None, None).tolist() == [
        *tokenizer.encode('the fox? It is')
    ]


@pytest.mark.parametrize(('template', 'said'), [
    (TURNS, 'late'),
    ('{{ messages.__class__.__mro__ }}', 'access to attribute'),
    ('{{ messages.append(1) }}', 'is not safely callable|access to attribute'),
    ('{% if %}', 'Expected an expression'),
    ('{{ 1 + "a" }}', 'unsupported operand'),
])  # fmt: skip
def test_a_template_that_fails_is_named(folder: pathlib.Path, template: str, said: str) -> None:
    (folder / 'chat_template.jinja').write_text(template)
    talk = [*TALK[:2], {'role': 'system', 'content': 'x'}]
    with pytest.raises(
        ValueError, match=rf'chat_template\.jinja: the chat template fails: .*({said})'
    ):
        load_chat(folder).render(talk)
