"""Cells, titles, lines, options and caption of the figure of passkey retrieval."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex

from experiments.figures import KINDS, FigureInput, FigureOutput
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import INPUTS, column

RED, YELLOW, GREEN = '#f0496e', '#ebb839', '#0cd79f'
# Where cells tell length from depth.
SLANTED = np.linspace(0, 1, 16)[:, None] * np.linspace(1, 0, 10)


draw = KINDS['passkey_maps'].draw


def drawn(records=None, panel=None) -> FigureOutput:
    """A figure of one panel."""
    panels = [{'record': 'r', 'label': 'NoPE', **(panel or {})}]
    runs = {'r': records or synthetic.passkey_records()}
    return draw(FigureInput('f', runs, {'panels': panels}))


def axes_of(output: FigureOutput) -> list[Axes]:
    """Of the panels; the last is the bar's."""
    return output.figure.axes[:-1]


def mesh_of(axes: Axes) -> QuadMesh:
    (mesh,) = [c for c in axes.collections if isinstance(c, QuadMesh)]
    return mesh


def line_of(axes: Axes) -> float:
    """Columns in front of the window line."""
    (line,) = axes.lines
    left, right = line.get_xdata()
    assert left == right
    return left


def labels_of(ticks) -> list[str]:
    return [label.get_text() for label in ticks]


def test_rows_are_the_records():
    given = INPUTS['passkey_maps']
    rows = draw(given).rows
    for name, records in given.records.items():
        mine = [row for row in rows if row['record'] == name]
        lengths, window = records.coordinates['length'], records.attributes['window']
        np.testing.assert_array_equal(column(mine, 'accuracy'), records['accuracy'].ravel())
        np.testing.assert_array_equal(column(mine, 'length'), np.repeat(lengths, 10))
        np.testing.assert_array_equal(column(mine, 'length_over_L'), np.repeat(lengths, 10) / 2048)
        np.testing.assert_array_equal(column(mine, 'depth'), np.tile(np.arange(10) / 10, 16))
        np.testing.assert_array_equal(
            column(mine, 'prompt_tokens'), np.repeat(records['tokens'], 10)
        )
        inside = [row['inside_window'] for row in mine]
        assert inside == np.repeat(lengths <= window, 10).tolist()
        average = records['accuracy'][lengths <= window].mean()
        np.testing.assert_allclose(column(mine, 'average_inside_window'), average)
        assert {row['seed'] for row in mine} == {str(records.attributes['seed'])}
    assert {row['panel'] for row in rows} == {p['label'] for p in synthetic.PASSKEY_PANELS[:3]}


def test_cells_stand_in_columns_of_length_and_rows_of_depth_from_the_top():
    (axes,) = axes_of(drawn(synthetic.passkey_records(accuracy=SLANTED)))
    np.testing.assert_array_equal(mesh_of(axes).get_array(), SLANTED.T)
    cells = {text.get_position(): text.get_text() for text in axes.texts}
    assert cells == {
        (i + 0.5, j + 0.5): f'{value:.1f}' for (i, j), value in np.ndenumerate(SLANTED)
    }
    assert axes.get_ylim() == (10, 0)
    assert labels_of(axes.get_yticklabels()) == [f'{depth} %' for depth in range(0, 100, 10)]


def test_colours_run_from_red_through_yellow_to_green():
    # Neither the smallest nor the largest accuracy is at an end of the colours.
    (axes,) = axes_of(drawn(synthetic.passkey_records(accuracy=0.4 + 0.1 * SLANTED)))
    colors = mesh_of(axes).to_rgba(np.array([0, 0.5, 1]))
    assert [to_hex(color) for color in colors] == [RED, YELLOW, GREEN]


@pytest.mark.parametrize(
    ('records', 'panel', 'title'),
    [
        ({'share': 0.97}, {}, 'NoPE: 97 % inside 1 L'),
        ({'share': 0.8, 'window': 3072}, {'paper': 81}, 'NoPE: 80 % inside 1.5 L (paper: 81 %)'),
        # The smallest length is 256.
        ({'window': 128}, {}, 'NoPE: no length inside 0.0625 L'),
        (
            {},
            {'label': 'HeadScale at 4 L, without initialisation'},
            'HeadScale at 4 L, without initialisation:\n100 % inside 1 L',
        ),
    ],
)
def test_titles_give_the_average_inside_the_window(records, panel, title):
    shares = {k: v for k, v in records.items() if k != 'share'}
    accuracy = np.full((16, 10), records.get('share', 1.0))
    # What lies beyond the window has no say.
    accuracy[synthetic.passkey_records().coordinates['length'] > shares.get('window', 2048)] = 0
    (axes,) = axes_of(drawn(synthetic.passkey_records(**shares, accuracy=accuracy), panel))
    assert axes.get_title() == title


