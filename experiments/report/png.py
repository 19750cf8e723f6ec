"""PNG pictures in fewer bytes: smaller, with a palette of at most 256 colours."""

from __future__ import annotations

import io

from PIL import Image

MOST_PIXELS = 40_000_000


def size_of(data: bytes) -> tuple[int, int]:
    """Width and height. ValueError for what is no whole PNG, or has more than MOST_PIXELS."""
    try:
        with Image.open(io.BytesIO(data), formats=['PNG']) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise ValueError(
                    f'it has {width} x {height} pixels; accepted are up to {MOST_PIXELS:,}'
                )
            image.load()
    except (OSError, SyntaxError) as error:
        raise ValueError(f'it is no PNG, or is damaged: {error}') from error
    return width, height


def smaller(data: bytes, width: int) -> bytes:
    """The picture at `width` pixels or fewer, on white, with a palette."""
    with Image.open(io.BytesIO(data)) as image:
        drawn = image.convert('RGBA')
    flat = Image.alpha_composite(Image.new('RGBA', drawn.size, 'white'), drawn).convert('RGB')
    if flat.width > width:
        height = max(1, round(flat.height * width / flat.width))
        flat = flat.resize((width, height), Image.Resampling.BOX)
    stream = io.BytesIO()
    flat.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(stream, format='png', optimize=True)
    return stream.getvalue()
