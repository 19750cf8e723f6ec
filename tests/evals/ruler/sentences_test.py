from __future__ import annotations

import pytest

from nope.evals.ruler.sentences import split


@pytest.mark.parametrize(
    ('text', 'sentences'),
    [
        ('One. Two! Three? Four', ['One.', 'Two!', 'Three?', 'Four']),
        ('He said "No." Then (why?) he left.', ['He said "No."', 'Then (why?) he left.']),
        ('\u201cYes.\u201d And so on...', ['\u201cYes.\u201d', 'And so on...']),
        (
            'Dr. Who and J. R. Smith met, e.g. Mr. X. End.',
            ['Dr. Who and J. R. Smith met, e.g. Mr. X. End.'],
        ),
        ('So do I. You too.', ['So do I.', 'You too.']),
        (
            'Version 2.5 is out... and good. 10 people came.',
            ['Version 2.5 is out... and good.', '10 people came.'],
        ),
        ('', []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str]) -> None:
    assert split(text) == sentences


def test_no_word_is_lost() -> None:
    text = 'A (b.) C! "D." e? F.G. Hij. K'
    assert ' '.join(split(text)) == text