@pytest.mark.parametrize(('window', 'columns'), [(2048, 8), (2047, 7), (128, 0), (2**20, 16)])
def test_the_line_stands_behind_the_last_length_within_the_window(window, columns):
    (axes,) = axes_of(drawn(synthetic.passkey_records(window=window)))
    assert line_of(axes) == columns


@pytest.mark.parametrize(
    ('max_length', 'train_length', 'labels'),
    [
        (32768, 2048, [str(n) for n in range(1, 17)]),
        (16384, 2048, [f'{n / 2:g}' for n in range(1, 17)]),
        # Wide ones stand under every second column, and the longest keeps its own.
        (4096, 2048, [f'{n / 4:g}' for n in range(1, 9)]),
        # Three of the shortest lengths have no room for a prompt.
        (512, 64, [f'{n / 2:g}' for n in range(4, 17)]),
    ],
)
def test_lengths_are_multiples_of_l(max_length, train_length, labels):
    records = synthetic.passkey_records(max_length, train_length=train_length)
    output = drawn(records)
    (axes,) = axes_of(output)
    assert labels_of(axes.get_xticklabels()) == labels
    assert axes.get_xticks()[-1] == len(records.coordinates['length']) - 0.5
    assert f'L = {train_length:,} tokens' in output.figure.get_supxlabel()
    assert axes.get_title().endswith(f' {2048 / train_length:g} L')


def test_a_missing_panel_is_empty_and_says_why():
    output = draw(INPUTS['passkey_maps'])
    *_, axes = axes_of(output)
    assert axes.get_title() == 'MPT-7B: not measured'
    assert [text.get_text() for text in axes.texts] == ['there are no weights']
    assert not axes.collections and not axes.lines
    assert 'MPT-7B is not drawn: there are no weights.' in output.caption


def test_panels_fill_rows():
    panels = [
        {'record': 'r', 'label': '0'},
        *({'label': str(i), 'missing': 'none'} for i in range(1, 5)),
    ]
    given = FigureInput('f', {'r': synthetic.passkey_records()}, {'panels': panels})
    axes = axes_of(draw(given))
    assert [a.get_title()[0] for a in axes] == list('01234')
    assert axes[0].get_subplotspec().get_gridspec().nrows == 2


def test_the_mean_over_seeds_is_drawn_and_the_caption_says_how_far_they_lie_apart():
    output = draw(INPUTS['passkey_maps'])
    records = INPUTS['passkey_maps'].records
    axes = axes_of(output)[1]
    mean = (records['full/seed0']['accuracy'] + records['full/seed1']['accuracy']) / 2
    np.testing.assert_allclose(mesh_of(axes).get_array(), mean.T)
    # Shares of 1 and of 0.9.
    assert axes.get_title() == 'HeadScale at 2 L: 95 % inside 2 L (paper: 81 %)'
    means = 'Means over several runs: HeadScale at 2 L (2: seeds 0; 1, by seed 90 % to 100 % '
    means += 'inside)'
    assert means in output.caption
    assert 'RoPE (' not in output.caption.split('Prompts follow')[0]


def test_the_caption_says_what_a_cell_and_a_length_are():
    caption = drawn().caption
    for fact in (
        'A cell is the share of 10 prompts answered with exactly the key.',
        'true prompts have 93.4 % to 95.7 % as many tokens (nominal 4,096: 3,911).',
        "Prompts follow the template 'paper', the paper's.",
        'trained on 4.9M tokens of Python standard library sources in sequences of L = 2,048',
    ):
        assert fact in caption
    assert 'retrieval documents' not in caption
    assert 'seeds' not in caption


def test_prompts_of_a_length_may_differ_in_their_tokens():
    records = synthetic.passkey_records()
    tokens = records['tokens'] + 0.7
    output = drawn(synthetic.measuring(records, tokens=tokens))
    assert '(nominal 4,096: 3,912)' in output.caption
    assert [row['prompt_tokens'] for row in output.rows] == np.repeat(tokens, 10).tolist()


def test_the_caption_tells_a_brief_prompt_and_what_models_have_seen():
    facts = {'sources': ['stdlib', 'retrieval'], 'token': 'byte'}
    records = synthetic.passkey_records(**facts)
    records.attributes['template'] = 'brief'
    runs = {'brief': records, 'paper': synthetic.passkey_records()}
    runs['import'] = synthetic.passkey_records(**facts, **synthetic.IMPORTED)
    panels = [{'record': name, 'label': name} for name in runs]
    caption = draw(FigureInput('f', runs, {'panels': panels})).caption
    assert "the template 'brief', a brief form of the paper's (brief)" in caption
    assert "the template 'paper', the paper's (paper; import)" in caption
    assert caption.endswith(
        'Synthetic retrieval documents are part of the training data of: brief.'
    )
    records.attributes['sources'] = ['stdlib']
    assert 'Synthetic retrieval documents are' not in drawn(records).caption
    alone = draw(FigureInput('f', runs, {'panels': panels[:1]}))
    assert '95.7 % as many bytes' in alone.caption
    assert 'L = 2,048 bytes' in alone.figure.get_supxlabel()


