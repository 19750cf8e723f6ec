"""Metrics of a run in Weights & Biases (the extra `wandb`), which is imported when one is made."""

from __future__ import annotations

import importlib.util
import pathlib
import secrets
from collections.abc import Mapping
from typing import Any

from nope.runtime import files

RUN_ID = 'wandb.txt'  # in a training's folder
FORBIDDEN = '/\\#?%:'  # in the name of a project
LONGEST = 128


def refusal(project: str) -> str:
    """Reason why a project of Weights & Biases cannot be written to, as a clause; '' for none."""
    if not project or len(project) > LONGEST or set(project) & set(FORBIDDEN):
        return (
            f'it must be None, or name a project of Weights & Biases: up to {LONGEST} characters, '
            f'none of {FORBIDDEN}'
        )
    found = importlib.util.find_spec('wandb')
    # A folder of that name, as the package itself makes, is found without an origin.
    if found is None or found.origin is None:
        return 'it needs the package wandb, which is not installed: pip install wandb'
    return ''


class Tracker:
    """Writer of one row a step to a run of a project, through a process of its own that wandb
    starts. Environment variables of wandb hold, as WANDB_MODE=offline.

    title: the run's name. folder: of the training; wandb's files go to wandb/ in it, and the run's
    id to a file. goes_on: whether the training continues, and with it the run of that id, whose
    steps stay; else there is a new one. config: is shown beside the metrics. Raises wandb's errors
    for a server that cannot be reached or refuses.
    """

    def __init__(
        self,
        project: str,
        *,
        title: str,
        folder: pathlib.Path,
        goes_on: bool,
        config: Mapping[str, Any],
    ) -> None:
        import wandb

        folder.mkdir(parents=True, exist_ok=True)
        noted = folder / RUN_ID
        if not (goes_on and noted.exists()):
            # Of a run that was deleted there may be rows under the folder's name.
            files.write_text(noted, f'{folder.name}-{secrets.token_hex(4)}')
        self._run = wandb.init(
            project=project,
            id=noted.read_text('utf-8'),
            name=title,
            dir=str(folder),
            config=dict(config),
            resume='allow',
            settings=wandb.Settings(console='off'),  # the progress bar stays in the terminal
        )

    def write(self, step: int, values: Mapping[str, float]) -> None:
        if step >= self._run.step:  # the run's next one
            self._run.log(dict(values), step=step)

    def close(self, *, failed: bool) -> None:
        """Brings what is left to the server or the disk; a run that failed is shown as such."""
        self._run.finish(exit_code=int(failed))
