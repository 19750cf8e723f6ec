"""The metrics of LongBench (arXiv 2308.14508), as its published scorer computes them.

Each is `metric(prediction, truth, *, classes=()) -> float` in 0 .. 1. What looks odd is kept,
and said: published scores contain it.
"""

from __future__ import annotations

import collections
import difflib
import re
import string
from collections.abc import Callable, Mapping, Sequence

_NO_PUNCTUATION = str.maketrans('', '', string.punctuation)

# The scorer backtracks by recursion; of Python's 1000 frames, nine are taken when it begins.
_BACKTRACK_CALLS = 991


def qa_f1(prediction: str, truth: str, *, classes: Sequence[str] = ()) -> float:
    """F1 of the bags of words, without case, ASCII punctuation and articles; `classes` unused.

    0 where no word is shared, also where neither text has one.
    """
    predicted, true = _plain_words(prediction), _plain_words(truth)
    shared = (collections.Counter(predicted) & collections.Counter(true)).total()
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(true)
    return 2 * precision * recall / (precision + recall)


def rouge_l(prediction: str, truth: str, *, classes: Sequence[str] = ()) -> float:
    """ROUGE-L over sentences, as version 1.0.1 of the package `rouge`; `classes` unused.

    Words count once each: recall and precision are shares of the distinct words of either text, and
    the words in common are the union over all pairs of sentences of one longest common subsequence.
    Equal texts score just below 1 (1e-8 stands in the denominator). The score is 0 if a text has no
    sentence, or if sentences are so long that the package fails.
    """
    predicted, true = _sentences(prediction), _sentences(truth)
    if not predicted or not true:
        return 0.0
    union: set[str] = set()
    for sentence in true:
        for other in predicted:
            common = _common_subsequence(sentence, other)
            if common is None:
                return 0.0
            union.update(common)
    recall = len(union) / len(set().union(*true))
    precision = len(union) / len(set().union(*predicted))
    return 2 * (precision * recall / (precision + recall + 1e-8))


def classification(prediction: str, truth: str, *, classes: Sequence[str] = ()) -> float:
    """1 / the number of classes named in the prediction if the true one is, else 0.

    Classes are found as substrings. Parts of the true class do not count, except right behind
    another such class: the scorer removes them from the list it walks along, and steps over the
    next. ValueError without classes.
    """
    if not classes:
        raise ValueError('classification needs the classes of the data set; none were given')
    named = [name for name in classes if name in prediction]
    for name in named:
        if name in truth and name != truth:
            named.remove(name)
    return 1 / len(named) if truth in named else 0.0


def retrieval(prediction: str, truth: str, *, classes: Sequence[str] = ()) -> float:
    """Share of the numbers in the prediction that are N, for the truth 'Paragraph N'.

    0 without a number; `classes` unused. ValueError where the truth names no paragraph.
    """
    paragraph = re.search(r'Paragraph (\d+)', truth)
    if paragraph is None:
        raise ValueError(f"truth is {truth!r}; it must name a paragraph, as 'Paragraph 3' does")
    return count(prediction, paragraph[1])


def count(prediction: str, truth: str, *, classes: Sequence[str] = ()) -> float:
    """Share of the numbers in the prediction that are written as the truth; `classes` unused.

    0 without a number. A number is a run of digits: '-7.0' has two, 7 and 0.
    """
    numbers = re.findall(r'\d+', prediction)
    return numbers.count(truth) / len(numbers) if numbers else 0.0


def code_sim(prediction: str, truth: str, *, classes: Sequence[str] = ()) -> float:
    """Similarity of the first line of code to the true one, in hundredths; `classes` unused.

    That line is the first after leading newlines without '`', '#' and '//'. The ratio is 2 M / T of
    M characters in matching blocks and T in both texts, by difflib with its heuristic for frequent
    characters. An empty text scores 0.
    """
    lines = prediction.lstrip('\n').split('\n')
    marks = ('`', '#', '//')
    line = next((line for line in lines if not any(mark in line for mark in marks)), '')
    if not line or not truth:
        return 0.0
    return round(100 * difflib.SequenceMatcher(None, line, truth).ratio()) / 100


METRICS: Mapping[str, Callable[..., float]] = {
    'qa_f1': qa_f1,
    'rouge_l': rouge_l,
    'classification': classification,
    'retrieval': retrieval,
    'count': count,
    'code_sim': code_sim,
}


def score(
    metric_name: str,
    prediction: str,
    truths: Sequence[str],
    classes: Sequence[str] = (),
    *,
    first_line_only: bool = False,
) -> float:
    """The best value of METRICS[metric_name] over the truths of one sample, in 0 .. 1.

    `first_line_only` scores the first line alone, as trec, triviaqa and samsum do. A data
    set's score is 100 times the mean over its samples.
    """
    if first_line_only:
        prediction = first_line(prediction)
    metric = METRICS[metric_name]
    return max(metric(prediction, truth, classes=classes) for truth in truths)


def first_line(text: str) -> str:
    """The text up to the first newline that is not at its very beginning."""
    return text.lstrip('\n').partition('\n')[0]


def _plain_words(text: str) -> list[str]:
    text = text.lower().translate(_NO_PUNCTUATION)
    return re.sub(r'\b(a|an|the)\b', ' ', text).split()


def _sentences(text: str) -> list[list[str]]:
    """Words of the pieces between full stops; one of white space alone has one word, ''."""
    return [' '.join(piece.split()).split(' ') for piece in text.split('.') if piece]


def _common_subsequence(reference: list[str], other: list[str]) -> list[str] | None:
    """One longest common subsequence, last word first; None where the package fails.

    Several may be longest. This one is found from the end: equal words are taken, and a word of the
    reference is dropped only if that is the better choice.
    """
    rows = [[0] * (len(other) + 1)]
    for word in reference:
        above, row = rows[-1], [0]
        for j, candidate in enumerate(other):
            row.append(above[j] + 1 if word == candidate else max(above[j + 1], row[j]))
        rows.append(row)
    common = []
    i, j, calls = len(reference), len(other), 1
    while i and j:
        if reference[i - 1] == other[j - 1]:
            common.append(reference[i - 1])
            i, j = i - 1, j - 1
        elif rows[i - 1][j] > rows[i][j - 1]:
            i -= 1
        else:
            j -= 1
        calls += 1
    return common if calls <= _BACKTRACK_CALLS else None