@pytest.mark.parametrize(
    ('changed', 'message'),
    [
        ({'window': 1024}, "runs differ in 'window'"),
        ({'max_length': 8192}, "runs differ in 'max_length'"),
        ({'position': 'rope'}, "runs differ in 'position'"),
    ],
)
def test_seeds_of_a_panel_differ_in_their_seed_alone(changed, message):
    runs = {'a/0': synthetic.passkey_records(), 'a/1': synthetic.passkey_records(**changed)}
    options = {'panels': [{'record': 'a/', 'label': 'a'}]}
    with pytest.raises(ValueError, match=f"figure 'f': the {message}"):
        draw(FigureInput('f', runs, options))


@pytest.mark.parametrize(
    ('axis', 'what'), [('length', 'lengths'), ('depth', 'depths'), ('tokens', 'prompts')]
)
def test_seeds_of_a_panel_were_asked_the_same(axis, what):
    runs = {f'a/{seed}': synthetic.passkey_records(seed=seed) for seed in range(2)}
    other = runs['a/1']
    (other.measures[axis].values if axis == 'tokens' else other.coordinates[axis])[0] += 1
    options = {'panels': [{'record': 'a/', 'label': 'a'}]}
    with pytest.raises(ValueError, match=f"seeds of 'a/' differ in {what}"):
        draw(FigureInput('f', runs, options))


PANEL = {'record': 'a', 'label': 'a'}
OTHER = {'record': 'b', 'label': 'b'}


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'panels': [{'record': 'a'}]}, "panels must give 'label'"),
        ({'panels': [{'label': 'a'}]}, "'a' must give either record or missing"),
        ({'panels': [{**PANEL, 'missing': 'no'}]}, "'a' must give either record or missing"),
        ({'panels': [{'label': 'a', 'missing': 'no'}]}, 'all panels are missing'),
        ({'panels': [PANEL, PANEL]}, 'labels of panels must differ'),
        ({'panels': [{**PANEL, 'paper': 101}]}, "paper of 'a' must be in percent, 0 to 100"),
        ({'panels': [{**PANEL, 'paper': '81 %'}]}, "paper of 'a' must be in percent"),
        ({'panels': [PANEL], 'roles': {'no_init': 'a'}}, "roles must give 'full'"),
        (
            {'panels': [PANEL, OTHER], 'roles': {'full': 'c'}},
            "role 'full' is given to the panel 'c'; the panels are",
        ),
        (
            {'panels': [PANEL, OTHER], 'roles': {'full': 'a', 'no_init': 'a'}},
            'roles must be of different panels',
        ),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=f"figure 'f'.*{message}"):
        KINDS['passkey_maps'].required('f', options)


def test_it_asks_for_the_records_of_panels_that_are_there():
    given = INPUTS['passkey_maps']
    assert KINDS['passkey_maps'].required('f', given.options) == dict.fromkeys(
        ['rope', 'full/', 'no_init/'], 'passkey'
    )


@pytest.mark.parametrize(
    ('window', 'facts', 'said'),
    [
        (2048, {}, 'the training length.'),
        (4096, {'tuned_length': 4096}, 'the tuned length.'),
        (4096, {'searched_length': 4096}, 'the searched length.'),
        (4096, {'tuned_length': 2048, 'searched_length': 4096}, 'the searched length.'),
        (
            4096,
            {'searched_length': 4608},
            'the window of 4,096 tokens where the searched length is 4,608 (NoPE).',
        ),
        (4096, {}, 'the window of 4,096 tokens (NoPE).'),
    ],
)
def test_the_caption_says_what_the_line_marks(window, facts, said):
    caption = drawn(synthetic.passkey_records(window=window, **facts)).caption
    assert f' Black line: {said} Percent above' in caption


def test_the_line_of_panels_may_mark_different_things():
    runs = {
        'a': synthetic.passkey_records(),
        'b': synthetic.passkey_records(window=4096, tuned_length=4096),
        'c': synthetic.passkey_records(window=4096, searched_length=4608),
    }
    panels = [{'record': name, 'label': name} for name in runs]
    caption = draw(FigureInput('f', runs, {'panels': panels})).caption
    assert (
        'Black line: the training or tuned length, the window of 4,096 tokens where the searched '
        'length is 4,608 (c).'
    ) in caption
