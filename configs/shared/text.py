"""Sections of text evaluations: corpora, the passkey, LongBench, tasks.

`corpora` are documents for perplexity: name -> split, source and the fields of its kind, as in
shared/data.py.
Paper size: PG19 as TensorFlow Datasets prepares it, and a folder proof-pile with a file
test.jsonl (or test.jsonl.zst).
"""

from ml_collections import ConfigDict, FieldReference
from ml_collections.config_dict import placeholder

from configs.shared import data


def add(config: ConfigDict, size: str) -> ConfigDict:
    """Adds the sections at a size; returns the config.

    bos: whether documents and prompts begin with BOS. The paper's do; byte models have never seen
    one. None: with the tokenizer's own prefix (nope/data/prefix.py).
    """
    paper = size == 'paper'
    config.corpora = _corpora(size)
    # stride: tokens scored in a window, None for L / 8 (256 of 2,048). budget: at each length.
    # per_document: windows, None for all: in small budgets the first files would fill them.
    # published: as in the paper, BOS is before a document and not in every window, and each length
    # scores other tokens; False: every window has BOS, and every length scores the same tokens.
    budget = {'quick': 8192, 'small': 16_384, 'medium': 32_768, 'large': 131_072, 'paper': 2**21}[
        size
    ]
    config.perplexity = {
        'stride': placeholder(int),
        'budget': budget,
        'per_document': FieldReference({'large': 96, 'paper': None}.get(size, 20), int),
        'bos': paper,
        'published': paper,
    }
    # short: tokens of the short context, None for L; stride: of its steps, None for L / 4. Paper
    # size has the published ones.
    config.longppl = {
        'short': 4096 if paper else placeholder(int),
        'stride': 1024 if paper else placeholder(int),
        'gain': 2.0,  # nats, as published
        'ceiling': 2.0,
        'budget': budget,
        'bos': paper,
    }
    config.passkey = {
        'template': 'paper' if paper else 'brief',
        'seed': 42,
        'tests': 10,
        'bos': paper,
    }
    config.longbench = {
        'folder': '',
        'datasets': (),  # all sixteen
        'limit': placeholder(int),  # samples of each; None for all
        'max_length': placeholder(int),  # tokens of a prompt; None for the rule of the window
        'beams': 5,
        'bos': paper,
        'beyond': False,  # whether a prompt with its answer may be longer than the window
    }
    config.harness = {
        'files': '',  # a folder, or 'hub'
        'include': '',
        'tasks': (),  # those of Table 1
        'metadata': '',  # JSON for tasks that choose their data
        'bos': False,
        'beyond': not paper,  # whether an answer may be longer than the window
        'limit': placeholder(int),
    }
    config.ruler = {
        'tasks': (),  # those that read no file of the user
        'lengths': (),  # tokens of prompt and answer; none: by `times` of the entry
        'samples': 500,
        'seed': 42,
        'folder': '',  # of essays, SQuAD and HotpotQA, for the other tasks
        'bos': paper,
    }
    return config


def longbench(config: ConfigDict, size: str, window: float) -> dict:
    """The evaluation of a model whose window is `window` L. Answers of up to 512 tokens do not fit
    small windows: there a prompt has half of it, and few samples are asked."""
    entry: dict = {'kind': 'longbench', 'window': window}
    if size != 'paper':
        half = round(window * config.train.length / 2)
        entry['longbench'] = {'max_length': half, 'limit': 4, 'beyond': True}
    return entry


def corpora(config: ConfigDict) -> tuple[dict, ...]:
    """The corpora as tables show them."""
    papers = {
        'pg19': ('PG19', 'pg19'),
        'proof_pile': ('proof-pile', 'proof_pile'),
        'books': ('books', 'pg19'),
    }
    shown = []
    for key in config.corpora:
        label, paper = papers.get(key, ('standard library', 'pg19'))
        shown.append({'key': key, 'label': label, 'paper': paper})
    return tuple(shown)


def _corpora(size: str) -> dict:
    if size == 'large':
        return {'books': {'source': f'jsonl:{data.BOOKS}', 'field': 'text', 'split': 'test'}}
    if size != 'paper':
        return {'stdlib': {'source': 'stdlib', 'field': 'text', 'split': 'test'}}
    return {
        'pg19': {'source': 'tfds:pg19', 'field': 'book_text', 'split': 'test'},
        'proof_pile': {'source': 'jsonl:proof-pile', 'field': 'text', 'split': 'test'},
    }
