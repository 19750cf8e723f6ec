"""Profiler trace of some steps, for TensorBoard and Perfetto."""

from __future__ import annotations

import logging
import pathlib

import jax

from nope.runtime import processes

log = logging.getLogger(__name__)

WARM_UP = 3  # steps before the traced ones: the first compiles


class Profile:
    """Profiler trace of `steps` steps of a run that begins at step `start`; none for 0 steps."""

    def __init__(self, folder: pathlib.Path, start: int, steps: int) -> None:
        # One folder a process: JAX names what it makes by the second.
        self._folder = folder / f'process-{processes.index()}' if processes.count() > 1 else folder
        self._first, self._last = start + WARM_UP, start + WARM_UP + steps
        self._running = False

    def __enter__(self) -> Profile:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def marked(self, step: int) -> jax.profiler.StepTraceAnnotation:
        """`with` block around a step, which a trace shows by its number."""
        return jax.profiler.StepTraceAnnotation('train', step_num=step)

    def step(self, done: int) -> None:
        """Starts or stops the trace; called after every step."""
        if self._first <= done < self._last and not self._running:
            self._running = True
            # To follow Python calls the profiler reads the state of every thread, also of one that
            # Orbax or TensorStore is just starting, which can crash the process.
            options = jax.profiler.ProfileOptions()
            options.python_tracer_level = 0
            jax.profiler.start_trace(
                self._folder, create_perfetto_trace=True, profiler_options=options
            )
        elif done >= self._last:
            self._stop()

    def _stop(self) -> None:
        if self._running:
            self._running = False
            jax.profiler.stop_trace()
            log.info('trace of steps %d to %d: %s', self._first + 1, self._last, self._folder)
