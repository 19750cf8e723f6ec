"""Of every kind of figure: files, the same bytes each time, captions, options, errors."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import pathlib

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from experiments.figures import KINDS, Decided, FigureInput, FigureOutput, draw, write
from experiments.figures.look import style
from nope.runtime.amounts import amount
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import CURVES, GRIDS, INPUTS, position_runs

NAMES = sorted(INPUTS)

# Drawn twice: of each way to draw one.
TWICE = ('encoding_ranks', 'entropy_loss', 'longbench_table')

POINT = {'label': 'a', 'loss': 'b', 'keys': 'c'}
FACTOR = {'factor': 2, 'group': 'a', 'choice': 'b'}
TUNED = {'label': 'PI', 'group': 'a', 'method': 'PI', 'tuned': 2}
# What the captions of kinds that read no windows of the training data's text say instead.
MEASURED_ON = {
    'perplexity_table': 'windows of up to 16,384 tokens',
    'longbench_table': '3,200 prompts',
    'commonsense_table': '7,000 questions',
    'ablation_table': '10 for each length and depth',
    'scratchpad_bars': 'addition of lengths 2 to 8 (350 examples)',
    'task_lambda': 'rsc of lengths 2 to 8 (350 examples)',
    'encoding_pairs': 'rsc of lengths 2 to 8 (350 examples)',
    'encoding_ranks': 'rsc of lengths 2 to 8 (350 examples)',
    'attention_distance': 'rsc of lengths 2 to 8 (70 examples',
    'attended_distance': 'addition of lengths 5 to 8 (40 examples',
    'passkey_maps': '10 for each length and depth',
    'recipes': 'RULER, 2 tasks',
    **dict.fromkeys(
        ('key_curves', 'key_attention', 'reach_predictors', 'weight_bound'),
        '10 for each length and depth',
    ),
}
HAVE_TEXT = (  # beside the tables
    *('attended_distance', 'attention_distance', 'encoding_pairs', 'encoding_ranks'),
    *('head_ranks', 'key_attention', 'reach_predictors', 'scratchpad_bars'),
    'weight_bound',
)
LENGTHS = [{'group': 'a'}]
MANY = [{**TUNED, 'label': f'PI {n}', 'tuned': n} for n in range(1, 6)]


def factors(*grid):
    return {'curves': [{'label': 'YaRN', 'grid': grid}]}


def tuned(*curves):
    return {'base': {'group': 'base'}, 'panels': [{'curves': curves}]}


def without(records, measure):
    kept = {k: m for k, m in records.measures.items() if k != measure}
    return dataclasses.replace(records, measures=kept)


def test_every_kind_is_tested():
    assert set(KINDS) == set(INPUTS)


@pytest.mark.parametrize(
    'kind',
    [
        *('attention_distance', 'attention_shape', 'emergence', 'entropy_loss'),
        *('head_ranks', 'multiplier_entropy', 'uniform_fit'),
    ],
)
def test_no_text_is_a_formula(kind: str) -> None:
    """Ticks of logarithms and symbols are plain, since labels of users are."""
    figure = KINDS[kind].draw(INPUTS[kind]).figure
    with style.house():
        FigureCanvasAgg(figure).draw()
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    assert len(texts) > 10
    for text in texts:
        assert '$' not in text.get_text() and not text.get_parse_math()


def test_dollar_signs_of_labels_are_drawn(tmp_path: pathlib.Path) -> None:
    given = INPUTS['length_curves']
    labels = ['price $5 and $6', 'x $_$', '\\$']
    curves = [
        {**curve, 'label': label}
        for curve, label in itertools.zip_longest(given.options['curves'], labels, fillvalue='d')
    ]
    output = KINDS['length_curves'].draw(
        dataclasses.replace(given, options={**given.options, 'curves': curves})
    )
    write(output, tmp_path)
    texts = output.figure.findobj(Text)
    drawn = {text.get_text(): text.get_parse_math() for text in texts}
    assert {label: drawn[label] for label in labels} == dict.fromkeys(labels, False)


@pytest.fixture(scope='module')
def written(tmp_path_factory):
    """By kind, the folder of its figure, drawn when it is first asked for."""

    @functools.cache
    def make(kind: str) -> pathlib.Path:
        folder = tmp_path_factory.mktemp(kind)
        write(draw(kind, INPUTS[kind]), folder)
        return folder

    return make


@pytest.mark.parametrize('kind', TWICE)
def test_writes_all_files_with_the_same_bytes_each_time(kind, written, tmp_path):
    write(draw(kind, INPUTS[kind]), tmp_path)
    names = {p.name for p in tmp_path.iterdir()}
    stem = INPUTS[kind].name
    pictures = {f'{stem}.html'} if kind.endswith('_table') else {f'{stem}.png', f'{stem}.pdf'}
    has_text = {f'{stem}.md'} if kind.endswith('_table') or kind in HAVE_TEXT else set()
    assert names == pictures | has_text | {f'{stem}.csv', 'caption.txt', 'summary.json'}
    for name in names:
        first, second = ((folder / name).read_bytes() for folder in (written(kind), tmp_path))
        assert first == second, name
        assert b'CreationDate' not in first


@pytest.mark.parametrize('kind', NAMES)
def test_caption_says_where_numbers_are_from_and_the_summary_what_is_decided(kind, written):
    caption = (written(kind) / 'caption.txt').read_text()
    measured = MEASURED_ON.get(kind, '512 windows')
    for fact in ('4 layers, width 64', '4.9M tokens', 'seed', 'standard library', measured):
        assert fact in caption
    summary = json.loads((written(kind) / 'summary.json').read_text(), parse_constant=pytest.fail)
    assert set(summary) == {'figure', 'caption', 'runs', 'claims'}
    assert summary['runs']
    for claim in summary['claims']:
        fields = [field.name for field in dataclasses.fields(Decided)]
        assert list(claim) == [*fields, 'holds', 'headline']
        assert bool(claim['headline']) == (claim['verdict'] != 'not measured')
        decided = {'holds': True, 'does not hold': False}
        assert claim['holds'] is decided.get(claim['verdict'])
        assert claim['verdict'] in (*decided, 'undecided', 'not measured', 'reading')


# Column of the CSV -> measure of the record, of kinds that write what they read.
COLUMNS = {
    'entropy_loss': {'loss_nats': 'loss', 'loss_std_nats': 'loss_std'},
    'factor_grid': {'loss_window_nats': 'loss_window', 'loss_tail_nats': 'loss_tail'},
    'length_curves': {'loss_window_nats': 'loss_window', 'loss_tail_nats': 'loss_tail'},
    'tuned_lengths': {'loss_window_nats': 'loss_window', 'loss_tail_nats': 'loss_tail'},
}


@pytest.mark.parametrize('kind', COLUMNS)
def test_the_csv_holds_the_arrays_of_the_records(kind, written):
    given = INPUTS[kind]
    rows = synthetic.rows_of(written(kind) / f'{given.name}.csv')
    for name, records in given.records.items():
        mine = [row for row in rows if row['record'] == name]
        for column, measure in COLUMNS[kind].items():
            np.testing.assert_array_equal(synthetic.column(mine, column), records[measure])


@pytest.mark.parametrize('kind', NAMES)
def test_a_missing_record_is_named_with_its_figure(kind):
    given = INPUTS[kind]
    needs = KINDS[kind].required(given.name, given.options)
    for name in needs:
        left = {k: r for k, r in given.records.items() if k != name and not k.startswith(name)}
        with pytest.raises(ValueError, match=f"figure '{given.name}' needs the run '{name}'"):
            KINDS[kind].draw(FigureInput(given.name, left, given.options))


def with_unknown_keys(value):
    """Copies of options, each with a key 'colour' in another of their mappings; of lists in the
    mapping of the first entry."""
    if isinstance(value, dict):
        yield {**value, 'colour': 'red'}
        for key, inner in value.items():
            yield from ({**value, key: changed} for changed in with_unknown_keys(inner))
    elif isinstance(value, list | tuple) and value:
        yield from ((changed, *value[1:]) for changed in with_unknown_keys(value[0]))


@pytest.mark.parametrize('kind', NAMES)
def test_an_unknown_key_anywhere_is_refused_before_any_record_is_needed(kind):
    for options in with_unknown_keys(INPUTS[kind].options):
        with pytest.raises(ValueError, match=r"^figure 'f'.*'colour'"):
            KINDS[kind].required('f', options)


@pytest.mark.parametrize('kind', NAMES)
def test_what_a_figure_cannot_do_without_must_be_given(kind):
    for key in KINDS[kind].NEEDED:
        left = {k: v for k, v in INPUTS[kind].options.items() if k != key}
        with pytest.raises(ValueError, match=f"^figure 'f': options must give '{key}'"):
            KINDS[kind].required('f', left)


@pytest.mark.parametrize(
    ('kind', 'options', 'message'),
    [
        ('entropy_loss', {'panels': [{'curves': CURVES}] * 3}, 'panels must be 1 to 2'),
        ('entropy_loss', {'panels': [{'curves': []}]}, "panels must give 'curves'"),
        ('entropy_loss', {'panels': [{'curves': [{'label': 'a'}]}]}, "must give 'record'"),
        ('length_curves', {'curves': LENGTHS * 8}, 'curves must be 1 to'),
        ('emergence', {'steps': [{'record': 'a'}]}, "steps must give 'label'"),
        ('emergence', {'steps': [{'record': 'a', 'label': 'b'}] * 2}, 'must be two or more'),
        (
            'emergence',
            {'steps': [{'record': f'{m}{k}', 'label': m} for m in 'abcd' for k in (1, 2)]},
            'labels of steps must be 1 to 3',
        ),
        ('key_curves', {'curves': LENGTHS * 8}, 'curves must be 1 to'),
        ('key_curves', {'curves': [{'label': 'a'}]}, "curves must give 'group'"),
        ('frontier', {'points': [{'label': 'a'}]}, "points must give 'loss'"),
        ('frontier', {'points': [{'label': 'a', 'loss': 'b'}]}, "points must give 'keys'"),
        ('frontier', {'points': [POINT] * 2}, 'labels of points must differ'),
        ('factor_grid', {'curves': [{'label': 'a'}]}, 'either group or grid'),
        ('factor_grid', {'curves': [{'label': 'a', 'group': 'b'}] * 2}, 'labels of curves must'),
        ('factor_grid', factors({'factor': 2, 'group': 'a'}), "must give 'choice'"),
        ('factor_grid', factors({**FACTOR, 'choice': 'a'}), 'chosen on other windows'),
        ('factor_grid', factors({**FACTOR, 'factor': 'two'}), 'must be a number'),
        ('factor_grid', factors(FACTOR, FACTOR), "factors in the grid of 'YaRN' must differ"),
        ('tuned_lengths', tuned({'label': 'a', 'group': 'a', 'method': 'b'}), "must give 'tuned'"),
        ('tuned_lengths', tuned({**TUNED, 'tuned': '2x'}), 'multiple of L'),
        ('tuned_lengths', tuned(TUNED, TUNED), 'labels of a panel must differ'),
        ('tuned_lengths', tuned(*MANY), 'tuned lengths must be 1 to 4'),
    ],
)
def test_bad_options_are_named(kind, options, message):
    with pytest.raises(ValueError, match=f"figure 'f'.*{message}"):
        KINDS[kind].required('f', options)


def test_a_record_of_another_evaluation_or_without_a_measure_is_refused():
    options = INPUTS['entropy_loss'].options
    runs = position_runs()
    with pytest.raises(ValueError, match=r"run 'nope': needs the evaluation 'positions'"):
        KINDS['entropy_loss'].draw(FigureInput('f', {**runs, 'nope': GRIDS['late']}, options))
    with pytest.raises(ValueError, match=r"run 'nope': no measure 'entropy'"):
        broken = {**runs, 'nope': without(runs['nope'], 'entropy')}
        KINDS['entropy_loss'].draw(FigureInput('f', broken, options))


def test_values_that_are_not_finite_are_refused():
    runs = position_runs()
    loss = runs['nope']['loss'].copy()
    loss[5] = np.nan
    runs['nope'] = synthetic.measuring(runs['nope'], loss=loss)
    with pytest.raises(ValueError, match=r"run 'nope': measure 'loss' .* not finite"):
        KINDS['entropy_loss'].draw(dataclasses.replace(INPUTS['entropy_loss'], records=runs))


def test_a_figure_without_rows_is_refused_by_its_name():
    with pytest.raises(ValueError, match="figure 'fig1': nothing that it shows was measured"):
        FigureOutput('fig1', None, [], '', [])


def test_curves_of_one_figure_share_their_length():
    runs = {**position_runs(), 'nope': synthetic.positions_records(length=128)}
    with pytest.raises(ValueError, match="runs differ in 'length'"):
        KINDS['entropy_loss'].draw(dataclasses.replace(INPUTS['entropy_loss'], records=runs))


@pytest.mark.parametrize('kind', ['heads', 'multiplier_entropy'])
def test_a_layer_that_does_not_exist_is_refused(kind):
    given = INPUTS[kind]
    wrong = FigureInput('f', given.records, {**given.options, 'layers': [4]})
    with pytest.raises(ValueError, match=r'layers must lie in 0\.\.3, got 4'):
        KINDS[kind].draw(wrong)


@pytest.mark.parametrize(('length', 'layers', 'heads'), [(64, 1, 4), (300, 5, 32)])
def test_draws_any_size(length, layers, heads, tmp_path):
    size = {'n_layers': layers, 'n_heads': heads, 'train_length': length // 4}
    runs = position_runs(length=length, **size)
    rows = {'heads': {'rows': CURVES}}
    for kind in ('entropy_loss', 'multiplier_entropy', 'head_entropy', 'heads'):
        options = rows.get(kind, INPUTS[kind].options)
        write(KINDS[kind].draw(FigureInput(kind, runs, options)), tmp_path)


def test_labels_that_stand_in_both_panels_are_told_apart():
    runs = {
        'nope': synthetic.positions_records(),
        'rope': synthetic.positions_records(position='rope'),
    }
    panels = [
        {'title': title, 'curves': [{'record': record, 'label': 'multiplier 1'}]}
        for title, record in (('NoPE', 'nope'), ('RoPE', 'rope'))
    ]
    roles = {'base': 'nope', 'rope': 'rope'}
    output = KINDS['entropy_loss'].draw(FigureInput('f', runs, {'panels': panels, 'roles': roles}))
    onset = next(c for c in output.claims if c.number == 2)
    assert set(onset.measured) == {'NoPE multiplier 1', 'RoPE multiplier 1'}


def test_amounts_are_read_easily():
    counts = (4_915_200, 104_857_600_000, 222_000, 999)
    assert [amount(n) for n in counts] == ['4.9M', '105B', '222k', '999']
