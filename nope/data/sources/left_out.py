"""Files that a corpus leaves out of its folder: reasons, numbers, folders of another kind of data.

Nothing is left out without a word. It is said once, as a warning where a person may have meant such
a file, with a number and an example for each reason.
"""

from __future__ import annotations

import collections
import pathlib
import re
from collections.abc import Mapping, Sequence

from nope.data.sources import suffixes

# Reasons.
HIDDEN, EMPTY, CYCLE, BROKEN = 'hidden', 'empty', 'link to a folder around it', 'broken link'
BINARY, UNREADABLE, SUFFIX = 'binary', 'damaged UTF-16', 'of another suffix'

# Names, in small letters, that nobody takes for a part of a corpus which leaves out their reason.
_MEDIA = r'png|jpe?g|gif|svg|ico|webp|bmp|tiff?|mp[34]|wav|flac|ogg|avi|mov|[ot]tf|woff2?|pyc|so|o'
_ASIDE = {
    HIDDEN: re.compile('.*'),
    EMPTY: re.compile('.*'),
    CYCLE: re.compile('.*'),
    BINARY: re.compile(rf'.*\.({_MEDIA})'),
    SUFFIX: re.compile(
        r'(readme|licen[cs]e|notice|citation|changelog|_success|makefile)(\..*)?|'
        rf'.*\.({_MEDIA}|md|rst|py|sh|ya?ml|toml|cfg|ini|lock|bib|cff|crc|md5|sha\d+)'
    ),
}
# Those that describe data: of `datasets`, and of others or anyone.
_LAID_OUT = ('dataset_info.json', 'dataset_infos.json', 'dataset_dict.json', 'state.json')
_DESCRIPTION = re.compile(
    r'(readme|licen[cs]e|notice|citation)(\..*)?|(features|metadata|plan|unit-.*)\.json'
)


class LeftOut:
    """Files left out of a folder, by reason."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = collections.defaultdict(list)

    def add(self, reason: str, name: str) -> None:
        """name: POSIX path below the folder."""
        self._names[reason].append(name)

    def __bool__(self) -> bool:
        return bool(self._names)

    def __str__(self) -> str:
        """'2 binary (a.dat), 1 hidden (.b)'; what surprises first."""
        order = sorted(self._names, key=lambda reason: not self._surprising(reason))
        parts = []
        for reason in order:
            example = min(self._surprising(reason) or self._names[reason])
            parts.append(f'{len(self._names[reason])} {reason} ({example})')
        return ', '.join(parts) or 'nothing'

    def surprises(self) -> bool:
        """Whether a person may have meant one of the files."""
        return any(map(self._surprising, self._names))

    def _surprising(self, reason: str) -> list[str]:
        aside = _ASIDE.get(reason)
        names = self._names[reason]
        return [n for n in names if aside is None or not aside.fullmatch(_last(n).name.lower())]

    def other_data(self, found: Sequence[str]) -> tuple[str, list[str]] | None:
        """(kind, files) of the data that a folder holds instead, by `suffixes.kind_of`.

        All files that are found only describe data then. Or the data are binary, in the layout of
        `datasets` or the hub, and no more other files are found than data.
        """
        left = [*self._names.get(BINARY, ()), *self._names.get(SUFFIX, ())]
        data = [n for n in left if suffixes.kind_of(_last(n)) and not _describes(n)]
        rest = [n for n in found if not _describes(n)]
        laid_out = '.gitattributes' in self._names.get(HIDDEN, ()) or any(
            _last(n).name in _LAID_OUT for n in (*found, *left)
        )
        mostly = laid_out and BINARY in self._names and len(rest) <= len(data)
        if not data or (rest and not mostly):
            return None
        kinds: Mapping[str, list[str]] = collections.defaultdict(list)
        for name in sorted(data):
            kinds[suffixes.kind_of(_last(name)) or ''].append(name)
        return max(kinds.items(), key=lambda item: len(item[1]))


def _last(name: str) -> pathlib.PurePosixPath:
    return pathlib.PurePosixPath(name)


def _describes(name: str) -> bool:
    last = _last(name).name.lower()
    return last in _LAID_OUT or _DESCRIPTION.fullmatch(last) is not None
