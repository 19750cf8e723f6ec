from __future__ import annotations

import json
import pathlib
import pickle
import time

import numpy as np
import pytest

from nope.data import ids_in_use, load_tokenizer, spells_special, split_stops
from nope.data.prefix import encode_with_bos
from tests.data.words import sentencepieces
from tests.runtime.lfs import pointer

BYTES = load_tokenizer('bytes')


@pytest.fixture(scope='module')
def sentencepiece_model(tmp_path_factory) -> bytes:
    lines = [f'the quick brown fox number {i} jumps over the lazy dog' for i in range(100)]
    return sentencepieces(lines, vocab_size=300, byte_fallback=True)


def hugging_face_json(specials: list[str], **changes) -> str:
    import tokenizers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=True))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=specials,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(['the quick brown fox jumps over the lazy dog'] * 10, trainer)
    return json.dumps(json.loads(tokenizer.to_str()) | changes)


def test_bytes_round_trip_and_reserve_two_marks():
    tokenizer = load_tokenizer('bytes')
    every = bytes(range(256))
    ids = tokenizer.encode(every)
    assert ids.dtype == np.int32
    assert ids.tolist() == list(range(256))
    assert (tokenizer.vocab_size, tokenizer.eos_id, tokenizer.bos_id) == (258, 256, 257)
    assert tokenizer.decode(tokenizer.encode('naïve → ok')) == 'naïve → ok'
    assert tokenizer.decode([tokenizer.bos_id, 104, 105, tokenizer.eos_id]) == 'hi'


def test_bytes_keep_invalid_utf8_and_decode_it_to_replacements():
    tokenizer = load_tokenizer('bytes')
    assert tokenizer.encode(b'a\xff\xfeb').tolist() == [97, 255, 254, 98]
    assert tokenizer.decode([97, 255, 98]) == 'a\ufffdb'


def test_sentencepiece_round_trip_without_marks(tmp_path, sentencepiece_model):
    path = tmp_path / 'tokenizer.model'
    path.write_bytes(sentencepiece_model)
    tokenizer = load_tokenizer(str(path))
    ids = tokenizer.encode('the lazy fox → \U0001f98a')
    assert ids.dtype == np.int32
    assert tokenizer.decode(ids) == 'the lazy fox → \U0001f98a'
    assert tokenizer.eos_id not in ids and tokenizer.bos_id not in ids
    assert tokenizer.eos_id not in tokenizer.encode('a literal </s> in the text')
    assert (tokenizer.vocab_size, tokenizer.bos_id, tokenizer.eos_id) == (300, 1, 2)
    # A model may write ids that its tokenizer has not.
    assert tokenizer.decode(np.append(ids, [300, 5000])) == 'the lazy fox → \U0001f98a'


def test_hugging_face_round_trip_without_marks(tmp_path):
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['<s>', '</s>']))
    tokenizer = load_tokenizer(str(path))
    text = 'the lazy fox → \U0001f98a'
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.encode(text).dtype == np.int32
    more = np.append(tokenizer.encode(text), tokenizer.vocab_size)
    assert tokenizer.decode(more) == text
    assert (tokenizer.bos_id, tokenizer.eos_id) == (0, 1)
    assert tokenizer.vocab_size > 256


def test_hugging_face_text_that_spells_a_mark_is_no_mark(tmp_path):
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['<s>', '</s>']))
    tokenizer = load_tokenizer(str(path))
    ids = tokenizer.encode('one </s> two')
    assert tokenizer.eos_id not in ids
    assert tokenizer.decode(ids) == 'one </s> two'
    tokenizer.encode('one </s> two', special=True)
    elsewhere = pickle.loads(pickle.dumps(tokenizer))  # as processes get it
    np.testing.assert_array_equal(elsewhere.encode('one </s> two'), ids)


