"""Data section: the default corpus, or any other source by one field.

source: KIND or KIND:PATH, one of nope/data/sources: stdlib (the sources of the Python that runs),
    tfds:NAME, text:PATH, jsonl:PATH, parquet:PATH, shards:PATH, or retrieval (synthetic records
    that hide a key and ask for it).
mixture: a tuple of (source, weight) in place of `source`.
field: the column of the text (tfds, jsonl, parquet).
leave_out: (field, value) pairs; such lines are no documents (jsonl).
max_line_bytes: the most that a line or a value may have, unpacked (jsonl, parquet).
record_length: tokens of a record (retrieval); None for the training length of its run.
needles: most keys that a record states; several have names (retrieval).
haystacks: texts that keys are hidden in, each as likely: 'filler', or 'text', the standard library.
documents: 'joined' to one text, or 'apart': attention and positions begin anew with each.
bos: BOS in place of the first token of every training sequence and evaluation window; None for the
    tokenizer's own prefix, if it has one (nope/data/prefix.py).
"""

from ml_collections import config_dict

BOOKS = 'data/books'
TOKENIZER = 'data/books_tokenizer/tokenizer.json'
RECIPE = (  # said where the folder is missing
    'accepted: a folder of JSON lines, made as configs/books/README.md says, by the name '
    f'{BOOKS} or with --config.data.source=jsonl:FOLDER'
)


def at(size: str) -> dict:
    """The `data` section at a size."""
    section = {
        'source': 'stdlib',
        'mixture': (),
        'field': 'text',
        'leave_out': (),
        'max_line_bytes': 64 << 20,
        'record_length': config_dict.placeholder(int),
        'needles': 1,
        'haystacks': ('filler',),
        'tokenizer': 'bytes',
        'eval_source': 0,
        'documents': 'joined',
        'bos': False,
    }
    if size == 'large':
        section |= {'source': f'jsonl:{BOOKS}', 'tokenizer': TOKENIZER}
    if size == 'paper':
        section['mixture'] = (
            ('shards:shards/slimpajama', 0.693584),
            ('shards:shards/starcoder', 0.306416),
        )
        section['tokenizer'] = 'shards/tokenizer.model'
    return section
