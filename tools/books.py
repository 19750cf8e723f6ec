"""Folder of English books, from a checkout of a public repository (configs/books/README.md).

    python tools/books.py classic-books-markdown data/books

Writes train_0, train_1, validation and test.jsonl, the books of configs/books/titles.tsv in its
order. Exit status 2, with a message, for a checkout that has not these books.
"""

import json
import pathlib
import re
import sys

TITLES = pathlib.Path(__file__).parents[1] / 'configs/books/titles.tsv'
HEADER = re.compile(r'# Title: (.*)\n\s*## Author: (.*)\n\s*## Year: .*\n\s*-+\n')


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    checkout, folder = map(pathlib.Path, arguments)
    found = {}
    for path in sorted(checkout.glob('*/*.md')):
        text = path.read_bytes().decode()  # some line ends are \r\n, and stay
        header = HEADER.match(text)
        if header:
            found[header[2].strip(), header[1].strip()] = plain(text[header.end() :])
    lines: dict[str, list[str]] = {}
    for row in TITLES.read_text('utf-8').splitlines()[1:]:
        split, author, title, year, characters = row.split('\t')
        text = found.get((author, title), '')
        if len(text) != int(characters):
            print(
                f'error: {title!r} by {author} has {len(text)} characters in {checkout}; accepted: '
                f'{characters}, as at commit 9448827 of mlschmitt/classic-books-markdown',
                file=sys.stderr,
            )
            return 2
        book = {'title': title, 'author': author, 'year': int(year), 'text': text}
        lines.setdefault(split, []).append(json.dumps(book, ensure_ascii=False) + '\n')
    folder.mkdir(parents=True, exist_ok=True)
    for split, books in lines.items():
        (folder / f'{split}.jsonl').write_text(''.join(books), 'utf-8', newline='\n')
    return 0


def plain(text: str) -> str:
    """Text with Markdown headings as plain lines."""
    text = re.sub(r'(?m)^#+[ \t]*', '', text)
    text = re.sub(r'[ \t]+\n', '\n', text)
    return re.sub(r'\n{3,}', '\n\n', text).strip() + '\n'


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