def test_special_tokens_that_a_text_spells_are_read_where_asked_for(tmp_path, sentencepiece_model):
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['<s>', '</s>']))
    tokenizer = load_tokenizer(str(path))
    ids = tokenizer.encode('<s>one</s>', special=True)
    assert ids.tolist() == [0, *tokenizer.encode('one'), 1]
    assert encode_with_bos(tokenizer, '<s>one</s>', True, special=True).tolist() == ids.tolist()
    assert encode_with_bos(tokenizer, 'one', True, special=True).tolist() == ids[:-1].tolist()
    assert spells_special(tokenizer, 'one</s>') and not spells_special(tokenizer, 'one')
    assert encode_with_bos(BYTES, '<s>', False, special=True).tolist() == [*b'<s>']
    (tmp_path / 'tokenizer.model').write_bytes(sentencepiece_model)
    pieces = load_tokenizer(str(tmp_path / 'tokenizer.model'))
    assert not spells_special(pieces, '</s>')
    with pytest.raises(ValueError, match='a SentencePiece model reads no special tokens'):
        encode_with_bos(pieces, '</s>', False, special=True)


def test_hugging_face_saved_truncation_and_padding_do_not_count(tmp_path):
    plain, limited = tmp_path / 'plain.json', tmp_path / 'limited.json'
    plain.write_text(hugging_face_json(['</s>']))
    limited.write_text(
        hugging_face_json(
            ['</s>'],
            truncation={
                'direction': 'Right',
                'max_length': 3,
                'strategy': 'LongestFirst',
                'stride': 0,
            },
        )
    )
    text = 'the quick brown fox jumps over the lazy dog' * 3
    assert np.array_equal(
        load_tokenizer(str(plain)).encode(text), load_tokenizer(str(limited)).encode(text)
    )


def test_hugging_face_eos_declared_beside_it_wins(tmp_path):
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['</s>', '<|stop|>']))
    before = load_tokenizer(str(path))
    (tmp_path / 'tokenizer_config.json').write_text(
        json.dumps({'eos_token': {'content': '<|stop|>'}})
    )
    after = load_tokenizer(str(path))
    assert (before.eos_id, after.eos_id) == (0, 1)
    assert before.fingerprint != after.fingerprint


def test_fingerprint_is_of_the_content_alone(tmp_path, sentencepiece_model):
    paths = [tmp_path / 'a.model', tmp_path / 'folder' / 'b.model']
    paths[1].parent.mkdir()
    for path in paths:
        path.write_bytes(sentencepiece_model)
    first, second = (load_tokenizer(str(path)).fingerprint for path in paths)
    assert first == second != load_tokenizer('bytes').fingerprint


@pytest.mark.parametrize('name', ['a.model', 'tokenizer.json'])
def test_a_pointer_of_git_lfs_is_no_tokenizer(tmp_path, name):
    (tmp_path / name).write_bytes(pointer())
    with pytest.raises(ValueError, match=rf'{name} is a Git LFS pointer'):
        load_tokenizer(str(tmp_path / name))


@pytest.mark.parametrize('name', ['missing.model', 'missing/tokenizer.json'])
def test_missing_file_names_the_field(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=r'data\.tokenizer=.*no such file'):
        load_tokenizer(str(tmp_path / name))


def test_other_kinds_of_file_name_the_field(tmp_path):
    with pytest.raises(ValueError, match=r"data\.tokenizer='vocab\.txt'"):
        load_tokenizer('vocab.txt')


@pytest.mark.parametrize('suffix', ['model', 'json'])
def test_broken_file_names_the_field(tmp_path, suffix):
    path = tmp_path / f'broken.{suffix}'
    path.write_bytes(b'{"not": "a tokenizer"}')
    with pytest.raises(ValueError, match=r'data\.tokenizer=.*not a '):
        load_tokenizer(str(path))


def test_tokenizer_without_eos_is_refused(tmp_path):
    path = pathlib.Path(tmp_path / 'tokenizer.json')
    path.write_text(hugging_face_json(['[PAD]']))
    with pytest.raises(ValueError, match=r'data\.tokenizer=.*no end-of-document token'):
        load_tokenizer(str(path))


@pytest.mark.parametrize('content', ['', '[]', 'null', '3', '"x"', '\x00', '[' * 100_000])
def test_a_damaged_declaration_of_marks_is_named(tmp_path, content):
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['<s>', '</s>']))
    (tmp_path / 'tokenizer_config.json').write_text(content)
    with pytest.raises(ValueError, match=r'data\.tokenizer=.*tokenizer_config\.json beside it'):
        load_tokenizer(str(path))


