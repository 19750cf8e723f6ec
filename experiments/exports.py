"""Exports: models as Hugging Face directories, from the entries of a config's `exports`."""

from __future__ import annotations

import dataclasses
import logging
import pathlib
from typing import ClassVar

from experiments.bench import Bench
from experiments.config import Section
from experiments.runs import Source
from experiments.scope import Scope
from experiments.specs import Spec, identifier, identity
from nope import data, interop
from nope.data import digest
from nope.identity import first_difference
from nope.interop import Described, Export, check_export, tokenizer_in
from nope.interop.fold import check_foldable
from nope.interop.tokenizer_files import copied, ends_within
from nope.model.lam import Constant
from nope.runtime.files import read_object

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class ExportSpec(Spec):
    """A model as a Hugging Face directory (see `nope.interop.save`).

    name: of the directory. files: digest of the tokenizer files that go with the weights.
    """

    name: str
    run: Source
    export: Export
    files: str
    room = 'exports'
    finished = interop.EXPORT_FACTS
    fields: ClassVar[tuple[str, ...]] = ('run', 'lam', 'target', 'share', 'dtype', 'optional')

    @property
    def tokenizer(self) -> str:
        return tokenizer_of(self.run)

    @property
    def described(self) -> Described:
        """The model, and what a config.json says of it."""
        tokenizer, imported = data.tokenizer_of(self.run.data), self.run.imported
        found = None
        if imported is not None:
            found = interop.describe(interop.open_directory(pathlib.Path(imported.path)))
        return Described(
            self.run.model,
            self.run.train_length,
            self.export.dtype,
            tokenizer.bos_id,
            tokenizer.eos_id,
            ends=ends_within(tokenizer, self.run.model.vocab_size),
            longest=None if found is None else found.longest,
            pad=None if found is None else found.pad,
        )

    def slug(self) -> str:
        return f'{self.name}-{identifier(self)}'

    def describe(self) -> str:
        return f'export   {self.slug()}'

    def lock(self, folder: pathlib.Path) -> pathlib.Path:
        """Beside the folder, which appears when it is whole."""
        return folder.with_name(f'.{folder.name}.lock')

    def failure(self, folder: pathlib.Path) -> pathlib.Path:
        """Beside the folder, as the lock."""
        return folder.with_name(f'.{folder.name}.failed.json')

    def check_folder(self, folder: pathlib.Path) -> None:
        found = read_object(folder / self.finished)
        if found is None:
            return
        origin = found.get('origin')
        there = origin.get('identity') if isinstance(origin, dict) else None
        different = first_difference(identity(self), there)
        if different:
            raise ValueError(f'{folder} holds another model: {different}')


def tokenizer_of(run: Source) -> str:
    """Tokenizer whose files go with the weights: the imported model's, else the data's."""
    imported, used = run.imported, run.data.tokenizer
    if imported is not None and tokenizer_in(pathlib.Path(imported.path)) == used:
        return imported.path
    return used


class Unwritable(ValueError):
    """No directory of stock's can say what the model is."""


def from_entry(scope: Scope, entry: Section, name: str, run: Source) -> ExportSpec:
    """Unwritable before hours of a search, for a model or a lambda that cannot be written so.

    Without `target` it is for the longest length that it was searched or trained on at."""
    length = None
    if 'target' in entry and entry.optional('target') is not None:
        entry.at_least('target', 1)
        share = entry.get('share', 1.0)
        length = scope.share(entry['target'], share, entry.path('share'))
    else:
        length = run.tuned_length
    own = 'float32' if run.imported is None else run.imported.dtype
    dtype = entry.get('dtype', '') or own
    export = Export(entry.get('lam', 'fold'), length, dtype)
    try:
        check_export(run.model, export)
        if (run.searched or run.model.lam != Constant()) and export.lam == 'fold':
            check_foldable(run.model, length)
    except ValueError as error:
        raise Unwritable(f'{entry.path("lam")}: {error}') from error
    files = copied(tokenizer_of(run))
    found = [[name, digest.of_file(file)] for name, file in sorted(files.items())]
    return ExportSpec(name, run, export, digest.of_json(found))


def make(bench: Bench, spec: ExportSpec, folder: pathlib.Path) -> None:
    """Writes the directory: by one process only, which has to have the whole model."""
    log.info('writing %s', folder)
    interop.save(
        folder,
        bench.variables(spec.run),
        spec.described,
        export=spec.export,
        tokenizer=spec.tokenizer,
        origin={'run': spec.run.slug(), 'identity': identity(spec)},
    )
