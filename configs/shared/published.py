"""Published models that take part in a table where a Hugging Face directory is given.

`NAME:paper,bloom=DIR,mpt=DIR` names Hugging Face directories; without one the row or
panel says that it is missing.
"""

from ml_collections import ConfigDict

LABELS = {'bloom': ('BLOOM 1.1B', 'BLOOM-1.1B'), 'mpt': ('MPT 7B', 'MPT-7B')}

TEXT = {'bos': False}  # their tokenizers put no BOS in front of text


def parse(argument: str, *besides: str) -> tuple[str, dict[str, str]]:
    """'paper,mpt=DIR' -> 'paper', {'mpt': 'DIR'}. besides: what else a config takes there, for
    messages. ValueError for another name."""
    size, *given = argument.split(',')
    directories = {}
    for part in given:
        name, _, path = part.partition('=')
        if name not in LABELS or not path:
            raise ValueError(
                f'{part!r} is unknown; accepted after the size: '
                + ', '.join((*(f'{known}=DIR' for known in LABELS), *besides))
            )
        directories[name] = path
    return size, directories


def add(config: ConfigDict, directories: dict[str, str]) -> None:
    """Runs of the models whose directories are given; each reads text with its own tokenizer."""
    for name, path in directories.items():
        config.runs[name] = {'init': f'hf:{path}', 'own_tokenizer': True}


def missing(name: str) -> str:
    """Reason why a row is empty."""
    return f'no directory was given ({name}=DIR)'