def test_a_declared_mark_that_is_no_text_declares_nothing(tmp_path):
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['<s>', '</s>']))
    for mark in ('\ud800', 7, ['</s>'], {'content': None}):
        declared = json.dumps({'eos_token': mark, 'bos_token': mark})
        (tmp_path / 'tokenizer_config.json').write_text(declared)
        found = load_tokenizer(str(path))
        assert (found.eos_id, found.bos_id) == (1, None)  # EOS is needed, and guessed


@pytest.mark.parametrize(('files', 'ends'), [
    ({}, ()),
    ({'config.json': {'eos_token_id': None}}, ()),
    ({'config.json': {'eos_token_id': [5, 7, 5]}}, (5, 7)),
    ({'config.json': {'eos_token_id': 5}, 'generation_config.json': {'top_k': 3}}, (5,)),
    ({'config.json': {'eos_token_id': 1}, 'generation_config.json': {'eos_token_id': 9}}, (9,)),
])  # fmt: skip
@pytest.mark.parametrize('kind', ['json', 'model', 'declared'])
def test_texts_end_where_the_models_files_say(tmp_path, sentencepiece_model, kind, files, ends):
    """Where no file of the tokenizer declares EOS it is the model's first."""
    path = tmp_path / ('tokenizer.model' if kind == 'model' else 'tokenizer.json')
    content = hugging_face_json(['<s>', '</s>']).encode()
    path.write_bytes(sentencepiece_model if kind == 'model' else content)
    if kind == 'declared':
        (tmp_path / 'tokenizer_config.json').write_text('{"eos_token": "</s>"}')
    before = load_tokenizer(str(path))
    for name, found in files.items():
        (tmp_path / name).write_text(json.dumps(found))
    after = load_tokenizer(str(path))
    own = ends[0] if kind == 'json' and ends else before.eos_id
    assert (after.eos_id, after.stop_ids) == (own, tuple(dict.fromkeys((own, *ends))))


@pytest.mark.parametrize('value', ['</s>', True, -1, [2, '3'], 1.5])
def test_a_damaged_list_of_ends_is_named(tmp_path, value):
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['<s>', '</s>']))
    (tmp_path / 'generation_config.json').write_text(json.dumps({'eos_token_id': value}))
    with pytest.raises(ValueError, match=r'generation_config\.json beside it: eos_token_id is '):
        load_tokenizer(str(path))


# Each: files beside a tokenizer of <s> 0, </s> 1 and <x> 2 -> EOS and BOS of AutoTokenizer
# (transformers 5.23), where it has an EOS.
CLASS = {'tokenizer_class': 'PreTrainedTokenizerFast'}
NEW = {'content': '<new>', 'special': True}
DECLARED = [
    ({'tokenizer_config.json': {'eos_token': '<x>', 'bos_token': None}}, (2, None)),
    ({'special_tokens_map.json': {'eos_token': '<x>'}}, (2, None)),
    ({'special_tokens_map.json': {'eos_token': '<x>'}, 'tokenizer_config.json': {}}, (2, None)),
    (
        {
            'special_tokens_map.json': {'eos_token': {'content': '<x>'}, 'bos_token': '<s>'},
            'tokenizer_config.json': {'eos_token': '</s>', 'bos_token': None},
        },
        (2, 0),
    ),
    (
        {
            'special_tokens_map.json': {'eos_token': '<x>', 'bos_token': '<s>'},
            'tokenizer_config.json': {'eos_token': '</s>', 'added_tokens_decoder': {}},
        },
        (1, None),
    ),
    ({'tokenizer_config.json': {'eos_token': '<new>'}}, ('next', None)),
    (
        {'tokenizer_config.json': {'eos_token': '<new>'}, 'added_tokens.json': {'<new>': 'next'}},
        ('next', None),
    ),
    (
        {'tokenizer_config.json': {'eos_token': '<new>', 'added_tokens_decoder': {'next': NEW}}},
        ('next', None),
    ),
]


