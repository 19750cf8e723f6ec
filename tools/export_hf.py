"""Export of a run's model to a Hugging Face directory that stock transformers loads.

    python tools/export_hf.py work/quick/runs/RUN OUT
    python tools/export_hf.py work/quick/runs/RUN OUT --lam=scale_param
    python tools/export_hf.py work/quick/runs/RUN OUT --length=2048 --length=8192

Lambda is multiplied into the query weights (`fold`), or kept as tensors of the name scale_param,
which stock transformers does not know. A lambda that follows the length of the sequence is written
for one named length; several lengths make OUT/LENGTH each.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import _models
import jax

from nope.checkpoints.manager import CheckpointError
from nope.data import load_tokenizer
from nope.interop import Export, check_export, save
from nope.interop.run_folder import read_run
from nope.interop.save import DTYPES, LAM_WAYS
from nope.sharding import MeshConfig, make_mesh


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        _run(options)
    except (ValueError, OSError, CheckpointError) as error:
        sys.exit(f'error: {error}')


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
    tokenizer = options.tokenizer or _models.tokenizer_source(found.spec)
    if not tokenizer:
        print('no tokenizer is written: name one with --tokenizer', file=sys.stderr)
    described = found.described
    if tokenizer == 'bytes' or pathlib.Path(tokenizer).is_file():
        marks = load_tokenizer(tokenizer)
        described = described._replace(bos=marks.bos_id, eos=marks.eos_id)
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('run', type=pathlib.Path, help='a folder of WORKDIR/runs')
    parser.add_argument('out', type=pathlib.Path, help='the directory to write')
    parser.add_argument('--lam', choices=LAM_WAYS, default='fold', help='where lambda goes')
    parser.add_argument('--length', type=int, action='append', help='tokens that lambda is for')
    parser.add_argument('--dtype', choices=list(DTYPES), help='of the tensors (default: as read)')
    parser.add_argument('--tokenizer', default='', help="'bytes', a tokenizer file or a directory")
    parser.add_argument('--step', type=int, help='a kept checkpoint before the last')
    return parser


if __name__ == '__main__':
    main()
