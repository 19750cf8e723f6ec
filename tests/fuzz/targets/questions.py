"""Questions: LongBench files and prompts."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from experiments.cli import prompts
from nope.evals.longbench import reading
from tests.evals.longbench import files
from tests.fuzz.case import Case, Target, attempt, expect
from tests.fuzz.mutation import Draw, choice, json_bytes, mutated, one_in


def _changed(draw: Draw, rows: list[dict[str, Any]]) -> bytes:
    lines = [json.dumps(row).encode() for row in rows]
    if draw.integers(3):
        number = int(draw.integers(len(lines)))
        lines[number] = json_bytes(draw, rows[number])
    data = b'\n'.join(lines) + b'\n'
    return mutated(draw, data, [data]) if one_in(draw, 3) else data


def _longbench(folder: pathlib.Path) -> Case:
    rows = {
        'qasper': [files.row('qa_f1', input=f'{i}?') for i in range(4)],
        'trec': [files.row('classification', input=f'{i}?') for i in range(4)],
        'passage_count': [files.row('count', input=f'{i}?') for i in range(4)],
    }

    def case(draw: Draw) -> bool:
        name = choice(draw, sorted(rows))
        data = _changed(draw, rows[name])
        path = folder / f'{name}.jsonl'
        path.write_bytes(data)
        accepted, found = attempt(lambda: reading.read(folder, [name]), path)
        if accepted:
            lines = [line for line in data.split(b'\n') if line.strip()]
            expect(len(found) == len(lines), 'other samples than lines')
            texts = [json.loads(line)['context'] for line in lines]
            expect([sample.context for sample in found] == texts, 'other contexts')
        return accepted

    return case


def _prompts(folder: pathlib.Path) -> Case:
    rows = [{'prompt': f'Once {i} é'} for i in range(4)]

    def case(draw: Draw) -> bool:
        path = folder / choice(draw, ('p.jsonl', 'p.txt'))
        data = _changed(draw, rows)
        path.write_bytes(data)
        accepted, found = attempt(lambda: prompts.read(None, path), path)
        if accepted:
            lines = [line for line in data.decode().split('\n') if line.strip()]
            is_json = path.suffix == '.jsonl'
            texts = [json.loads(line)['prompt'] if is_json else line for line in lines]
            texts = [text.replace('\r\n', '\n').replace('\r', '\n') for text in texts]
            expect(len(found) <= len(texts) or b'\r' in data, 'other prompts than lines')
            expect(len(found) == len(texts) or b'\r' in data, 'fewer prompts than lines')
        return accepted

    return case


TARGETS = (
    Target('questions.longbench', 600, _longbench),
    Target('questions.prompts', 500, _prompts),
)
