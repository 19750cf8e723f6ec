"""Bootstrap of documents: its draws, the sums of resamples, and how often its interval is right."""

from __future__ import annotations

import numpy as np
import pytest

from nope.evals import bootstrap, forward, lengths, positions
from nope.evals.bootstrap import LEAST, RESAMPLES
from nope.records import RESAMPLE, load, save
from tests import tiny

DOCUMENTS, T = 17, 12
# Two windows of the first eight documents, and one of the others.
OF_DOCUMENT = np.concatenate([np.arange(8), np.arange(DOCUMENTS)])
BLOCKS = tiny.tokens(len(OF_DOCUMENT), T + 1)


def picked(index: int) -> np.ndarray:
    """The blocks of one resample: of each document all, as often as it was drawn."""
    counts_DR = bootstrap.counts(DOCUMENTS)
    assert counts_DR is not None
    times_W = [int(counts_DR[document, index]) for document in OF_DOCUMENT]
    return np.repeat(BLOCKS, times_W, axis=0)


def test_a_resample_has_as_many_documents_as_there_are() -> None:
    counts_DR = bootstrap.counts(DOCUMENTS)
    assert counts_DR is not None
    assert counts_DR.shape == (DOCUMENTS, RESAMPLES)
    np.testing.assert_array_equal(counts_DR.sum(axis=0), DOCUMENTS)
    # One is in a resample k times with about the probability that Poisson's law has.
    assert np.mean(counts_DR == 0) == pytest.approx(np.exp(-1), abs=0.03)


def test_draws_follow_from_the_number_of_documents_alone() -> None:
    first, again = bootstrap.counts(18), bootstrap.counts(18)
    assert first is not None and again is not None
    np.testing.assert_array_equal(first, again)
    assert first[:8, 0].tolist() == [0, 1, 2, 1, 2, 2, 0, 0]
    assert bootstrap.counts(LEAST - 1) is None


def test_windows_of_a_document_come_together() -> None:
    counts_WR = bootstrap.of_windows(OF_DOCUMENT * 1000)
    assert counts_WR is not None
    np.testing.assert_array_equal(counts_WR[:8], counts_WR[8:16])
    assert not np.array_equal(counts_WR[0], counts_WR[1])
    assert bootstrap.of_windows(np.repeat(np.arange(LEAST - 1), 9)) is None


@pytest.mark.parametrize('batch_size', [5, 100])
def test_means_of_a_resample_are_those_of_its_windows(batch_size: int) -> None:
    """Whatever the batch, with windows of weight 0 at its end, and though resamples differ in their
    number of windows."""
    options = {'mesh': tiny.mesh(), 'batch_size': batch_size, 'entropy': True}
    found = forward.means(tiny.MODEL, tiny.varied_lam(), BLOCKS, of_document=OF_DOCUMENT, **options)
    assert found.resampled_loss is not None and found.resampled_entropy is not None
    assert found.resampled_loss.shape == found.resampled_entropy.shape == (RESAMPLES, T)
    assert len({len(picked(index)) for index in range(RESAMPLES)}) > 1
    for index in (0, RESAMPLES - 1):
        direct = forward.means(tiny.MODEL, tiny.varied_lam(), picked(index), **options)
        assert direct.entropy is not None
        np.testing.assert_allclose(found.resampled_loss[index], direct.loss, rtol=1e-5)
        entropy_T = direct.entropy.mean(axis=(0, 1))
        np.testing.assert_allclose(found.resampled_entropy[index], entropy_T, rtol=1e-5, atol=1e-6)


def test_records_hold_resamples_of_what_they_hold(tmp_path) -> None:
    """Beside each measure, as arrays alone: of their values there are too many to read."""
    options = {'mesh': tiny.mesh(), 'batch_size': 100, 'of_document': OF_DOCUMENT}
    by_position = positions.run(tiny.MODEL, tiny.varied_lam(), BLOCKS, **options)
    by_length = lengths.run(tiny.MODEL, [tiny.varied_lam()] * 2, BLOCKS, (4, 12), tail=2, **options)
    for records, names in (
        (by_position, {'loss', 'entropy'}),
        (by_length, {'loss_window', 'loss_tail'}),
    ):
        save(records, tmp_path)
        held = load(tmp_path).measures
        resampled = {n for n, m in held.items() if RESAMPLE in m.axes}
        assert resampled == {f'{name}_resampled' for name in names}
        assert not list(tmp_path.glob('*_resampled.csv'))
        for name in names:
            values = held[name].values
            center = values.mean(axis=(0, 1)) if name == 'entropy' else values
            spread = held[f'{name}_resampled'].values
            np.testing.assert_allclose(
                spread.mean(axis=0), center, atol=4 * spread.std(axis=0).max() / RESAMPLES**0.5
            )
    options['of_document'] = None
    direct = lengths.run(tiny.MODEL, [tiny.varied_lam()], picked(7), (4,), tail=2, **options)
    assert set(direct.measures) == {'loss_window', 'loss_tail', 'multiplier_mean'}
    for name in ('loss_window', 'loss_tail'):
        found = by_length[f'{name}_resampled'][7, 0]
        np.testing.assert_allclose(found, direct[name][0], rtol=1e-5)


@pytest.mark.parametrize('documents', [32, 128])
def test_the_interval_of_resamples_has_the_truth_in_nearly_all_experiments(documents: int) -> None:
    """Losses as skewed as those of text, of windows of which some documents have more, and which
    resemble each other within one: of 95 % intervals about 95 in 100 contain the mean. By windows
    alone far fewer would."""
    draw = np.random.default_rng(0)
    of_document = np.concatenate([np.arange(documents)] * 3 + [np.arange(documents // 2)] * 2)
    covered = {}
    for name, numbers in (('documents', of_document), ('windows', np.arange(len(of_document)))):
        counts_WR = bootstrap.of_windows(numbers)
        assert counts_WR is not None
        own_ED = draw.gamma(4.0, 0.25, size=(1500, documents))
        losses_EW = own_ED[:, of_document] + draw.gamma(4.0, 0.25, size=(1500, len(of_document)))
        means_ER = losses_EW @ counts_WR / counts_WR.sum(axis=0)
        low_E, high_E = np.percentile(means_ER, [2.5, 97.5], axis=1)
        covered[name] = np.mean((low_E <= 2.0) & (high_E >= 2.0))
    assert 0.90 <= covered['documents'] <= 0.97
    assert covered['windows'] < 0.85


@pytest.mark.parametrize('prompts', [2, 10])
def test_means_of_cells_spread_as_means_of_few_prompts_do(prompts: int) -> None:
    """Resamples of N prompts have, on average over experiments, the variance of a mean of N."""
    draw = np.random.default_rng(0)
    scores_CN = (draw.random((4000, prompts)) < 0.7).astype(np.float64)
    found_RC = bootstrap.of_cells(scores_CN)
    assert found_RC is not None and found_RC.shape == (RESAMPLES, 4000)
    np.testing.assert_allclose(found_RC.mean(), scores_CN.mean(), atol=0.005)
    assert found_RC.var(axis=0, ddof=1).mean() == pytest.approx(0.7 * 0.3 / prompts, rel=0.05)
    assert bootstrap.of_cells(scores_CN[:, :1]) is None
