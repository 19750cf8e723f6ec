"""Data section: the default corpus, or any other source by one field.

`source` is KIND or KIND:PATH, one of nope/data/sources: stdlib (the sources of the Python that
runs), tfds:NAME, text:PATH, jsonl:PATH, parquet:PATH, shards:PATH, or retrieval (synthetic records
that hide a key and ask for it); `mixture` is a tuple of (source, weight) that takes its place when
given. `field` is the column of the text (tfds, jsonl, parquet). `leave_out` has (field, value)
pairs: such lines are no documents (jsonl). `max_line_bytes` is what a line or a value may have at
most, unpacked (jsonl, parquet). `record_length` is the bytes of a record (retrieval); None stands
for the training length of the run that reads it, the longest of several. `needles` is how many keys
such a record states at most; several have names (retrieval). `haystacks` are what keys are hidden
in, each as likely: 'filler', or 'text', that of the standard library. `documents` of a training
sequence are 'joined' to one text, or kept 'apart': attention and positions begin anew with each.
`bos` puts BOS in place of the first token of every sequence, of training and of evaluation windows;
None puts the tokenizer's own prefix there, if it has one (nope/data/prefix.py).
"""

from ml_collections import config_dict


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
    if size == 'paper':
        section['mixture'] = (
            ('shards:shards/slimpajama', 0.693584),
            ('shards:shards/starcoder', 0.306416),
        )
        section['tokenizer'] = 'shards/tokenizer.model'
    return section
