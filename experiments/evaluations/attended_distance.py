"""Distance of the most attended key, by head, on problems longer than those of training."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, Self

from experiments.bench import Bench
from experiments.evaluations import task_examples
from experiments.evaluations.base import EvalSpec, Rows
from experiments.evaluations.entry import EvalEntry
from experiments.programs import AttentionRows, Program
from experiments.scope import MOST_TOKENS
from nope.data.tasks.base import TEST
from nope.evals import attended_distance, attention_rows, batching
from nope.evals.attended_distance import CountedSequence
from nope.model import ModelConfig
from nope.records import Records

EXAMPLES = 10  # of each length


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttendedDistanceSpec(EvalSpec):
    """Normalised distance of the most attended key (`nope.evals.attended_distance`).

    examples: of each length of the test, prompt and target as the data have them. Queries are the
    tokens of the target, its scratchpad among them.
    """

    examples: int
    kind = 'attended_distance'
    of_tasks = True
    fields = ('examples',)

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        entry = asked.entry
        examples = entry.at_least('examples', 1) if 'examples' in entry else EXAMPLES
        return cls(run=asked.run, examples=examples)

    @property
    def model(self) -> ModelConfig:
        return self.run.model

    @property
    def extent(self) -> int:
        return task_examples.longest(self.task_data).read

    @property
    def known(self) -> dict[str, Any]:
        task = self.task_data.task
        return {**super().known, 'task': task.name, 'longest': task.longest}

    @property
    def own_text(self) -> bool:
        return False

    def check(self, bench: Bench) -> None:
        del bench
        sequences = [part.tokens for part in self._parts()[0]]
        attention_rows.check_fits(self.run.model, sequences)

    def measure(self, bench: Bench, folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        del folder
        parts, lengths = self._parts()
        found = attended_distance.run(
            self.run.model,
            bench.variables(self.run),
            parts,
            mesh=bench.mesh,
            progress=bench.bar('attended distance'),
        )
        return found, {'shortest_read': lengths[0], 'longest_read': lengths[-1]}

    def programs(self, rows: Rows) -> Iterator[Program]:
        length = batching.padded_length(self.extent)
        most = attention_rows.at_once((self.model,), length)
        parts = rows(MOST_TOKENS, AttentionRows.rules)  # one of such a length for each part
        yield AttentionRows(self.model, min(length, most), length, parts)

    def measured_on(self, found: Records) -> tuple[str, str]:
        facts = found.attributes
        what = f'{facts["task"]} of lengths {facts["shortest_read"]} to {facts["longest_read"]}'
        return what, f'{facts["sequences"]:,} examples, {facts["queries"]:,} tokens of targets'

    def _parts(self) -> tuple[list[CountedSequence], list[int]]:
        """The examples of the test that are read, the least length first, and their lengths."""
        found = task_examples.by_length(self.task_data, self.examples, (TEST,))
        # Queries are the target's tokens that are read.
        every = [ids for some in found.values() for ids in some]
        parts = [CountedSequence(task_examples.read(ids), len(ids.prompt)) for ids in every]
        return parts, list(found)
