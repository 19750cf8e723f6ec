"""Colours of models: the same in every figure, and apart within one."""

from __future__ import annotations

from experiments.figures.look import style


def test_models_keep_their_colours_whatever_stands_beside_them() -> None:
    both = style.colors_of(['NoPE', 'rope'])
    assert style.colors_of(['rope', 'mine', 'NoPE', 'yours']).items() >= both.items()
    assert style.colors_of(['RoPE'])['RoPE'] == both['rope']


def test_labels_of_one_figure_differ_while_there_are_colours() -> None:
    labels = ['a', 'NoPE', 'b', 'ALiBi', 'c', 'd', 'e', 'f']
    found = style.colors_of(labels)
    assert list(found) == labels and len(set(found.values())) == len(labels)
    assert style.GREY not in style.colors_of(labels[:7], most=len(style.COLORS)).values()
    assert len(style.colors_of(map(str, range(20)))) == 20


def test_models_differ_but_for_two_names_of_one() -> None:
    assert style.MODELS['rope'] == style.MODELS['RoPE']
    assert len(set(style.MODELS.values())) == len(style.MODELS) - 1
