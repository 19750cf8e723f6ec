"""Errors of libraries in one line."""

from __future__ import annotations

from nope.runtime.errors import brief


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    try:
        raise error from cause
    except Exception as found:
        return found


def test_a_short_error_stays_as_it_is() -> None:
    assert brief(raised(OSError('no space left'), ValueError('inner'))) == 'no space left'


def test_of_a_long_error_the_first_cause_is_told() -> None:
    cause = raised(ValueError('FAILED_PRECONDITION: truncated stream'))
    assert brief(raised(OSError('details:\n' + 'x\n' * 500), cause)) == (
        'FAILED_PRECONDITION: truncated stream'
    )
    assert brief(raised(OSError('details:\n' + 'x\n' * 500))) == 'details:'


def test_an_error_without_words_is_named() -> None:
    assert brief(raised(KeyError())) == 'KeyError'


def test_a_long_line_keeps_what_it_begins_with_and_what_the_system_says() -> None:
    told = brief(raised(OSError(f'Error writing {"/path" * 1000}: No space left on device')))
    assert told.startswith('Error writing /path') and told.endswith(': No space left on device')
    assert 290 < len(told) <= 300
