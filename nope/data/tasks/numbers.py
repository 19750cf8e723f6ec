"""Numbers as the tasks write them: digits apart."""

from __future__ import annotations

import re

DIGITS = '0 1 2 3 4 5 6 7 8 9'

# A number in the form below.
PATTERN = r'(?:- )?[0-9](?: [0-9])*'


def spaced(number: int) -> str:
    """'- 1 6' of -16."""
    return ('- ' if number < 0 else '') + ' '.join(str(abs(number)))


def read(text: str) -> int:
    """-16 of '- 1 6'. ValueError for anything else."""
    if not re.fullmatch(PATTERN, text):
        raise ValueError(f'{text!r} is no number of digits with blanks between')
    return int(text.replace(' ', ''))
