"""Work of export_hf.py, behind its flags: reads the run and writes the directories."""

from __future__ import annotations

import argparse
import pathlib
import sys

import _flags
import _models
import jax

from nope.checkpoints.errors import CheckpointError
from nope.data import load_tokenizer
from nope.interop import Export, check_export, save
from nope.interop.run_folder import read_run
from nope.interop.tokenizer_files import ends_within, has_tokenizer, tokenizer_in
from nope.sharding import MeshConfig, make_mesh


def main(options: argparse.Namespace) -> None:
    """Exits with 1 and a message for what cannot be done."""
    with _flags.ending(ValueError, OSError, CheckpointError):
        _run(options)


def _run(options: argparse.Namespace) -> None:
    mesh = make_mesh(MeshConfig(fsdp=jax.device_count()))
    found = read_run(options.run, mesh, options.step)
    lengths = options.length or [None]
    wanted = {
        (options.out / str(length) if len(lengths) > 1 else options.out): Export(
            options.lam, length, options.dtype or found.described.dtype
        )
        for length in lengths
    }
    for path, export in wanted.items():
        check_export(found.described.model, export)
        if path.exists():
            raise ValueError(f'{path} is there already; nothing was written')
    tokenizer = options.tokenizer or _models.tokenizer_source(options.run, found.spec)
    described = found.described
    readable, written = tokenizer, bool(tokenizer)
    if tokenizer and pathlib.Path(tokenizer).is_dir():
        readable = tokenizer_in(pathlib.Path(tokenizer))
        written = has_tokenizer(pathlib.Path(tokenizer))
    if options.tokenizer and not written:
        raise ValueError(f'--tokenizer={tokenizer}: there is no tokenizer file in it')
    if not written:
        print('no tokenizer is written: name one with --tokenizer', file=sys.stderr)
    if readable:
        marks = load_tokenizer(readable, '--tokenizer')
        ends = ends_within(marks, described.model.vocab_size)
        bos = described.bos if marks.bos_id is None and not options.tokenizer else marks.bos_id
        described = described._replace(bos=bos, eos=marks.eos_id, ends=ends)
    origin = {
        'run': options.run.resolve().name,
        'step': options.step,
        'spec': dict(found.spec),
    }
    for path, export in wanted.items():
        save(
            path,
            found.variables,
            described,
            export=export,
            tokenizer=tokenizer or None,
            origin=origin,
        )
        print(path)
