"""JSON lines, plain and packed, and text files, against other readers of the same bytes."""

from __future__ import annotations

import gzip
import json
import pathlib
import zlib

import pyarrow as pa
import zstandard

from nope.data.sources import JsonLines, Source, Text
from tests.fuzz.case import Case, Target, attempt, expect, fresh
from tests.fuzz.mutation import Draw, choice, json_bytes, json_mutated, mutated, one_in

ROWS = [
    {'text': f'row {i} ' + 'words é \u2028 \\" ' * (i % 5), 'id': i, 'meta': {'a': [i, None]}}
    for i in range(24)
]
PLAIN = b''.join(json.dumps(row, ensure_ascii=bool(row['id'] % 2)).encode() + b'\n' for row in ROWS)
LINE_BYTES = 4000


def packings() -> dict[str, bytes]:
    """The lines in files of one and of several members or frames, with checks and without."""
    half = len(PLAIN) // 2
    checked = zstandard.ZstdCompressor(write_checksum=True)
    return {
        'a.jsonl.gz': gzip.compress(PLAIN),
        'b.jsonl.gz': gzip.compress(PLAIN[:half]) + gzip.compress(PLAIN[half:]),
        'c.jsonl.zst': checked.compress(PLAIN),
        'd.jsonl.zst': checked.compress(PLAIN[:half]) + checked.compress(PLAIN[half:]),
    }


def texts_of_lines(data: bytes) -> list[bytes] | None:
    """Texts of JSON lines by a reader that knows nothing of ours; None for lines that are not."""
    found = []
    for line in data.split(b'\n'):
        if not line.strip():
            continue
        if len(line) >= LINE_BYTES:
            return None
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(row, dict) or not isinstance(row.get('text'), str):
            return None
        found.append(row['text'].encode('utf-8', 'replace'))
    return found


def unpacked(name: str, data: bytes) -> bytes | None:
    """Content of a packed file by another library than ours uses; None where it finds damage."""
    return _gunzipped(data) if name.endswith('.gz') else _unzstd(data)


def _gunzipped(data: bytes) -> bytes | None:
    content = b''
    while data.strip(b'\0'):
        member = zlib.decompressobj(wbits=31)
        try:
            content += member.decompress(data)
        except zlib.error:
            return None
        if not member.eof:
            return None
        data = member.unused_data
    return content


def _unzstd(data: bytes) -> bytes | None:
    try:
        return pa.CompressedInputStream(pa.BufferReader(data), 'zstd').read()
    except (pa.ArrowException, OSError):
        return None


def documents(source: Source, folder: pathlib.Path, part_bytes: int) -> list[bytes]:
    parts = source.list_parts(folder, part_bytes)
    return [text for part in parts for _, text in part.documents()]


def _lines(folder: pathlib.Path) -> Case:
    paths = fresh(folder)

    def case(draw: Draw) -> bool:
        data = _changed_lines(draw)
        path = next(paths).with_suffix('.jsonl')
        path.write_bytes(data)
        source = JsonLines(str(path), max_line_bytes=LINE_BYTES)
        part_bytes = int(choice(draw, (300, 1 << 20, 1 << 20)))
        accepted, found = attempt(lambda: documents(source, folder, part_bytes), path)
        path.unlink()
        wanted = texts_of_lines(data)
        expect(accepted == (wanted is not None), f'accepted: {accepted}, {found!r:.300}')
        expect(not accepted or found == wanted, 'other documents than the lines hold')
        return accepted

    return case


def _changed_lines(draw: Draw) -> bytes:
    kind = draw.integers(6)
    if kind == 0:
        return PLAIN
    if kind < 3:
        return mutated(draw, PLAIN, [PLAIN])
    lines = [json.dumps(row).encode() for row in ROWS]
    for _ in range(int(draw.integers(1, 3))):
        number = int(draw.integers(len(lines)))
        row = ROWS[number]
        if kind == 3:
            lines[number] = json_bytes(draw, row).replace(b'\n', b' ')
        elif kind == 4:
            lines[number] = json.dumps(json_mutated(draw, row)).encode()
        else:
            lines[number] = choice(draw, (b'', b' \t', lines[number] + b'\r', b'{}', b'\0'))
    return choice(draw, (b'\n', b'\n', b'\r\n', b'\n\n')).join(lines) + choice(draw, (b'', b'\n'))


