"""The built-in tasks that can read local files: where lm_eval keeps them, and the data they need.

Without a network they read files in the columns of the published data sets. The commonsense tasks
of arXiv 2404.12224, Table 1, have one file each, named after the task:

    FOLDER/arc_challenge.jsonl    question, choices {text, label}, answerKey
    FOLDER/arc_easy.jsonl         question, choices {text, label}, answerKey
    FOLDER/boolq.jsonl            passage, question, label (0: no, 1: yes)
    FOLDER/hellaswag.jsonl        activity_label, ctx_a, ctx_b, endings, label
    FOLDER/openbookqa.jsonl       question_stem, choices {text, label}, answerKey
    FOLDER/piqa.jsonl             goal, sol1, sol2, label
    FOLDER/winogrande.jsonl       sentence, option1, option2, answer ('1' or '2')

The paper takes the test split of arc_challenge, arc_easy and openbookqa, and the validation split
of the others. BABILong (arXiv 2406.10149) has a file for each task and length, as the folder `data`
of RMT-team/babilong on the Hugging Face hub, and LongBench v2 (arXiv 2412.15204) one for all tasks,
as zai-org/LongBench-v2:

    FOLDER/qa1/4k.json            input, question, target (babilong_qa1 to babilong_qa20)
    FOLDER/data.json              domain, sub_domain, context, question, choice_A to choice_D,
                                  answer ('A' to 'D') (longbench2_*)

Their suffix is .jsonl, .json (lines, or one list) or .parquet. Other columns are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

LENGTH = 'max_seq_lengths'  # of the metadata: the length that BABILong is asked at


class Kind(NamedTuple):
    """Type of a column's values."""

    name: str
    holds: Callable[[Any], bool]


TEXT = Kind('a string', lambda value: isinstance(value, str))
TEXTS = Kind('a list of strings', lambda v: isinstance(v, list) and all(map(TEXT.holds, v)))
INDEX = Kind('a whole number', lambda value: isinstance(value, int))
DIGITS = Kind('a whole number, also as a string', lambda value: str(value).isdigit())
CHOICES = Kind(
    '{"text": [...], "label": [...]}',
    lambda v: isinstance(v, Mapping) and all(TEXTS.holds(v.get(k)) for k in ('text', 'label')),
)
LETTER = Kind("'A', 'B', 'C' or 'D'", lambda value: value in list('ABCD'))


class Published(NamedTuple):
    """A task.

    folder: in lm_eval/tasks. columns: those it needs. file: of the user, without a suffix;
    '{length}' stands for the metadata's. split: the one that lm_eval asks. shots: examples before a
    question. rows: values, by column, of the task's rows in a file of several tasks.
    """

    folder: str
    columns: Mapping[str, Kind]
    file: str
    split: str = 'test'
    shots: int = 0
    rows: Mapping[str, str] = {}


_ARC = {'question': TEXT, 'choices': CHOICES, 'answerKey': TEXT}
_HELLASWAG = {'activity_label': TEXT, 'ctx_a': TEXT, 'ctx_b': TEXT, 'endings': TEXTS}
_TABLE_1 = {
    'arc_challenge': ('arc', _ARC),
    'arc_easy': ('arc', _ARC),
    'boolq': ('super_glue/boolq', {'passage': TEXT, 'question': TEXT, 'label': INDEX}),
    'hellaswag': ('hellaswag', {**_HELLASWAG, 'label': DIGITS}),
    'openbookqa': ('openbookqa', {'question_stem': TEXT, 'choices': CHOICES, 'answerKey': TEXT}),
    'piqa': ('piqa', {'goal': TEXT, 'sol1': TEXT, 'sol2': TEXT, 'label': INDEX}),
    'winogrande': (
        'winogrande',
        {'sentence': TEXT, 'option1': TEXT, 'option2': TEXT, 'answer': TEXT},
    ),
}

# In the order of the paper's table.
TABLE_1: Mapping[str, Published] = {
    name: Published(folder, columns, name) for name, (folder, columns) in _TABLE_1.items()
}

BABILONG: Mapping[str, Published] = {
    f'babilong_qa{number}': Published(
        'babilong',
        {'input': TEXT, 'question': TEXT, 'target': TEXT},
        f'qa{number}/{{length}}',
        split=f'qa{number}',
        shots=2,
    )
    for number in range(1, 21)
}

# Names of lm_eval by domain and sub_domain, the two columns that tell the tasks apart.
_SUBSETS = {
    'Single-Document QA': {
        'Academic': 'academic_single',
        'Detective': 'detective',
        'Event ordering': 'event_order',
        'Financial': 'fin_single',
        'Governmental': 'govt_single',
        'Legal': 'legal_single',
        'Literary': 'lit_single',
    },
    'Multi-Document QA': {
        'Academic': 'academic_multi',
        'Financial': 'fin_multi',
        'Governmental': 'govt_multi',
        'Legal': 'legal_multi',
        'Multi-news': 'news_multi',
    },
    'Long In-context Learning': {
        'Many-shot learning': 'many_shot',
        'New language translation': 'translate',
        'User guide QA': 'user_guide',
    },
    'Long-dialogue History Understanding': {
        'Agent history QA': 'agent_history',
        'Dialogue history QA': 'dialogue_history',
    },
    'Code Repository Understanding': {'Code repo QA': 'code'},
    'Long Structured Data Understanding': {
        'Knowledge graph reasoning': 'graph',
        'Table QA': 'table',
    },
}
_TEXTS = ('domain', 'sub_domain', 'context', 'question', *(f'choice_{x}' for x in 'ABCD'))

LONGBENCH_2: Mapping[str, Published] = {
    f'longbench2_{name}': Published(
        'longbench2',
        {**dict.fromkeys(_TEXTS, TEXT), 'answer': LETTER},
        'data',
        split='train',
        rows={'domain': domain, 'sub_domain': part},
    )
    for domain, parts in _SUBSETS.items()
    for part, name in parts.items()
}

PUBLISHED: Mapping[str, Published] = {**TABLE_1, **BABILONG, **LONGBENCH_2}
