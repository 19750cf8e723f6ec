"""Attention of the query that must find a key: definition, keys in prompts, bound, bad input."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.data.templates import BRIEF, PAPER, Template
from nope.evals import attention_rows, key_attention, passkey
from nope.evals.passkey import needles
from nope.model import apply
from nope.records import Records
from tests import tiny
from tests.evals.passkey import fakes
from tests.evals.passkey.fakes import BYTES, Pieces

SPAN, LENGTHS = 9, (70, 110)
PLAN = passkey.plan(BRIEF, BYTES, 110, bos=False, tests=1, lengths=LENGTHS)
MODEL = tiny.model(vocab_size=BYTES.vocab_size)
VARIABLES = tiny.varied_lam(MODEL, 1)


def measured(variables: Any = VARIABLES, mesh: Any = None) -> Records:
    how: dict[str, Any] = {'span': SPAN, 'mesh': mesh or tiny.mesh(), 'batch_tokens': 256}
    return key_attention.run(MODEL, variables, key_attention.asked(PLAN), **how)


def defined(length: int) -> dict[str, np.ndarray]:
    """The measures of one length, of all T x T weights of every prompt."""
    found: dict[str, list[np.ndarray]] = {}
    for question in PLAN.questions:
        if question.length != length:
            continue
        text = BYTES.decode(PLAN.prompt(question).ids) + ' '
        tokens = jnp.asarray(BYTES.encode(text))[None]
        T = tokens.shape[1]
        given = VARIABLES, tokens, jnp.asarray([T]), jnp.arange(T)
        weights_LNTT = np.asarray(attention_rows.weights(MODEL, *given))[:, 0]
        weights_LNT = weights_LNTT[:, :, -1]
        starts = [i for i in range(T) if text.startswith(question.key, i)]
        of_key = {i + d for i in starts for d in range(5)}
        of_latest = set(range(T - SPAN, T)) - of_key - {0}
        found.setdefault('key', []).append(weights_LNT[..., [*of_key]].sum(axis=-1))
        found.setdefault('first', []).append(weights_LNT[..., 0])
        found.setdefault('latest', []).append(weights_LNT[..., [*of_latest]].sum(axis=-1))
        found.setdefault('largest', []).append(weights_LNT.max(axis=-1))
        logits = np.log(weights_LNT)
        elsewhere = [*set(range(T)) - of_key]
        margin = logits[..., starts].max(axis=-1) - np.delete(logits, starts, axis=-1).max(axis=-1)
        found.setdefault('margin', []).append(margin)
        norms_LNT = np.asarray(key_attention.value_norms(MODEL, VARIABLES, tokens))[:, 0]
        on_key, others = (norms_LNT[..., some].mean(axis=-1) for some in ([*of_key], elsewhere))
        found.setdefault('values', []).append(on_key / others)
        found.setdefault('range', []).append(logits.max(axis=-1) - logits.min(axis=-1))
        assert len(of_key) == 10
    most = {'range': np.max(found.pop('range'), axis=0)}
    most['margin_spread'] = np.std(found['margin'], axis=0)
    most['margin_by_depth'] = np.ones_like(most['range'])  # one prompt at each depth
    return {name: np.mean(some, axis=0) for name, some in found.items()} | most


def test_measures_are_those_of_the_definition() -> None:
    found = measured()
    assert found.coordinates['length'].tolist() == list(LENGTHS)
    for i, length in enumerate(LENGTHS):
        for name, values in defined(length).items():
            np.testing.assert_allclose(found[name][i], values, rtol=2e-5, err_msg=name)
        np.testing.assert_allclose(found['multiplier'][i], VARIABLES['lam']['head'])
    shares = found['key'] + found['first'] + found['latest']
    assert (shares < 1).all() and (found['largest'] <= 1).all()


def test_values_are_what_heads_put_out_that_see_one_token() -> None:
    tokens_BT = jnp.asarray(np.random.default_rng(3).integers(0, MODEL.vocab_size, (2, 24)))
    norms_LBNT = key_attention.value_norms(MODEL, VARIABLES, tokens_BT)
    seen = apply(MODEL, VARIABLES, tokens_BT, span=1).shape.norm
    np.testing.assert_allclose(norms_LBNT[..., 0], seen[..., 0], rtol=1e-5)
    alone_BT = jnp.arange(24)[None].repeat(2, axis=0)
    seen = apply(MODEL, VARIABLES, tokens_BT, span=1, segments_BT=alone_BT).shape.norm
    np.testing.assert_allclose(norms_LBNT[0], seen[0], rtol=1e-5)


def test_no_weight_exceeds_the_bound_of_the_range_of_its_logits() -> None:
    """Alone above equal logits it meets the bound e^r / (n - 1 + e^r); others stay below."""
    draw = np.random.default_rng(0)
    logits_LNT = draw.normal(scale=4, size=(3, 5, 40))
    logits_LNT[0, 0] = -1.0
    logits_LNT[0, 0, 7] = 2.0
    weights_LNT = np.exp(logits_LNT)
    weights_LNT /= weights_LNT.sum(axis=-1, keepdims=True)
    norms_LNT = np.ones((3, 5, 40))
    norms_LNT[..., 7:9] = 3.0
    *_, largest, span, margin, values = key_attention.look_at(
        weights_LNT, norms_LNT, np.array([7, 8]), np.array([7]), SPAN
    )
    np.testing.assert_allclose(values, 3.0)
    np.testing.assert_allclose(span, np.ptp(logits_LNT, axis=-1))
    bound = np.exp(span) / (39 + np.exp(span))
    assert largest[0, 0] == pytest.approx(bound[0, 0])
    assert (largest.reshape(-1)[1:] < bound.reshape(-1)[1:]).all()
    others = np.delete(logits_LNT, 7, axis=-1).max(axis=-1)
    np.testing.assert_allclose(margin, logits_LNT[..., 7] - others)


def test_depths_stay_with_their_prompts_where_token_lengths_differ() -> None:
    """Prompts are read by their length; longer ones come first here."""
    prompts = [
        prompt._replace(tokens=np.append(prompt.tokens[:1].repeat(1 + i % 3), prompt.tokens))
        for i, prompt in enumerate(key_attention.asked(PLAN))
    ]
    how: dict[str, Any] = {'span': SPAN, 'mesh': tiny.mesh(), 'batch_tokens': 256}
    found = key_attention.run(MODEL, VARIABLES, prompts, **how)
    alone = [key_attention.run(MODEL, VARIABLES, [one], **how)['margin'][0] for one in prompts]
    for i, length in enumerate(LENGTHS):
        own = [k for k, prompt in enumerate(prompts) if prompt.length == length]
        depths = np.array([prompts[k].depth for k in own])
        expected = key_attention.between(np.stack([alone[k] for k in own]), depths)
        np.testing.assert_allclose(found['margin_by_depth'][i], expected, rtol=1e-4)


def test_the_margin_spreads_over_prompts_and_between_depths() -> None:
    depths_P = np.repeat([0.0, 0.1, 0.2, 0.3], 25)
    noise_P = np.random.default_rng(0).normal(size=100)
    values_PLN = np.stack([10 * depths_P, noise_P, np.ones(100)], axis=-1)[:, None]
    moved, random, none = key_attention.between(values_PLN, depths_P)[0]
    assert moved == pytest.approx(1) and random < 0.2 and none == 0


def test_parts_overlap_nowhere() -> None:
    """The key counts before the first token, and the first before the latest."""
    weights_LNT = np.array([[[0.1, 0.2, 0.3, 0.4]]])
    for key, span, parts in (
        ([3], 2, (0.4, 0.1, 0.3)), ([0, 1], 4, (0.3, 0, 0.7)), ([1], 9, (0.2, 0.1, 0.7))
    ):  # fmt: skip
        found = key_attention.look_at(
            weights_LNT, weights_LNT, np.array(key), np.array(key[:1]), span
        )
        found = np.array(found)[:3, 0, 0]
        np.testing.assert_allclose(found, parts)


@pytest.mark.parametrize(('tokenizer', 'template'), [
    (BYTES, PAPER), (Pieces(fakes.llama_pieces), PAPER), (BYTES, BRIEF),
], ids=['bytes', 'llama', 'brief'])  # fmt: skip
def test_the_query_predicts_the_first_digit_and_the_key_is_all_its_digits(
    tokenizer: Any, template: Template
) -> None:
    plan = passkey.plan(template, tokenizer, 480, bos=False, tests=1, lengths=(480,))
    for prompt, question in zip(key_attention.asked(plan), plan.questions, strict=True):
        read = tokenizer.decode(prompt.tokens)
        assert read.endswith(template.question + ' ')
        stated = [tokenizer.decode([i]) for i in prompt.tokens[prompt.key_K]]
        assert stated == [*question.key, *question.key]
        assert prompt.starts_S.tolist() == prompt.key_K[:: len(question.key)].tolist()


def test_the_key_of_several_is_the_one_that_is_asked_for() -> None:
    given: dict[str, Any] = {
        'bos': False,
        'tests': 1,
        'lengths': (160,),
        'needles': 4,
        'alike': True,
    }
    plan = needles.plan(BRIEF, BYTES, 160, **given)
    for prompt, question in zip(key_attention.asked(plan), plan.questions, strict=True):
        assert BYTES.decode(prompt.tokens[prompt.key_K]) == question.key


def test_a_key_that_is_cut_into_other_tokens_is_refused() -> None:
    def cut(text: str) -> list[str]:
        """A key and the point behind it are one token."""
        return re.findall(r'[0-9]+[.]?|[^0-9]', text)

    plan = passkey.plan(BRIEF, Pieces(cut), 110, bos=False, tests=1, lengths=(110,))
    with pytest.raises(ValueError, match='cuts the key into others there'):
        key_attention.asked(plan)


def test_weights_that_are_no_numbers_are_refused() -> None:
    broken = jax.tree.map(lambda x: x * np.nan, tiny.variables(MODEL))
    with pytest.raises(ValueError, match='attention weights are NaN'):
        measured(broken)