@pytest.fixture
def of_three(tmp_path) -> pathlib.Path:
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['<s>', '</s>', '<x>']))
    return path


def write_beside(path: pathlib.Path, contents: dict[str, dict]) -> int:
    """Writes the files with the id of the next token in place of 'next', which is returned."""
    following = load_tokenizer(str(path)).vocab_size
    for name, content in contents.items():
        path.with_name(name).write_text(
            json.dumps(content).replace('"next": {', f'"{following}": {{')
        )
        text = path.with_name(name).read_text().replace('"next"', str(following))
        path.with_name(name).write_text(text)
    return following


@pytest.mark.parametrize(('contents', 'marks'), DECLARED)
def test_special_tokens_are_those_that_files_declare(of_three, contents, marks, caplog):
    following = write_beside(of_three, contents)
    caplog.clear()
    found = load_tokenizer(str(of_three))
    eos = following if marks[0] == 'next' else marks[0]
    assert (found.eos_id, found.bos_id, found.stop_ids) == (eos, marks[1], (eos,))
    spelled = '<new>' if eos == following else '</s>'
    assert len(encode_with_bos(found, f'a{spelled}b', False, special=True)) == 3
    assert found.decode([eos]) == '' and ids_in_use(found) > eos
    assert not caplog.records  # nothing was guessed


@pytest.mark.peers
@pytest.mark.parametrize(('contents', 'marks'), DECLARED)
def test_special_tokens_are_those_of_stock(of_three, contents, marks):
    transformers = pytest.importorskip('transformers')

    write_beside(of_three, contents)
    config = of_three.with_name('tokenizer_config.json')
    declared = json.loads(config.read_text()) if config.exists() else {}
    config.write_text(json.dumps(CLASS | declared))
    stock = transformers.AutoTokenizer.from_pretrained(of_three.parent)
    found = load_tokenizer(str(of_three))
    assert (found.eos_id, found.bos_id) == (stock.eos_token_id, stock.bos_token_id)


def test_a_guess_of_special_tokens_is_said(of_three, caplog):
    load_tokenizer(str(of_three))
    (said,) = caplog.messages
    assert 'no file beside it declares its special tokens; taken are EOS </s>, BOS <s>' in said


def test_a_declared_token_that_cannot_have_its_id_is_refused(of_three):
    added = {'eos_token': '<new>', 'added_tokens_decoder': {'1000': NEW}}
    of_three.with_name('tokenizer_config.json').write_text(json.dumps(added))
    with pytest.raises(ValueError, match=r"declare '<new>' as token 1000, and .* the id \d+"):
        load_tokenizer(str(of_three))


def test_eos_of_the_models_config_is_no_guess(of_three, caplog):
    of_three.with_name('tokenizer_config.json').write_text('{}')
    of_three.with_name('config.json').write_text('{"eos_token_id": 2}')
    found = load_tokenizer(str(of_three))
    assert (found.eos_id, found.bos_id, found.stop_ids) == (2, None, (2,))
    assert not caplog.records


def test_stops_that_are_special_tokens_are_ids(of_three, sentencepiece_model):
    found = load_tokenizer(str(of_three))
    assert split_stops(found, ('<x>', 'fox', '\n<x>', '</s>')) == ((2, 1), ('fox', '\n<x>'))
    of_three.with_name('tokenizer.model').write_bytes(sentencepiece_model)
    pieces = load_tokenizer(str(of_three.with_name('tokenizer.model')))
    assert split_stops(pieces, ('</s>', 'fox')) == ((2,), ('fox',))
    assert split_stops(BYTES, ('</s>',)) == ((), ('</s>',))


