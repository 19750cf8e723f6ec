"""Figures with caption and links, and their pictures in fewer bytes."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import os
import pathlib
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from experiments.figures.look.web import html_of
from experiments.report import png
from experiments.report.problems import UNFIT, Problem, noted
from experiments.report.workfolder import FigureFolder, WorkFolder, relative

WIDTH = 900  # pixels of a picture on the page, at most
LONGEST_ALT = 250


@dataclasses.dataclass(frozen=True)
class Picture:
    """A figure. png: its file's bytes, b'' where there is none. links: (label, path from the
    page). table: HTML of its text, '' where there is none."""

    name: str
    caption: str
    png: bytes
    width: int
    height: int
    links: tuple[tuple[str, str], ...]
    table: str = ''

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def compared(self) -> Any:
        return self.caption, self.digest, self.table

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.png).hexdigest()

    @property
    def alt(self) -> str:
        """The caption's first sentence."""
        first = re.split(r'(?<=[a-z)\]]\.) ', self.caption, maxsplit=1)[0]
        short = (
            first if len(first) <= LONGEST_ALT else f'{first[:LONGEST_ALT]}\N{HORIZONTAL ELLIPSIS}'
        )
        return f'{self.name}: {short}' if short else f'{self.name}, without a caption'


def pictures(folder: WorkFolder, page: pathlib.Path) -> list[Picture]:
    """page: the file that the links start from."""
    return [_picture(folder, figure, page) for figure in folder.figures]


def _picture(folder: WorkFolder, figure: FigureFolder, page: pathlib.Path) -> Picture:
    beside = {
        kind: figure.folder / f'{figure.name}.{kind}'
        for kind in ('png', 'html', 'pdf', 'csv', 'md')
    }
    data, size, table = b'', (0, 0), ''
    where = {kind: relative(path, folder.root) for kind, path in beside.items()}
    if beside['png'].exists():
        with noted(folder.problems, where['png']):
            found = beside['png'].read_bytes()
            size, data = png.size_of(found), found
    elif not beside['html'].exists():
        what = 'the figure has not been drawn'
        folder.problems.append(Problem('missing', where['png'], what))
    if beside['md'].exists():
        with noted(folder.problems, where['md']):
            text = beside['md'].read_text(encoding='utf-8').removesuffix('\n')
            table = html_of(text.removesuffix(figure.caption))
    links = [(k.upper(), _link(f, page)) for k, f in beside.items() if k != 'png' and f.exists()]
    return Picture(figure.name, figure.caption, data, *size, tuple(links), table)


def _link(file: pathlib.Path, page: pathlib.Path) -> str:
    """Path from the page's folder, as in a URL; what names a folder with a colon is no scheme."""
    way = os.path.relpath(os.path.abspath(file), os.path.abspath(page.parent))
    return './' + quote(os.fsencode(way))


def embedded(shown: Iterable[Picture]) -> dict[str, str]:
    """Data URIs by digest, of pictures that can be read, WIDTH pixels wide at most."""
    own = {picture.digest: picture.png for picture in shown if picture.png}
    made = {digest: _smaller(data) for digest, data in own.items()}
    encoded = {k: base64.b64encode(v).decode() for k, v in made.items() if v}
    return {k: f'data:image/png;base64,{text}' for k, text in encoded.items()}


def _smaller(data: bytes) -> bytes:
    try:
        made = png.smaller(data, WIDTH)
    except UNFIT:  # its checksums are right, and yet it cannot be read
        return b''
    return made if len(made) < len(data) else data
