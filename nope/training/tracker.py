"""Metrics of a run in Weights & Biases (the extra `wandb`), which is imported when one is made."""

from __future__ import annotations

import importlib.util
import pathlib
from collections.abc import Mapping
from typing import Any

FORBIDDEN = '/\\#?%:'  # in the name of a project
LONGEST = 128
EXTRA = "pip install -e '.[wandb]' in the folder of this project"


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
        return f'it needs the package wandb, which is not installed: {EXTRA}'
    return ''


class Tracker:
    """Writer of one row a step to a run of a project, through a process of its own that wandb
    starts. Environment variables of wandb hold, as WANDB_MODE=offline.

    run_id: of the run in the project. A run that is there goes on, and its steps stay. title: its
    name. folder: wandb's files go to wandb/ in it. config: is shown beside the metrics. Raises
    wandb's errors for a server that cannot be reached or refuses.
    """

    def __init__(
        self,
        project: str,
        run_id: str,
        *,
        title: str,
        folder: pathlib.Path,
        config: Mapping[str, Any],
    ) -> None:
        import wandb

        folder.mkdir(parents=True, exist_ok=True)
        self._run = wandb.init(
            project=project,
            id=run_id,
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
