from __future__ import annotations

import base64
import io

import matplotlib.image
import numpy as np
import pytest

from experiments.report import pictures, png
from experiments.report.pictures import Picture


def encoded(image: np.ndarray) -> bytes:
    stream = io.BytesIO()
    matplotlib.image.imsave(stream, image, format='png')
    return stream.getvalue()


def decoded(data: bytes) -> np.ndarray:
    return matplotlib.image.imread(io.BytesIO(data), format='png')[..., :3]


def drawing(height: int = 300, width: int = 500) -> np.ndarray:
    """Some colours on white, RGBA."""
    image = np.full((height, width, 4), 255, np.uint8)
    image[100:120, :, :3] = (0, 114, 178)
    image[:, 50:60, :3] = (213, 94, 0)
    return image


def test_a_drawing_keeps_its_colours_and_loses_bytes() -> None:
    image = drawing()
    data = encoded(np.repeat(np.repeat(image, 2, axis=0), 2, axis=1))
    small = png.smaller(data, 500)
    assert png.size_of(small) == (500, 300)
    assert len(small) < len(data)
    np.testing.assert_allclose(decoded(small), image[..., :3] / 255, atol=1 / 255)


def test_what_was_transparent_is_white() -> None:
    image = np.zeros((4, 4, 4), np.uint8)
    np.testing.assert_array_equal(decoded(png.smaller(encoded(image), 4)), np.ones((4, 4, 3)))


@pytest.mark.parametrize('cut', [8, 100])
def test_a_picture_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(ValueError, match='PNG'):
        png.size_of(encoded(drawing())[:cut])


def test_a_picture_with_a_flipped_byte_is_refused() -> None:
    data = bytearray(encoded(drawing()))
    data[len(data) // 2] ^= 1
    with pytest.raises(ValueError, match='is damaged'):
        png.size_of(bytes(data))


def test_a_picture_of_too_many_pixels_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png, 'MOST_PIXELS', 500 * 300 - 1)
    with pytest.raises(ValueError, match='500 x 300 pixels'):
        png.size_of(encoded(drawing()))


def shown(image: np.ndarray, name: str = 'a') -> Picture:
    return Picture(name, '', encoded(image), image.shape[1], image.shape[0], ())


def test_pictures_are_embedded_once_and_no_wider_than_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pictures, 'WIDTH', 500)
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 255, (200, 700, 3), dtype=np.uint8)
    small, wide = shown(drawing()), shown(noise)
    uris = pictures.embedded([small, wide, small])
    sizes = {k: png.size_of(base64.b64decode(v.partition(',')[2])) for k, v in uris.items()}
    assert sizes == {small.digest: (500, 300), wide.digest: (500, 143)}


def test_the_text_of_a_picture_is_the_first_sentence_of_its_caption() -> None:
    caption = 'Loss (nats, 0.5 of L) by position. The rest is long.'
    assert Picture('fig1', caption, b'', 0, 0, ()).alt == 'fig1: Loss (nats, 0.5 of L) by position.'
    assert Picture('fig1', '', b'', 0, 0, ()).alt == 'fig1, without a caption'
    assert len(Picture('fig1', 'x' * 999, b'', 0, 0, ()).alt) < 300