def _packed(folder: pathlib.Path) -> Case:
    files, original = packings(), texts_of_lines(PLAIN)
    paths = fresh(folder)

    def case(draw: Draw) -> bool:
        name = choice(draw, sorted(files))
        sound = one_in(draw, 16)
        data = files[name] if sound else mutated(draw, files[name], list(files.values()))
        path = next(paths).with_name(f'{draw.integers(1 << 60)}{name}')
        path.write_bytes(data)
        source = JsonLines(str(path), max_line_bytes=LINE_BYTES)
        accepted, found = attempt(lambda: documents(source, folder, 1 << 20), path)
        path.unlink()
        expect(accepted or not sound, f'a sound file is refused: {found}')
        if accepted and found != original:
            content = unpacked(name, data)
            wanted = None if content is None else texts_of_lines(content)
            expect(found == wanted, 'other documents than the file holds')
        return accepted

    return case


def _bombs(folder: pathlib.Path) -> Case:
    """A few kilobytes that unpack to gigabytes: of one line, and of many."""
    zeros, lines = bytes(1 << 26), (b' ' * 1023 + b'\n') * (1 << 16)
    gz, zst = zlib.compressobj(9, wbits=31), zstandard.ZstdCompressor().compressobj()
    long = {'long.jsonl.gz': gz, 'long.jsonl.zst': zst}
    files = {
        name: b''.join(packer.compress(zeros) for _ in range(17)) + packer.flush()
        for name, packer in long.items()
    }
    files['many.jsonl.gz'] = gzip.compress(lines + b'{"text": "end"}')
    for name, data in files.items():
        (folder / name).write_bytes(data)

    def case(draw: Draw) -> bool:
        path = folder / choice(draw, sorted(files))
        source = JsonLines(str(path), max_line_bytes=1 << 20)
        accepted, found = attempt(lambda: documents(source, folder, 1 << 20), path)
        many = path.name.startswith('many')
        expect(accepted == many and (not many or found == [b'end']), f'{path.name}: {found!r:.300}')
        return accepted

    return case


def _text(folder: pathlib.Path) -> Case:
    """Folders of any bytes under any names: every byte of what is text is in one document."""
    homes = fresh(folder)
    names = ('a.txt', 'train/x', 'test/b', 'validation.txt', '.hidden', 'sub/é.txt', 'train.txt')

    def case(draw: Draw) -> bool:
        home = next(homes)
        contents: dict[str, bytes] = {}
        for name in draw.permutation(names)[: int(draw.integers(1, 5))]:
            data = mutated(draw, PLAIN, [PLAIN, b'\0', b'\xff\xfe'])
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            if not (home / name).parent.is_dir() or (home / name).exists():
                continue
            (home / name).write_bytes(data)
            if not name.startswith('.') and b'\0' not in data[: 8 << 10]:
                contents[name] = data
        accepted, found = attempt(lambda: _by_split(Text(str(home)), folder), home)
        expect(accepted == bool(contents), f'{accepted}: {sorted(contents)}, {found!r:.200}')
        if accepted:
            every = sorted(b''.join(contents.values()))
            declared = Text(str(home))._files()[1]
            if declared:
                every = sorted(b''.join(contents[name] for name in declared))
            expect(sorted(b''.join(t for _, t in found)) == every, 'bytes are missing')
        return accepted

    return case


def _by_split(source: Source, folder: pathlib.Path) -> list[tuple[str, bytes]]:
    return [found for part in source.list_parts(folder, 500) for found in part.documents()]


TARGETS: tuple[Target, ...] = (
    Target('lines.jsonl', 60, _lines),
    Target('lines.packed', 100, _packed),
    Target('lines.bombs', 1, _bombs),
    Target('lines.text', 40, _text),
)
