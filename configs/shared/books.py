"""Argument `books`: a config on English books in the place of Python's standard library.

    nope run fig1:quick,books --workdir=work/quick
    nope run fig1:quick,books=FOLDER --workdir=work/quick

The figure is `fig1_books`. The books are a folder of JSON lines (configs/books/README.md says how
to make it), `data/books` where none is named. Model, L, steps and windows are as without. Of a
mixture with retrieval records the text alone is exchanged. Records that hide keys in text (the
haystack 'text') would still hide them in the standard library.
"""

from ml_collections import ConfigDict

from configs.shared import data

NAME = 'books'
SIZES = ('quick', 'small', 'medium')  # those of the default text


def put(config: ConfigDict, folder: str = data.BOOKS) -> None:
    """Puts the books in the place of the standard library."""
    source = f'jsonl:{folder}'
    if config.data.mixture:
        mixture = config.data.mixture
        config.data.mixture = tuple((source if s == 'stdlib' else s, w) for s, w in mixture)
    else:
        config.data.source = source
    config.recipe = data.RECIPE


def also(get_config):
    """`get_config` of a config on the default text, with the argument `books` besides."""

    def with_books(argument: str = 'quick') -> ConfigDict:
        size, *more = argument.split(',')
        if size not in SIZES or not more:
            return get_config(argument)
        config = get_config(size)
        name, equals, folder = more[0].partition('=')
        if len(more) > 1 or name != NAME or bool(equals) != bool(folder):
            raise ValueError(
                f'{config.name}: {",".join(more)!r} is unknown; accepted after the size: '
                f'{NAME}, {NAME}=FOLDER'
            )
        put(config, folder or data.BOOKS)
        suffix = '' if size == 'quick' else f'_{size}'
        config.name = f'{config.name.removesuffix(suffix)}_{NAME}{suffix}'
        return config

    return with_books
