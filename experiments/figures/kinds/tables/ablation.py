"""HeadScale without its parts: the paper's Table 4."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.figures import roles
from experiments.figures.base import kind
from experiments.figures.claims import ablations as claims
from experiments.figures.claims.ablations import LONGBENCH, PASSKEY, AblationRow
from experiments.figures.given import FigureInput, check_options, names_below
from experiments.figures.kinds.tables import longbench, perplexity_caption, perplexity_options
from experiments.figures.kinds.tables.figure import TableFigure
from experiments.figures.kinds.tables.scores import by_task
from experiments.figures.look import captions
from experiments.figures.read.by_seed import of_models
from experiments.figures.read.tables import options, paper, perplexity_rows
from experiments.figures.read.tables.options import Options
from experiments.figures.read.tables.perplexity_rows import record_name
from experiments.figures.read.tables.table import Cell, Column, Table, TableRow, grouped, measured
from experiments.figures.roles import Roles
from nope.records import Records

PERPLEXITY = 'perplexity'
MEASURED = (PERPLEXITY, PASSKEY, LONGBENCH)
ROW = ('group', 'label', 'paper', *options.SHOWN, *MEASURED)
# The paper's windows, and its longest prompts inside the window, in multiples of L.
WINDOW = WITHIN = 8
PAPER_COLUMNS = {
    'pg19': 'ppl16k_pg19',
    'proof_pile': 'ppl16k_proof_pile',
    PASSKEY: 'passkey_acc_percent',
    LONGBENCH: 'longbench_avg',
}
OUTSIDE = 'no prompt of the grid fits into the window'
NOT_MEASURED = 'the records hold no window of this length'
PARTIAL = 'the records lack tasks of the mean'


Rows = Sequence[AblationRow]


@kind('ablation_table')
class AblationTable(TableFigure[Rows]):
    """HeadScale without its parts. Options:

    - corpora: as of the table of perplexities.
    - window: multiple of L at which perplexity is taken.
    - passkey_within: longest prompts of the passkey mean, in multiples of L.
    - rows: {group, label, paper, tuned, tokens, perplexity, passkey, longbench}; the last three
      name records, perplexity without its corpus.
    - missing: {measure: reason} for measures that a row does not name.
    - roles: of labels of rows (claims/ablations.py).
    """

    OPTIONS = ('corpora', 'window', 'passkey_within', 'rows', 'missing', 'roles')
    NEEDED = ('corpora', 'rows')
    RULES = claims.RULES

    def needs(self, name: str, given: Options) -> dict[str, str]:
        perplexity_options.check_corpora(name, given['corpora'])
        for key in ('window', 'passkey_within'):
            if key in given:
                options.check_number(name, key, given[key])
        reasons = given.get('missing', {})
        check_options(name, reasons, MEASURED, (), 'missing')
        options.check_rows(name, given['rows'], ROW, 'table4')
        for row in given['rows']:
            options.check_shown(name, row)
            for key in MEASURED:
                if not row.get(key) and not reasons.get(key):
                    raise ValueError(
                        f'figure {name!r}: row {row["label"]!r} has no record for {key!r}; missing '
                        f'must then give the reason, got {dict(reasons)}'
                    )
        roles.check(name, given, roles.parts(claims.ROLES, options.labels(given), 'row'))
        needs = {}
        for row in given['rows']:
            if row.get(PERPLEXITY):
                for corpus in perplexity_options.measured_corpora(given):
                    needs[record_name(row[PERPLEXITY], corpus)] = PERPLEXITY
            needs |= {row[key]: key for key in (PASSKEY, LONGBENCH) if row.get(key)}
        return needs

    def read(self, given: FigureInput) -> Rows:
        return [_read(given, option) for option in given.options['rows']]

    def shown(self, given: FigureInput, rows: Rows) -> claims.ShownAblations:
        players = Roles(given.name, given.options, {row.label: row for row in rows}, 'row')
        corpora = [c for c in given.options['corpora'] if not c.get('missing')]
        return claims.ShownAblations(players, corpora)

    def table(self, given: FigureInput, rows: Rows) -> Table:
        token = perplexity_caption.token_name(given, rows)
        keys = options.shown_keys(given.options['rows'])
        title = f'perplexity at {given.options.get("window", WINDOW):g} L'
        decimals = perplexity_caption.DECIMALS.get(token, 1)
        same = perplexity_caption.comparable(token)
        columns = (
            *(
                Column(c['key'], c.get('label') or c['key'], title, decimals, comparable=same)
                for c in given.options['corpora']
            ),
            Column(PASSKEY, 'passkey, %'),
            Column(LONGBENCH, 'LongBench'),
        )
        made = [
            (
                row.option.get('group', ''),
                TableRow(
                    row.label,
                    (
                        *(
                            _perplexity_cell(given.options, row, corpus)
                            for corpus in given.options['corpora']
                        ),
                        *(_score_cell(given.options, row, key) for key in (PASSKEY, LONGBENCH)),
                    ),
                    options.shown(row.option, keys),
                    {'tuned_over_L': row.option.get('tuned'), 'tokens': row.option.get('tokens')},
                ),
            )
            for row in rows
        ]
        return Table(columns, grouped(made), options.headings(keys))

    def caption(self, given: FigureInput, rows: Rows) -> str:
        labelled = {row.label: [given.records[n] for n in row.names] for row in rows if row.names}
        within = given.options.get('passkey_within', WITHIN)
        sentences = [
            'HeadScale and what it is without its parts: perplexity in sliding windows of '
            f'{given.options.get("window", WINDOW):g} L, passkey accuracy over all lengths up to '
            f'{within:g} L that the context of the model reaches and all depths, unweighted mean '
            'of '
            "LongBench's 16 scores; means over searches of several orders of examples, next to the "
            f"paper's Table 4 ({paper.SOURCE}), which has one search a row, each of another order.",
            perplexity_caption.units(perplexity_caption.token_name(given, rows)),
            captions.sources(labelled) if labelled else '',
        ]
        return ' '.join(sentence for sentence in sentences if sentence)


def _read(given: FigureInput, option: Options) -> AblationRow:
    corpora = perplexity_options.measured_corpora(given.options)
    window = float(given.options.get('window', WINDOW))
    record = option.get(PERPLEXITY, '')
    shown = [(corpus, window) for corpus in corpora]
    values = perplexity_rows.values_of(given, record, shown) if record else {}
    within = given.options.get('passkey_within', WITHIN)
    scores: dict[str, np.ndarray] = {}
    by_seed: dict[str, np.ndarray] = {}
    lacking = dict(given.options.get('missing', {}))
    names = [n for c in corpora if record for n in names_below(given, record_name(record, c))]
    for key in (PASSKEY, LONGBENCH):
        found = names_below(given, option[key]) if option.get(key) else []
        names += found
        records = [given.records[name] for name in found]
        means = [
            passkey_inside(r, within) if key == PASSKEY else longbench_mean(r) for r in records
        ]
        if records and None not in means:
            scores[key] = np.array(means, dtype=np.float64)
            by_seed[key] = of_models(scores[key], records)
        elif records:
            lacking[key] = OUTSIDE if key == PASSKEY else PARTIAL
    by_corpus = {corpus: value for (corpus, _), value in values.items()}
    return AblationRow(option, by_corpus, scores, by_seed, lacking, tuple(names))


def passkey_inside(records: Records, within: float) -> float | None:
    """Percent right, the mean over all cells of lengths up to `within` L and up to the model's
    window; None where no length is."""
    accuracy = records['accuracy']
    lengths = records.along('length', len(accuracy))
    facts = records.attributes
    inside = lengths <= min(facts['window'], within * facts['train_length'])
    return 100 * float(accuracy[inside].mean()) if inside.any() else None


def longbench_mean(records: Records) -> float | None:
    """The unweighted mean of all tasks; None where one is missing."""
    scores = by_task(records, longbench.LongBenchTable.AXIS)
    tasks = [column.key for column in longbench.COLUMNS]
    return float(np.mean([scores[t] for t in tasks])) if set(tasks) <= set(scores) else None


def _perplexity_cell(given: Options, row: AblationRow, corpus: Options) -> Cell:
    comparable = given.get('window', WINDOW) == WINDOW
    column = PAPER_COLUMNS.get(corpus.get('paper', ''), '') if comparable else ''
    printed = paper.value('table4', row.option.get('paper', ''), column)
    value = row.perplexity.get(corpus['key'])
    if value is not None:
        return measured(value.perplexity, printed)
    reason = corpus.get('missing') or (
        NOT_MEASURED if row.option.get(PERPLEXITY) else row.lacking[PERPLEXITY]
    )
    return Cell(None, printed, reason)


def _score_cell(given: Options, row: AblationRow, key: str) -> Cell:
    comparable = key != PASSKEY or given.get('passkey_within', WITHIN) == WITHIN
    column = PAPER_COLUMNS[key] if comparable else ''
    printed = paper.value('table4', row.option.get('paper', ''), column)
    if key in row.scores:
        return measured(row.scores[key], printed)
    return Cell(None, printed, row.lacking[key])
