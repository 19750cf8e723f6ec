"""Where text comes from: the default corpus, or anything else by one field.

`source` is 'stdlib', retrieval:BYTES (synthetic records of so many bytes), or KIND:PATH with KIND
one of tfds, text, jsonl, parquet, shards; `mixture` is a tuple of (source, weight) that takes its
place when given.
"""


def at(size: str) -> dict:
    """The `data` section at a size."""
    section = {
        'source': 'stdlib',
        'mixture': (),
        'field': 'text',
        'tokenizer': 'bytes',
        'eval_source': 0,
    }
    if size == 'paper':
        section['mixture'] = (
            ('shards:shards/slimpajama', 0.693584),
            ('shards:shards/starcoder', 0.306416),
        )
        section['tokenizer'] = 'shards/tokenizer.model'
    return section
