"""Orbax checkpoints of one run: saving, which of them stay, restoring the newest whole one."""

from __future__ import annotations

import contextlib
import functools
import logging
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from nope.checkpoints import folders
from nope.checkpoints.best import Best, BestStays, best_of
from nope.checkpoints.contents import (
    ARRAYS,
    JSON_ITEMS,
    Arrays,
    Contents,
    arrays_handler,
    checksums,
)
from nope.checkpoints.errors import CheckpointError, OtherRunError, UnwritableError, is_shortage
from nope.runtime import processes
from nope.runtime.errors import brief
from nope.runtime.libraries import ocp

log = logging.getLogger(__name__)

OPTIMIZER = 'opt_state'  # among the arrays: only training reads it


class Restored(NamedTuple):
    """A checkpoint that was read: its step, its arrays and the data position."""

    step: int
    arrays: dict[str, Any]
    data: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run, in one folder: here, or a bucket's as gs://BUCKET/FOLDER.

    keep: number of newest ones that stay. permanent: steps that stay whatever comes later. The best
    one stays until there is a better (`nope.checkpoints.best`). config: JSON-able description of
    the run; a checkpoint with another one is refused. clean: removes remains of killed saves, for
    the one writer (not in a bucket).
    """

    def __init__(
        self,
        folder: pathlib.Path | str,
        config: Mapping[str, Any],
        *,
        keep: int = 2,
        permanent: tuple[int, ...] = (),
        clean: bool = False,
    ) -> None:
        self.folder = folders.in_full(folder)
        self._contents = Contents(self.folder, config)
        self._keep, self._permanent = keep, frozenset(permanent)
        if clean:
            processes.from_first(lambda: folders.sweep(self.folder))
        kept = ocp.checkpoint_managers
        self._best = BestStays()
        policy = kept.AnyPreservationPolicy(
            [kept.LatestN(keep), kept.CustomSteps(list(permanent)), self._best]
        )
        options = ocp.CheckpointManagerOptions(
            preservation_policy=policy, enable_async_checkpointing=True, create=True
        )
        self._manager = ocp.CheckpointManager(
            self.folder,
            options=options,
            item_names=(ARRAYS, *JSON_ITEMS),
            item_handlers={ARRAYS: arrays_handler()},
        )
        self._mark = folders.mark(self.folder)

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Waits for what is being saved. UnwritableError where that fails, unless another error
        is on its way."""
        try:
            self.wait()
        except UnwritableError as error:
            if kind is None:
                raise
            log.warning('while another error ended the run: %s', error)
        finally:
            with contextlib.suppress(Exception):  # raises what waiting has raised already
                self._manager.close()

    def wait(self) -> None:
        """Until what is being saved is on disk. UnwritableError where it cannot be."""
        with self._writing('the last one'):
            self._manager.wait_until_finished()

    def remove_old(self) -> None:
        """Removes what the newest save would have removed, had its process not been killed before.
        For the one that writes here, when nothing is being saved."""
        steps = self.steps()
        stay = {*self._permanent, self._best.step}
        old = [step for step in steps[: -self._keep] if step not in stay]
        for step in old:
            processes.from_first((self.folder / str(step)).rmtree)
        if old:
            self._manager.reload()

    def stand_on(self, base: Arrays) -> None:
        """Sets the base model: arrays that the saved ones belong to and that are saved elsewhere
        (`Contents.stand_on`)."""
        self._contents.stand_on(base)

    def steps(self) -> list[int]:
        """Steps with a committed checkpoint, oldest first."""
        return processes.from_first(lambda: sorted(map(int, self._manager.all_steps())))

    def save(self, step: int, arrays: Arrays, data: Mapping[str, Any]) -> None:
        """Starts saving `arrays` and the data position as `step`; returns before it is on disk.

        Where `data` name the best step so far, its checkpoint stays, and no longer the one before.
        UnwritableError where it, or the save before it, cannot be written.
        """
        best = best_of(data)
        self._best.step = None if best is None else best.step
        if step in self.steps():
            return
        items = self._contents.composed(step, arrays, data)
        with self._writing(f'that of step {step}'):
            processes.from_first(self._check_folder)
            if not self._manager.save(step, args=items):
                # Its list of steps is old. The other processes wait for it to save.
                raise OSError(f'{self.folder} is listed with a step that is not there')

    def restore(self, target: Arrays) -> Restored | None:
        """The newest whole checkpoint, its arrays onto the shardings of `target`.

        None where there is none yet. A damaged one is set aside in `damaged/` with a warning and
        the one before it is taken. CheckpointError for one of another run, for too little memory,
        and where none can be read, be it damaged or unreachable. Nothing is moved then. Its data
        name the best step only while that has a whole checkpoint. A damaged best one is set aside
        too; the save of a damaged newest may have removed an older best.
        """
        steps = self.steps()
        self._check_kind(steps)
        damaged: dict[int, Exception] = {}
        for step in reversed(steps):
            if step in damaged:
                continue
            try:
                damaged |= self._damaged_best(step, target)  # alone: there may be memory for one
                arrays, data = self._contents.read(step, target)
            except OtherRunError:
                raise
            except Exception as error:  # whatever the damage raises: go one back
                if not is_shortage(error):
                    damaged[step] = error
                    continue
                raise CheckpointError(
                    f'checkpoint of step {step} in {self.folder} cannot be read: there is not '
                    f'enough memory ({brief(error)}); nothing was changed'
                ) from error
            self._set_aside(damaged)
            best = best_of(data)
            if best is not None and best.step not in self.steps():
                data, best = {k: v for k, v in data.items() if k not in best.entry}, None
            self._best.step = None if best is None else best.step
            return Restored(step, arrays, data)
        if damaged:
            newest = max(damaged)
            raise CheckpointError(
                f'none of the checkpoints of steps {steps} in {self.folder} can be read; nothing '
                f'was changed (move the folder away to begin anew). That of step {newest}: '
                f'{damaged[newest]}'
            ) from damaged[newest]
        return None

    def prepare(self, arrays: Arrays) -> None:
        """Compiles what the first `save` of such arrays would have to wait for."""
        checksums(arrays)

    def best(self) -> Best | None:
        """The best step that the newest checkpoint names; None where the run compares none and,
        with a warning, where that step has no checkpoint any more."""
        steps = self.steps()
        best = self._best_at(steps[-1]) if steps else None
        if best is None or best.step in steps:
            return best
        log.warning(
            'step %d, the best of %s, has no checkpoint any more: the newest, of step %d, stands '
            'for it',
            *(best.step, self.folder, steps[-1]),
        )
        return None

    def read(self, target: Arrays, step: int | None = None) -> dict[str, Any]:
        """The arrays of `target` at `step` (default: the best of a run that compares them, else the
        newest), onto its shardings."""
        steps = self.steps()
        chosen = steps[-1] if steps and step is None else step
        try:
            best = self.best() if step is None else None
            chosen = chosen if best is None else best.step
            if chosen not in steps:
                raise CheckpointError(
                    f'no checkpoint of step {"any" if chosen is None else chosen} in '
                    f'{self.folder}; there are {steps}'
                )
            return self._contents.read(chosen, target)[0]
        except CheckpointError:
            raise
        except Exception as error:
            raise CheckpointError(
                f'checkpoint of step {chosen} in {self.folder} cannot be read: {brief(error)}'
            ) from error

    def _best_at(self, step: int) -> Best | None:
        """The best step that the checkpoint of `step` names."""
        found = processes.from_first(lambda: best_of(self._contents.documents(step)['data']))
        return None if found is None else Best(*found)

    def _damaged_best(self, step: int, target: Arrays) -> dict[int, Exception]:
        """The damage of the best step that the checkpoint of `step` names, in those arrays of
        `target` that its readers ask for. {} for a whole or missing one, and for storage that
        fails."""
        best = self._best_at(step)
        if best is None or best.step == step or best.step not in self.steps():
            return {}
        try:
            self._contents.read(
                best.step, {name: target[name] for name in target if name != OPTIMIZER}
            )
        except OtherRunError:
            raise
        except Exception as error:  # whatever the damage raises
            if is_shortage(error):
                raise
            if not isinstance(error, OSError) or isinstance(error, FileNotFoundError):
                return {best.step: error}
            log.warning('the best checkpoint, of step %d, is not verified: %s', best.step, error)
        return {}

    def _check_kind(self, steps: list[int]) -> None:
        """CheckpointError where the folder has checkpoints of something else than this project:
        these are not damaged ones, to be set aside."""
        folders = [self.folder / str(step) for step in steps]
        ours = processes.from_first(
            lambda: any((folder / item).exists() for folder in folders for item in JSON_ITEMS)
        )
        if folders and not ours:
            raise CheckpointError(
                f'{folders[-1]} is no checkpoint of this project: it has none of '
                f'{", ".join(JSON_ITEMS)}; nothing was changed'
            )

    @contextlib.contextmanager
    def _writing(self, which: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # Orbax's, TensorStore's or the system's
            raise UnwritableError(
                f'a checkpoint, {which} or the one before it, could not be written to '
                f'{self.folder}: {brief(error)}. Those of steps {self._kept()} are as they were'
            ) from error

    def _check_folder(self) -> None:
        """OSError where the folder has vanished: Orbax would make another one in its place."""
        if folders.mark(self.folder) != self._mark:
            raise OSError('the folder has vanished, or is another one than at the start')

    def _kept(self) -> list[int] | str:
        """Committed steps as the folder has them: after an error nothing else is asked."""
        try:
            names = [path.name for path in self.folder.iterdir()] if self.folder.exists() else []
        except Exception:  # the storage's own kind
            return '(which cannot be listed now)'
        return sorted(int(name) for name in names if name.isdigit())

    def _set_aside(self, damaged: Mapping[int, Exception]) -> None:
        """Moves checkpoints away, now that another one has been read whole."""
        aside = self.folder.parent / 'damaged'
        for step, error in damaged.items():
            why = brief(error)
            log.warning('checkpoint of step %d is damaged, set aside in %s: %s', step, aside, why)
            source, target = self.folder / str(step), aside / str(step)
            processes.from_first(functools.partial(folders.move, source, target))
        if damaged:
            self._manager.reload()
