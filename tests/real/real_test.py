"""Real weights give the numbers that stock `transformers` and lm_eval give (`tests.real.stock`)."""

from __future__ import annotations

import dataclasses
import pathlib
import tempfile
from typing import Any

import jax
import numpy as np
import pytest

from experiments.evaluations.texts import text_files
from nope import records
from nope.data import DataConfig, encode_with_bos, eval_blocks
from nope.data.chat import load_chat
from nope.data.sources import Text
from nope.evals import sliding
from nope.evals.generation import Generator, Options
from nope.evals.harness import adapter, evaluate, find, load
from nope.evals.samples import SampleLog
from nope.interop import tokenizer_in
from nope.pretrained import Pretrained
from nope.runtime.files import read_json
from nope.variables import with_lam
from tests.experiments import checkpoint_test
from tests.real import stock
from tests.real.models import (
    CHAPTER,
    CHATS,
    NEW_TOKENS,
    PROMPTS,
    SHORT,
    STRIDE,
    TASKS,
    WINDOW,
    WINDOWS,
    write_tasks,
)

pytestmark = pytest.mark.real


@pytest.fixture(scope='module')
def block(model: Pretrained) -> np.ndarray:
    return model.blocks(CHAPTER.read_text(), WINDOW)[:1]


@pytest.fixture(scope='module')
def generator(model: Pretrained) -> Generator:
    return Generator(model.model, model.variables, model.mesh, batch_tokens=2048)


def test_loss_and_entropy_by_position(
    model: Pretrained, block: np.ndarray, wanted: dict[str, Any]
) -> None:
    found = model.by_position(block)
    np.testing.assert_allclose(found['loss'], wanted['loss'], rtol=0, atol=1e-4)
    entropy_LN = found['entropy'].mean(-1)
    np.testing.assert_allclose(entropy_LN, wanted['entropy'], rtol=0, atol=1e-4)


def test_texts_and_chats_go_on_with_the_same_tokens(
    model: Pretrained, generator: Generator, wanted: dict[str, Any]
) -> None:
    tokenizer, chats = model.tokenizer, wanted['chats']
    assert tokenizer is not None
    prompts = [encode_with_bos(tokenizer, text, None) for text in PROMPTS]
    if chats:
        chat = load_chat(model.path)
        assert [chat.render(talk) for talk in CHATS] == [each['text'] for each in chats]
        assert chat.ids(tokenizer, CHATS[0][0]['content']).tolist() == chats[0]['ids']
    prompts += [encode_with_bos(tokenizer, c['text'], None, special=True) for c in chats]
    asked = [*wanted['prompts'], *(chat['ids'] for chat in chats)]
    assert [ids.tolist() for ids in prompts] == asked
    made = generator.generate(prompts, Options(NEW_TOKENS, stop_ids=tokenizer.stop_ids))
    answers = [*wanted['continuations'], *(chat['answer'] for chat in chats)]
    assert [ids.tolist() for ids in made] == answers
    found = model.generate(PROMPTS[0], NEW_TOKENS)
    assert found == tokenizer.decode(answers[0]) and found


def test_perplexity_in_sliding_windows(
    model: Pretrained, wanted: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    """Window by window, whichever of them are taken."""
    log = SampleLog(tmp_path / 'samples.jsonl')
    found = sliding.run(
        model.model,
        model.variables,
        text_files(str(CHAPTER)).documents(tokenizer_in(model.path) or '', bos=None),
        WINDOWS,
        stride=STRIDE,
        mesh=model.mesh,
        batch_tokens=model.batch_tokens,
        log=log,
    )
    for window, windows, loss in zip(WINDOWS, found['windows'], found['loss'], strict=True):
        by_end = wanted['sliding'][str(window)]
        ends = [end for end in by_end if f'{window}/0/{end}' in log]
        assert len(ends) == windows >= 5
        np.testing.assert_allclose(loss, np.mean([by_end[end] for end in ends]), rtol=0, atol=2e-5)


def test_tasks_of_the_harness(
    model: Pretrained, generator: Generator, wanted: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    assert model.tokenizer is not None
    loaded = load(find(list(TASKS), include=write_tasks(tmp_path), built_in=False))['tasks']

    def scores(task: str, window: int) -> dict[str, float]:
        asked = adapter(generator, model.tokenizer, window=window)
        found = evaluate({task: loaded[task]}, asked)
        return {metric: found['results'][task][metric] for metric in wanted['harness'][task]}

    longest = model.described.train_length
    assert longest is not None
    for task in TASKS:
        assert scores(task, longest) == pytest.approx(wanted['harness'][task], rel=1e-4)
    short = scores('real_pages', SHORT)
    assert short == pytest.approx(wanted['short']['real_pages'], rel=1e-4)


def test_stock_reads_what_is_exported_with_its_lambda(
    model: Pretrained, block: np.ndarray, wanted: dict[str, Any]
) -> None:
    config = model.model
    low = 1.0 if config.qk_norm else 0.7  # QK-norm would divide it out: refused
    lam_LN = np.random.default_rng(0).uniform(low, 1.0, (config.layers, config.heads))
    variables = with_lam(model.variables, jax.numpy.asarray(lam_LN, np.float32))
    scaled = dataclasses.replace(model, variables=variables)
    with tempfile.TemporaryDirectory() as folder:  # of half a gigabyte
        scaled.save(out := pathlib.Path(folder, 'OUT'))
        for key in ('bos_token_id', 'eos_token_id', 'pad_token_id'):
            ours, theirs = (read_json(p / 'config.json')[key] for p in (out, model.path))
            assert ours == theirs is not None
        losses, _ = stock.by_position(stock.opened(out), block[0].tolist())
    ours = scaled.by_position(block)['loss'].mean()
    np.testing.assert_allclose(losses.mean(), ours, rtol=0, atol=1e-5)
    moved = abs(ours - np.mean(wanted['loss']))
    assert moved < 1e-5 if config.qk_norm else moved > 0.01


@pytest.mark.slow
def test_stock_gives_the_losses_of_recipes(model: Pretrained, tmp_path: pathlib.Path) -> None:
    """Of the exports that the config of recipes writes, over the same windows."""
    if model.model.qk_norm:
        pytest.skip('QK-norm divides a folded lambda out: refused')
    length, windows, work = 64, 2, tmp_path / 'work'
    recipes = 'nothing,yarn_2+headscale,nothing+log,dropped+short,entropy'
    options = {
        'train.length': length, 'searched': (2.0,), 'law_searched': (2.0,),
        'entropy_at': 2.0, 'search.steps': 2,
        'search.batch_size': 1, 'short_steps': 2, 'finetune.batch_size': 1,
        'evaluation.windows': windows,
    }  # fmt: skip
    figure = checkpoint_test.drawn(model.path, tmp_path, recipes, options)
    source = DataConfig((Text(str(tmp_path / 'text')),), tokenizer_in(model.path) or '')
    blocks = eval_blocks(
        source, split='test', length=2 * length, count=windows, seed=0, cache=work / 'data'
    ).tokens
    places = read_json(figure / 'inputs.json')['records']
    for name in ('yarn_2_headscale', 'nothing_log', 'dropped_short'):
        (export,) = (work / 'exports').glob(f'{name}-*')
        losses = np.mean(
            [stock.by_position(stock.opened(export), w.tolist())[0] for w in blocks], 0
        )
        ours = records.load(figure / places[f'{name}_entropy'])['loss']
        for part in (slice(length), slice(None)):
            np.testing.assert_allclose(losses[part].mean(), ours[part].mean(), rtol=0, atol=1e-5)