# Declarations of <x>, which a tokenizer.json has as an added token, special or not, or only among
# the pieces of its vocabulary.
X = {'content': '<x>', 'lstrip': True, 'special': True}
DECLARED_X = [
    {'tokenizer_config.json': {'additional_special_tokens': ['<x>']}},
    {'tokenizer_config.json': {'extra_special_tokens': ['<x>']}},
    {'tokenizer_config.json': {'extra_special_tokens': {'image_token': '<x>'}}},
    {'special_tokens_map.json': {'additional_special_tokens': ['<x>']}},
    {
        'tokenizer_config.json': {'additional_special_tokens': ['<y>']},
        'special_tokens_map.json': {'additional_special_tokens': ['<x>']},
    },
    {'tokenizer_config.json': {'pad_token': '<x>'}},
    {'tokenizer_config.json': {'added_tokens_decoder': {'2': X}}},
    {'tokenizer_config.json': {'added_tokens_decoder': {'2': X | {'special': False}}}},
    {'added_tokens.json': {'<x>': 2}},
    {'tokenizer_config.json': {'added_tokens_decoder': {}}, 'added_tokens.json': {'<x>': 2}},
]


@pytest.mark.peers
@pytest.mark.parametrize('contents', DECLARED_X)
@pytest.mark.parametrize('has', ['special', 'added', 'piece'])
def test_declared_tokens_are_read_and_left_out_as_stock_does(of_three, contents, has):
    transformers = pytest.importorskip('transformers')

    library = json.loads(of_three.read_text())
    (x,) = (token for token in library['added_tokens'] if token['content'] == '<x>')
    x['special'] = has == 'special'
    if has == 'piece':
        library['added_tokens'].remove(x)
        library['model']['vocab']['<x>'] = x['id']
    of_three.write_text(json.dumps(library))
    config = contents.get('tokenizer_config.json', {}) | CLASS | {'eos_token': '</s>'}
    for name, content in {**contents, 'tokenizer_config.json': config}.items():
        of_three.with_name(name).write_text(json.dumps(content))
    stock = transformers.AutoTokenizer.from_pretrained(of_three.parent)
    found = load_tokenizer(str(of_three))
    text = 'the <x> fox'
    ids = stock(text, add_special_tokens=False).input_ids
    assert encode_with_bos(found, text, False, special=True).tolist() == ids
    assert found.decode(ids) == stock.decode(ids, skip_special_tokens=True)
    plain = stock(text, add_special_tokens=False, split_special_tokens=True).input_ids
    assert found.encode(text).tolist() == plain


@pytest.mark.parametrize(('eos', 'id_of'), [('<x>', 300), ('<unk>', 0), ('</s>', 2)])
def test_marks_beside_a_sentencepiece_model_have_ids_of_their_own(
    tmp_path, sentencepiece_model, eos, id_of
):
    """Also beyond its vocabulary, as in stock. What no text becomes does not count to it."""
    path = tmp_path / 'tokenizer.model'
    path.write_bytes(sentencepiece_model)
    tokens = {'300': {'content': '<x>', 'special': True}, '301': {'content': '[PAD]'}}
    config = {'eos_token': eos, 'pad_token': '[PAD]', 'added_tokens_decoder': tokens}
    path.with_name('tokenizer_config.json').write_text(json.dumps(config))
    found = load_tokenizer(str(path))
    assert found.eos_id == id_of
    assert found.vocab_size == ids_in_use(found) == max(300, id_of + 1)
    assert found.decode([*found.encode('the fox'), 300]) == 'the fox'
    assert split_stops(found, ('<x>', 'fox')) == ((300,), ('fox',))


@pytest.mark.parametrize('level', [False, True])
@pytest.mark.parametrize('wanted', [None, False, True])
@pytest.mark.parametrize('name', ['GPT2TokenizerFast', 'PreTrainedTokenizerFast', 'BloomTokenizer'])
def test_a_prefix_space_is_that_of_the_class(tmp_path, level, wanted, name):
    """Some classes of stock set it anew, False by default; the others leave it."""
    space = {
        'type': 'ByteLevel',
        'add_prefix_space': level,
        'trim_offsets': True,
        'use_regex': True,
    }
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['</s>'], pre_tokenizer=space))
    before = load_tokenizer(str(path)).fingerprint
    config = {'tokenizer_class': name, 'eos_token': '</s>'}
    config |= {} if wanted is None else {'add_prefix_space': wanted}
    path.with_name('tokenizer_config.json').write_text(json.dumps(config))
    found = load_tokenizer(str(path))
    has = bool(wanted) if name == 'GPT2TokenizerFast' else level
    assert (found.encode('fox').tolist() == found.encode(' fox').tolist()) is has
    assert (found.fingerprint != before) is (has != level)


