"""What a finished work folder holds, for comparison with another one, bit by bit."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from tests.faults.aim import PARTIAL

# Times and machines: not the same in two undisturbed runs. Metrics and checkpoints are read.
VARIES = re.compile(
    r'/tensorboard/|/goodput\.json$|/checkpoints/|^(libraries\.log|commands\.jsonl)$|'
    r'/metrics\.jsonl$|runs/[^/]+/(done\.json|parameters\.txt)$'
)
TIMED = ('tokens_per_second', 'mfu', 'seconds')


# Where locks are each machine's own nothing says that a half-written shard is nobody's: it stays.
LITTER = re.compile(r'^data/tokens/.*(\.workers\.lock|\.partial-\w+)$')


def of(folder: pathlib.Path, *, litter: bool = True) -> dict[str, Any]:
    """Files, the metrics of every run, its steps that have a checkpoint and its last arrays.
    litter: whether `LITTER` is among the files."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob('*')):
        name = str(path.relative_to(folder))
        if not litter and LITTER.search(name):
            continue
        if path.is_file() and not VARIES.search(name):
            found[name] = path.read_bytes()
    for run in sorted(folder.glob('runs/*')):
        found |= {f'runs/{run.name}: {k}': value for k, value in _of_run(run).items()}
    return found


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Names that are on one side alone or differ; empty for the same results."""
    wrong = [f'{name} is missing' for name in expected if name not in found]
    wrong += [f'{name} is left' for name in found if name not in expected]
    for name in expected.keys() & found.keys():
        ours, theirs = found[name], expected[name]
        if isinstance(theirs, np.ndarray):
            if ours.dtype != theirs.dtype or not np.array_equal(ours, theirs):
                wrong.append(f'{name} differs')
        elif ours != theirs:
            wrong.append(f'{name} differs')
    return wrong


def _of_run(run: pathlib.Path) -> dict[str, Any]:
    rows = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
    kept = [{k: v for k, v in row.items() if k not in TIMED} for row in rows]
    done = json.loads((run / 'done.json').read_text())['steps']
    assert [row['step'] for row in rows] == list(range(1, done + 1)), f'{run}: a gap, or twice'
    steps = sorted(path.name for path in (run / 'checkpoints').iterdir())
    found = {'metrics': kept, 'steps done': done, 'checkpoints': steps}
    last = max((int(name) for name in steps if name.isdigit()), default=0)
    with ocp.PyTreeCheckpointer() as checkpointer:
        path = (run / 'checkpoints' / str(last) / 'arrays').absolute()
        tree = checkpointer.metadata(path).item_metadata.tree
        asked = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray), tree)
        arrays = checkpointer.restore(path, restore_args=asked)
    leaves = jax.tree_util.tree_leaves_with_path(arrays)
    return found | {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def there(folder: pathlib.Path, event: str) -> bool:
    """Whether a folder looks as `aim` says of a kill at this event: what was begun lies there."""
    kind, name, *more = event.split(' ')
    if kind in ('opened', 'half', 'unrenamed', 'renamed', 'removing'):
        return any(
            PARTIAL.sub('', str(path.relative_to(folder))) == name for path in folder.rglob('*')
        )
    if kind == 'save':
        return any((folder / name / 'checkpoints').glob(f'{more[0]}.orbax-checkpoint-tmp*'))
    if kind == 'sealed':
        return (folder / name / 'checkpoints' / more[0]).is_dir()
    return True
