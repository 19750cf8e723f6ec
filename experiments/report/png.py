"""PNG pictures in fewer bytes: smaller, with a palette of at most 256 colours."""

from __future__ import annotations

import importlib
import io
import struct
import zlib

import numpy as np

SIGNATURE = b'\x89PNG\r\n\x1a\n'
MOST_PIXELS = 40_000_000


def size_of(data: bytes) -> tuple[int, int]:
    """Width and height. ValueError for what is no whole PNG, or has more than MOST_PIXELS."""
    if data[:8] != SIGNATURE or data[12:16] != b'IHDR' or len(data) < 33:
        raise ValueError('it is no PNG')
    width, height = struct.unpack('>II', data[16:24])
    if not 0 < width * height <= MOST_PIXELS:
        raise ValueError(f'it has {width} x {height} pixels; accepted are up to {MOST_PIXELS:,}')
    _check_chunks(data)
    return width, height


def _check_chunks(data: bytes) -> None:
    """ValueError where a chunk is cut short or has not the checksum that it says."""
    start, kind = 8, b''
    while kind != b'IEND':
        length, kind = struct.unpack('>I4s', data[start : start + 8].ljust(8, b'\0'))
        end = start + 8 + length
        said = data[end : end + 4]
        if len(said) < 4 or struct.unpack('>I', said)[0] != zlib.crc32(data[start + 4 : end]):
            raise ValueError(f'the PNG is damaged from byte {start:,} on')
        start = end + 4


def smaller(data: bytes, width: int) -> bytes:
    """The picture at `width` pixels or fewer, on white, with a palette."""
    image_HWC = importlib.import_module('matplotlib.image').imread(io.BytesIO(data), format='png')
    rgb_HWC = _shrunk(_opaque(image_HWC), width)
    return _with_palette(np.round(rgb_HWC * 255).astype(np.uint8))


def _opaque(image: np.ndarray) -> np.ndarray:
    """[H, W, 3] in 0 .. 1 on white, of grey, RGB or RGBA."""
    if image.ndim == 2:
        return np.repeat(image[..., None], 3, axis=2)
    if image.shape[2] == 4:
        alpha = image[..., 3:]
        return image[..., :3] * alpha + (1 - alpha)
    return image


def _shrunk(image_HWC: np.ndarray, width: int) -> np.ndarray:
    """Means over areas, so that lines keep their weight; edges of areas are whole pixels."""
    high, wide, _ = image_HWC.shape
    if wide <= width:
        return image_HWC
    height = max(1, round(high * width / wide))
    rows, columns = (np.arange(n) * full // n for n, full in ((height, high), (width, wide)))
    summed = np.add.reduceat(np.add.reduceat(image_HWC, rows, axis=0), columns, axis=1)
    counts = np.diff([*rows, high])[:, None] * np.diff([*columns, wide])[None]
    return summed / counts[..., None]


def _with_palette(image_HWC: np.ndarray) -> bytes:
    """PNG of uint8 [H, W, 3], colours rounded until there are at most 256."""
    shades = np.arange(256) / 255
    for bits in range(8, 0, -1):
        levels = (1 << bits) - 1
        steps = np.round(shades * levels).astype(np.uint32)[image_HWC]
        packed = (steps[..., 0] << 16) | (steps[..., 1] << 8) | steps[..., 2]
        if _distinct(packed) <= 256:
            break
    colors, index = np.unique(packed, return_inverse=True)
    parts = np.stack([colors >> 16, (colors >> 8) & 255, colors & 255], axis=1)
    palette = np.round(parts * 255 / levels).astype(np.uint8)
    high, wide = packed.shape
    pixels_HW = index.reshape(high, wide).astype(np.uint8)
    lines = np.concatenate([np.zeros((high, 1), np.uint8), pixels_HW], axis=1)  # filter: none
    header = struct.pack('>IIBBBBB', wide, high, 8, 3, 0, 0, 0)
    return b''.join(
        [
            SIGNATURE,
            _chunk(b'IHDR', header),
            _chunk(b'PLTE', palette.tobytes()),
            _chunk(b'IDAT', zlib.compress(lines.tobytes(), 9)),
            _chunk(b'IEND', b''),
        ]
    )


def _distinct(packed: np.ndarray) -> int:
    """Number of distinct colours, counted without sorting."""
    seen = np.zeros(1 << 24, bool)
    seen[packed] = True
    return int(np.count_nonzero(seen))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