def blanks_json(sentencepiece_model: bytes, tmp_path: pathlib.Path) -> str:
    """A tokenizer.json as conversions of Llama 2 have it: blanks are marked by the normalizer."""
    import tokenizers
    from tokenizers import decoders, normalizers, processors

    path = tmp_path / 'pieces.model'
    path.write_bytes(sentencepiece_model)
    pieces = load_tokenizer(str(path)).processor
    names = [pieces.id_to_piece(i) for i in range(pieces.vocab_size())]
    vocab = {name: i for i, name in enumerate(names)}
    merges = [
        (name[:cut], name[cut:])
        for name in sorted(names, key=lambda name: -pieces.get_score(vocab[name]))
        for cut in range(1, len(name))
        if name[:cut] in vocab and name[cut:] in vocab and not name.startswith('<')
    ]
    model = tokenizers.models.BPE(
        vocab, merges, unk_token='<unk>', fuse_unk=True, byte_fallback=True
    )
    found = tokenizers.Tokenizer(model)
    marked = [normalizers.Prepend('▁'), normalizers.Replace(' ', '▁')]
    found.normalizer = normalizers.Sequence(marked)
    parts = [decoders.Replace('▁', ' '), decoders.ByteFallback(), decoders.Fuse()]
    found.decoder = decoders.Sequence([*parts, decoders.Strip(' ', 1, 0)])
    found.post_processor = processors.TemplateProcessing('<s> $A', special_tokens=[('<s>', 1)])
    found.add_special_tokens(['<unk>', '<s>', '</s>'])
    return found.to_str()


@pytest.mark.peers
@pytest.mark.parametrize(
    'config',
    [
        {},
        {'legacy': False},
        {'legacy': True},
        {'add_prefix_space': False},
        {'tokenizer_class': 'PreTrainedTokenizerFast'},
        {'model_type': 'mistral', 'legacy': False},
        {'model_type': 'llama', 'legacy': False},
    ],
)
def test_blanks_are_those_of_the_class_as_stock_reads_it(tmp_path, sentencepiece_model, config):
    transformers = pytest.importorskip('transformers')

    path = tmp_path / 'tokenizer.json'
    path.write_text(blanks_json(sentencepiece_model, tmp_path))
    beside = {'tokenizer_class': 'LlamaTokenizer', 'bos_token': '<s>', 'eos_token': '</s>'}
    beside |= {'unk_token': '<unk>', **config}
    if model := beside.pop('model_type', None):
        path.with_name('config.json').write_text(json.dumps({'model_type': model}))
    path.with_name('tokenizer_config.json').write_text(json.dumps(beside))
    stock, found = transformers.AutoTokenizer.from_pretrained(tmp_path), load_tokenizer(str(path))
    for text in ('the fox', '  the', 'fox</s>\n<s>the', 'the </s> fox', '\n', '▁the', 'é'):
        ids = stock(text, add_special_tokens=False).input_ids
        assert encode_with_bos(found, text, False, special=True).tolist() == ids, text
        assert found.decode(ids) == stock.decode(ids, skip_special_tokens=True), text
    assert list(found.prefix) == stock('').input_ids


def test_a_prefix_ends_where_the_text_begins(tmp_path):
    """Also where the vocabulary does not spell the usual text."""
    import tokenizers

    model = tokenizers.models.BPE({'A': 0, 'C': 1, '[CLS]': 2, '[SEP]': 3}, [])
    library = tokenizers.Tokenizer(model)
    library.post_processor = tokenizers.processors.TemplateProcessing(
        '[CLS] $A [SEP]', special_tokens=[('[CLS]', 2), ('[SEP]', 3)]
    )
    library.add_special_tokens(['[CLS]', '[SEP]'])
    path = tmp_path / 'tokenizer.json'
    library.save(str(path))
    config = {'eos_token': '[SEP]', 'bos_token': '[CLS]'}
    path.with_name('tokenizer_config.json').write_text(json.dumps(config))
    assert load_tokenizer(str(path)).prefix == (2,)
    config |= {'tokenizer_class': 'GPTNeoXTokenizer'}
    path.with_name('tokenizer_config.json').write_text(json.dumps(config))
    assert load_tokenizer(str(path)).prefix == ()


