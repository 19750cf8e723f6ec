"""Records of synthetic retrieval documents: a key in a haystack, asked for repeatedly.

A record is a prompt of `templates.BRIEF` with its answer, then further questions, each after some
hay and with the answer. It states one key only: of several without names, a model learns to read
the nearest one instead of the one that matches. A record may be allowed several keys, and states 1
up to so many, every number as likely. One is stated alone as above, several by their names
(`templates.BRIEF_NAMED`). Every question asks for any one of them. A record has no ending and
is cut off in the middle of anything: what always stands at the end of a block, a model without
position encoding learns to expect by the position, and beyond the training length it expects it
everywhere.

Hay is repeats of the template's filler, or running text that a key may cut anywhere.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence

from nope.data.splits import split_of
from nope.data.templates import BRIEF, BRIEF_NAMED, FILLER, KEYS, NAMES, TEXT, shortest_named


class Filler:
    """Hay of repeats of the template's filler, in pieces of `unit` characters that no key cuts."""

    unit = len(BRIEF.filler)

    def take(self, pieces: int) -> str:
        """The next so many pieces."""
        return pieces * BRIEF.filler


@dataclasses.dataclass
class Text:
    """Hay of running text from character `place` on; behind its end it begins anew."""

    text: str
    place: int
    unit = 1

    def take(self, pieces: int) -> str:
        begin, self.place = self.place, (self.place + pieces) % len(self.text)
        around = (begin + pieces) // len(self.text)
        return (self.text + around * self.text if around else self.text)[begin : begin + pieces]


Hay = Filler | Text


def shortest(needles: int) -> int:
    """Bytes of the longest prompt without hay of up to `needles` keys, and its answer."""
    return BRIEF.shortest if needles == 1 else shortest_named(needles)


def record(
    split: str,
    index: int,
    size: int,
    needles: int = 1,
    haystacks: Sequence[str] = (FILLER,),
    text: str = '',
) -> str:
    """Record `index` of a split: size + 1 characters, with a whole prompt and answer in `size`.

    The first prompt has from none up to as many pieces of hay as fit with the answer. Every number
    is as likely, and every depth of each key. Before a further question a coin decides after each
    filler, or as much text, whether there is another. Before one for a named key there is half as
    much. It states one key, or 1 to `needles` named ones. No two splits share a key
    (`splits.split_of`), so they share no record. Passkey evaluation asks for any key, as the paper
    does. Training may have stated nine of ten, but the answer is in the prompt all the same.
    haystacks: of `templates.HAYSTACKS`, each as likely. text: the split's, for the haystack 'text'.
    """
    return longer(split, index, size, len, needles, haystacks, text)[: size + 1]


def longer(
    split: str,
    index: int,
    size: int,
    measure: Callable[[str], int],
    needles: int = 1,
    haystacks: Sequence[str] = (FILLER,),
    text: str = '',
) -> str:
    """A text of more than `size`, which a record begins with: as `record`, where `measure` says how
    long a text is. The hay is filler unless it counts characters. ValueError where not even a
    prompt without hay and its answer are within `size`."""
    seed = f'{split} {index}' + (f' of {needles}' if needles > 1 else '')
    hay: Hay = Filler()
    if TEXT in haystacks:
        draw = random.Random(f'{seed} in {" or ".join(haystacks)}')
        if haystacks[_up_to(draw, len(haystacks) - 1)] == TEXT:
            hay = Text(text, _up_to(draw, len(text) - 1))
    else:
        draw = random.Random(seed)
    count = 1 + _up_to(draw, needles - 1) if needles > 1 else 1
    if count > 1:
        return _of_named_keys(draw, split, size, measure, count, hay)
    key = _draw_key(draw, split)
    question = BRIEF.question + BRIEF.answer(key)
    pieces = _up_to(draw, _room(size, measure, BRIEF.task + BRIEF.state(key) + question, hay))
    before = _up_to(draw, pieces)
    text = BRIEF.task + hay.take(before) + BRIEF.state(key) + hay.take(pieces - before) + question
    return _filled(text, size, measure, lambda: _more(hay, _heads(draw)) + question)


def _room(size: int, measure: Callable[[str], int], bare: str, hay: Hay) -> int:
    """Pieces of hay that fit within `size` beside a prompt without hay and its answer."""
    left = size - measure(bare)
    if left < 0:
        raise ValueError(f'a prompt without filler and its answer take {measure(bare)}')
    return left // (measure(BRIEF.filler) if isinstance(hay, Filler) else hay.unit)


def _of_named_keys(
    draw: random.Random, split: str, size: int, measure: Callable[[str], int], count: int, hay: Hay
) -> str:
    """As `longer`, of `count` keys; no two share a name or a key."""
    keys: dict[str, str] = {}
    while len(keys) < count:
        name, key = NAMES[_up_to(draw, len(NAMES) - 1)], _draw_key(draw, split)
        if name not in keys and key not in keys.values():
            keys[name] = key
    names = list(keys)
    stated = ''.join(BRIEF_NAMED.state(key, name) for name, key in keys.items())
    bare = BRIEF_NAMED.task + stated + _question(names[0], keys)
    pieces = _up_to(draw, _room(size, measure, bare, hay))
    places = {name: _up_to(draw, pieces) for name in names}
    text, begin = BRIEF_NAMED.task, 0
    for name in sorted(names, key=places.__getitem__):
        text += hay.take(places[name] - begin) + BRIEF_NAMED.state(keys[name], name)
        begin = places[name]
    text += hay.take(pieces - begin) + _question(names[_up_to(draw, count - 1)], keys)
    # Questions are what teaches names: most follow at once.
    return _filled(
        text,
        size,
        measure,
        lambda: _more(hay, _heads(draw) // 2) + _question(names[_up_to(draw, count - 1)], keys),
    )


def _filled(text: str, size: int, measure: Callable[[str], int], more: Callable[[], str]) -> str:
    """A text, and more of it until it is longer than `size`."""
    length = measure(text)
    while length <= size or measure(text) <= size:  # the parts of a text may be longer than it is
        added = more()
        text += added
        length += measure(added)
    return text


def _question(name: str, keys: Mapping[str, str]) -> str:
    """A question for one of several keys, with its answer."""
    return BRIEF_NAMED.ask(name) + BRIEF_NAMED.answer(keys[name])


def _draw_key(draw: random.Random, split: str) -> str:
    while True:
        key = str(KEYS.start + _up_to(draw, len(KEYS) - 1))
        if split_of(key.encode()) == split:
            return key


def _more(hay: Hay, fillers: int) -> str:
    """As much hay as so many fillers, apart from the digits of the answer before it."""
    found = hay.take(fillers * len(BRIEF.filler) // hay.unit)
    return f'\n{found}' if found and isinstance(hay, Text) else found


def _up_to(draw: random.Random, most: int) -> int:
    """One of 0 .. most, from the only method whose numbers Python promises to keep."""
    return int(draw.random() * (most + 1))


def _heads(draw: random.Random) -> int:
    """Geometric draw: heads of a coin before it first shows tails."""
    count = 0
    while _up_to(draw, 1):
        count += 1
    return count
