from __future__ import annotations

import json
import pathlib
import shutil

import pytest
import tensorflow_datasets as tfds

from nope.data.sources import Tfds
from tests.data.sources.corpora import ROWS, read_all, texts_of


class TinyBooks(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version('1.2.3')

    def _info(self):
        features = tfds.features.FeaturesDict({'book_text': tfds.features.Text()})
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, dl_manager):
        return {'train': self._generate_examples(30), 'validation': self._generate_examples(5)}

    def _generate_examples(self, count):
        for i in range(count):
            yield i, {'book_text': ROWS[i]}


@pytest.fixture(scope='module')
def tiny_books(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp('tfds')
    TinyBooks(data_dir=folder, file_format='array_record').download_and_prepare()
    tfds.core.add_data_dir(folder)
    return folder


@pytest.mark.parametrize('by_name', [True, False])
@pytest.mark.parametrize('part_bytes', [1, 500, 1 << 20])
def test_tfds_reads_its_own_splits(tiny_books, tmp_path, by_name, part_bytes):
    path = 'tiny_books' if by_name else str(tiny_books / 'tiny_books' / '1.2.3')
    source = Tfds(path, field='book_text')
    documents = read_all(source, tmp_path, part_bytes)
    assert sorted(texts_of(documents, 'train')) == sorted(ROWS[:30])
    assert sorted(texts_of(documents, 'validation')) == sorted(ROWS[:5])


def test_tfds_errors_name_the_field(tiny_books, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"data\.source: .*not prepared 'no_such_set'"):
        read_all(Tfds('no_such_set'), tmp_path)
    with pytest.raises(ValueError, match=r"data\.field='text'.*book_text"):
        read_all(Tfds('tiny_books'), tmp_path)


@pytest.mark.parametrize('name', ['dataset_info.json', 'features.json'])
@pytest.mark.parametrize('content', ['', 'null', '[1]', '{"splits": 3}', '\x00', '[' * 100_000])
def test_a_damaged_description_is_refused_by_its_folder(tiny_books, tmp_path, name, content):
    folder = tmp_path / '1.2.3'
    shutil.copytree(tiny_books / 'tiny_books' / '1.2.3', folder)
    (folder / name).write_text(content)
    source = Tfds(str(folder), field='book_text')
    for read in (source.identity, lambda: read_all(source, tmp_path)):
        with pytest.raises(ValueError, match=rf'data\.source: {folder} is no data set that can be'):
            read()


def test_a_feature_that_is_no_text_is_refused_by_its_field(tiny_books, tmp_path):
    folder = tmp_path / '1.2.3'
    shutil.copytree(tiny_books / 'tiny_books' / '1.2.3', folder)
    text = (folder / 'features.json').read_text()
    tensor = {'pythonClassName': 'tensorflow_datasets.core.features.tensor_feature.Tensor'}
    tensor['tensor'] = {'shape': {}, 'dtype': 'int64', 'encoding': 'none'}
    found = json.loads(text)
    found['featuresDict']['features']['book_text'] = tensor
    (folder / 'features.json').write_text(json.dumps(found))
    with pytest.raises(ValueError, match=rf'{folder}'):
        read_all(Tfds(str(folder), field='book_text'), tmp_path)


MARKED = "import pathlib\npathlib.Path(__file__).with_suffix('.imported').touch()\n"


def named_class(text: str, how: str) -> str:
    """features.json that names the class `elsewhere.Feature` for its field, in one of the ways that
    TFDS reads."""
    found = json.loads(text)
    fields = found['featuresDict']['features']
    if how == 'type':
        fields = {'book_text': {'type': 'elsewhere.Feature', 'content': {}}}
        return json.dumps({'type': found['pythonClassName'], 'content': fields})
    feature = fields['book_text']
    feature[how] = 'elsewhere.Feature'
    if how != 'pythonClassName':
        del feature['pythonClassName']
    return json.dumps(found)


@pytest.mark.parametrize('by_name', [True, False])
@pytest.mark.parametrize('how', ['pythonClassName', 'python_class_name', 'type'])
def test_a_class_outside_tfds_is_refused_and_not_imported(
    tiny_books, tmp_path, monkeypatch, how, by_name
):
    (tmp_path / 'elsewhere.py').write_text(MARKED)
    monkeypatch.syspath_prepend(tmp_path)
    name = f'books_{how.lower()}'  # its own: TFDS keeps the folders that it was told of
    folder = tmp_path / name / '1.2.3'
    shutil.copytree(tiny_books / 'tiny_books' / '1.2.3', folder)
    path = folder / 'features.json'
    path.write_text(named_class(path.read_text(), how))
    if by_name:
        tfds.core.add_data_dir(tmp_path)
    source = Tfds(name if by_name else str(folder), field='book_text')
    message = rf"data\.source: {path} names the class 'elsewhere\.Feature', .*tensorflow_datasets$"
    for read in (source.identity, lambda: read_all(source, tmp_path)):
        with pytest.raises(ValueError, match=message):
            read()
    assert not (tmp_path / 'elsewhere.imported').exists()