@pytest.mark.parametrize('model', ['gpt2', 'llama'])
def test_bos_of_gpt_2_is_declared_by_its_class(tmp_path, model):
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['<|endoftext|>']))
    path.with_name('tokenizer_config.json').write_text('{"model_max_length": 1024}')
    path.with_name('config.json').write_text(json.dumps({'model_type': model}))
    assert load_tokenizer(str(path)).bos_id == (0 if model == 'gpt2' else None)


def test_a_declared_null_is_no_bos(tmp_path):
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['<s>', '</s>']))
    assert load_tokenizer(str(path)).bos_id is not None
    (tmp_path / 'tokenizer_config.json').write_text('{"bos_token": null, "eos_token": "</s>"}')
    assert load_tokenizer(str(path)).bos_id is None


@pytest.mark.parametrize('kind', ['WordLevel', 'WordPiece', 'Unigram'])
def test_a_vocabulary_without_an_unknown_piece_names_its_file(tmp_path, kind):
    words = {'</s>': 0, 'the': 1, 'fox': 2}
    models = {
        'WordLevel': {'vocab': words, 'unk_token': '<unk>'},
        'WordPiece': {
            **{'vocab': words, 'unk_token': '<unk>', 'continuing_subword_prefix': '##'},
            'max_input_chars_per_word': 100,
        },
        'Unigram': {'vocab': [[word, -1.0] for word in words], 'unk_id': None},
    }
    path = tmp_path / 'tokenizer.json'
    model = {'type': kind, **models[kind]}
    changes = {'pre_tokenizer': {'type': 'Whitespace'}, 'decoder': None, 'added_tokens': []}
    path.write_text(hugging_face_json(['</s>'], model=model, **changes))
    tokenizer = load_tokenizer(str(path))
    if kind != 'Unigram':  # which looks into every character
        assert tokenizer.encode('the fox').tolist() == [1, 2]
    with pytest.raises(ValueError, match=rf"data\.tokenizer='{path}': it cannot encode every text"):
        tokenizer.encode('the quick fox')


def test_a_number_without_end_in_a_sentencepiece_model_takes_no_time(tmp_path):
    path = tmp_path / 'tokenizer.model'
    path.write_bytes(b'\x0a' + b'\xff' * (4 << 20))
    began = time.process_time()
    with pytest.raises(ValueError, match=r'data\.tokenizer=.*a number without end at byte 1'):
        load_tokenizer(str(path))
    assert time.process_time() - began < 2


def test_a_tokenizer_is_loaded_once_while_its_files_stand(tmp_path):
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['<s>', '</s>']))
    first = load_tokenizer(str(path))
    assert load_tokenizer(str(path)) is first
    beside = path.with_name('tokenizer_config.json')
    for eos in ('<s>', '</s>'):
        beside.write_text(json.dumps({'eos_token': eos}))
        found = load_tokenizer(str(path))
        assert found is not first
        assert found.eos_id == found.tokenizer.token_to_id(eos)


def test_ids_in_use_are_those_of_texts_and_marks(tmp_path):
    """Special tokens that no text becomes, such as that in the place of an image, do not count."""
    content = json.loads(hugging_face_json(['<s>', '</s>']))
    size = len(content['model']['vocab'])
    mark = content['added_tokens'][0]
    path = tmp_path / 'tokenizer.json'
    for number, (special, more) in enumerate([(True, 0), (False, 1)]):
        image = {**mark, 'id': size + 2, 'content': '<image>', 'special': special}
        changed = {**content, 'added_tokens': [*content['added_tokens'], image]}
        path.write_text(json.dumps(changed))
        found = load_tokenizer(str(path))
        assert found.vocab_size > size
        assert (ids_in_use(found) == found.vocab_size) is bool(more), number
        if special:
            assert max(found.encode('<image> the quick')) < ids_in_use(found)
    assert ids_in_use(load_tokenizer('bytes')) == 258
