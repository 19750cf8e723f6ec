"""Token shards that nope prepare wrote (`nope.data.shards`): tokenised already."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, ClassVar, NoReturn

from nope.data import digest, shards
from nope.data.sources.base import PART_BYTES, Source


@dataclasses.dataclass(frozen=True)
class Shards(Source):
    """A folder of token shards."""

    kind: ClassVar[str] = 'shards'
    path: str

    def __post_init__(self) -> None:
        self.need('source', self.path, 'a folder, as in shards:FOLDER')

    def identity(self) -> dict[str, Any]:
        """A digest of the metadata, which hold digests of the shards."""
        metadata = shards.read_metadata(self.name(), pathlib.Path(self.path))
        content = {key: value for key, value in metadata.items() if key != 'description'}
        return {'kind': self.kind, 'digest': digest.of_json(content)}

    def list_parts(self, cache: pathlib.Path, part_bytes: int = PART_BYTES) -> NoReturn:
        raise ValueError(f'{self.name()}: the kind shards is prepared already, {self.path!r}')

    def describe(self) -> str:
        return pathlib.PurePath(self.path).name

    def prepared(self) -> pathlib.Path:
        return pathlib.Path(self.path)
