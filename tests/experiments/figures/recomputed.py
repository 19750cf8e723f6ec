"""Verdicts on claims recomputed from the CSV of a figure alone, with nothing but csv and numpy.

A second derivation from the statements in summary.json, with thresholds typed anew: it shares no
code with the claims, so that an error in either shows where they differ.
"""

from __future__ import annotations

import csv
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

# Two-sided 95 % quantiles of t, by number of seeds.
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
Rows = list[dict[str, str]]
Verdicts = dict[str, str]
# By claim the numbers that decide it, each with the limits that it is compared with.
Numbers = dict[str, list[tuple[float, tuple[float, ...]]]]


def read(path: pathlib.Path) -> Rows:
    with path.open(newline='') as file:
        return list(csv.DictReader(file))


def over_seeds(rows: Rows, decide: Callable[[Rows], tuple[Verdicts, Numbers]]) -> Verdicts:
    """What each seed decides by itself, where all decide the same and no number that decides has a
    limit within its interval over them."""
    seeds = sorted({row['seed'] for row in rows})
    each = [decide([row for row in rows if row['seed'] == seed]) for seed in seeds]
    found: Verdicts = {}
    for claim in set.intersection(*(set(verdicts) for verdicts, _ in each)):
        said = {verdicts[claim] for verdicts, _ in each}
        by_seed = zip(*(numbers.get(claim, []) for _, numbers in each), strict=True)
        beside = any(near(*zip(*number, strict=True)) for number in by_seed)
        found[claim] = said.pop() if len(said) == 1 and not beside else 'undecided'
    return found


def near(values: tuple[float, ...], limits: tuple[tuple[float, ...], ...]) -> bool:
    """Whether the interval of a mean over seeds contains a limit."""
    if len(values) == 1:
        return False
    half = STUDENT[len(values)] * np.std(values, ddof=1) / len(values) ** 0.5
    return any(abs(np.mean(values) - limit) <= half for limit in limits[0]) and half > 0


def word(holds: bool | None) -> str:
    return {True: 'holds', False: 'does not hold', None: 'undecided'}[holds]


def together(parts: list[bool | None]) -> bool | None:
    if False in parts:
        return False
    return None if None in parts else True


def beyond(difference, margin: float = 0.0) -> bool | None:
    """Whether numbers, one a seed, are above 0 in the mean: the interval does not contain 0, and
    the mean is further than `margin` from it."""
    values = np.atleast_1d(np.asarray(difference, float))
    mean = values.mean()
    if len(values) > 1:
        half = STUDENT[len(values)] * values.std(ddof=1) / len(values) ** 0.5
        if half > 0 and abs(mean) <= half:
            return None
    if margin and abs(mean) <= margin:
        return None
    return bool(mean > 0)


class Curve:
    """Loss, nats, and entropy, bits, of one record by position 1..T; L is the training length."""

    def __init__(self, rows: Rows, record: str, L: int) -> None:
        mine = sorted(
            (int(r['position']), float(r['loss_nats']), float(r['entropy_bits']))
            for r in rows
            if r['record'] == record
        )
        self.L = L
        self.loss = np.array([loss for _, loss, _ in mine])
        self.bits = np.array([bits for _, _, bits in mine])
        assert [i for i, _, _ in mine] == list(range(1, len(mine) + 1))

    def mean(self, low: float, high: float, what: str = 'loss') -> float:
        values = getattr(self, what)
        return float(np.mean([v for i, v in enumerate(values, start=1) if low < i <= high]))

    def loss_bend(self, threshold: float = 0.1, beside: Curve | None = None) -> float:
        """In multiples of L; infinite where there is none. beside: whose rise is taken off."""
        rise = self.rise()
        if beside is not None:
            rise = [a - b for a, b in zip(rise, beside.rise(), strict=False)]
        return self._bend(np.array(rise), threshold)

    def rise(self) -> list[float]:
        """Of the smoothed loss above its mean over [L/2, L]."""
        half = max(1, round(50 * self.L / 2048))
        padded = [self.loss[max(0, k - half) : k + half + 1].mean() for k in range(len(self.loss))]
        level = np.mean([v for i, v in enumerate(padded, 1) if self.L / 2 <= i <= self.L])
        return [float(v - level) for v in padded]

    def entropy_bend(self, threshold: float = 0.1) -> float:
        logs = np.log(np.arange(1, len(self.bits) + 1))
        inside = slice(-(-self.L // 4) - 1, self.L)  # positions from L/4 to L
        x, y = logs[inside], self.bits[inside]
        slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
        return self._bend(self.bits - (y.mean() + slope * (logs - x.mean())), threshold)

    def _bend(self, excess: np.ndarray, threshold: float) -> float:
        hold = max(1, self.L // 8)
        for i in range(1, len(excess) - hold + 2):
            if i > self.L / 2 and (excess[i - 1 : i - 1 + hold] > threshold).all():
                return i / self.L
        return np.inf


def by_position(rows: Rows, L: int, roles: dict[str, str]) -> tuple[Verdicts, Numbers]:
    """Figures 1 and 4. roles: base, uniform, headscale, RoPE, ntk -> record, those there are;
    `uniform` has a multiplier above 1."""
    c = {role: Curve(rows, record, L) for role, record in roles.items()}
    trained = {role: c[role] for role in ('base', 'rope') if role in c}
    found: Verdicts = {}
    numbers: Numbers = {}
    if {'base', 'rope'} <= set(c):
        apart = c['base'].mean(L / 2, L) - c['rope'].mean(L / 2, L)
        found['parity'] = word(abs(apart) <= 0.05)
        numbers['parity'] = [(apart, (-0.05, 0.05))]
    if trained:
        alone, beside = onset(trained), onset(trained, c.get('ntk'))
        found['onset'] = word(alone if alone == beside else None)
        meet = [bends_meet(trained, c.get('ntk'), t) for t in (0.05, 0.1, 0.2)]
        found['bends_meet'] = word(agreed(meet))
    if {'base', 'uniform'} <= set(c):
        base, uniform = c['base'], c['uniform']
        change = uniform.mean(0, L) - base.mean(0, L)
        found['uniform_hurts'] = word(change > 0.01)
        numbers['uniform_hurts'] = [(change, (0.01,))]
        moved = agreed([moves(base, uniform, t) for t in (0.05, 0.1, 0.2)])
        # That RoPE's bends stay, the other half of the claim, is not drawn here.
        if moved is False:
            found['bends_move'] = word(moved)
    if {'headscale', 'uniform'} <= set(c):
        heads, uniform, end = c['headscale'], c['uniform'], len(c['uniform'].loss)
        places = {'beats_uniform': (end - L / 4, end), 'hurts_less': (0, L)}
        for name, place in places.items():
            lower = uniform.mean(*place) - heads.mean(*place)
            found[f'headscale_{name}'] = word(beyond(lower, 0.01))
            numbers[f'headscale_{name}'] = [(lower, (0.0,))]
        bits = heads.mean(L, end, 'bits') - uniform.mean(L, end, 'bits')
        found['headscale_entropy'] = word(beyond(bits, 0.01))
        numbers['headscale_entropy'] = [(bits, (0.0,))]
    return found, numbers


def onset(trained: dict[str, Curve], ntk: Curve | None = None) -> bool | None:
    """ntk: a curve of the same text, whose rise above its own mean over [L/2, L] is taken off."""
    paper = {'base': 1.2, 'rope': 1.1}
    verdicts = []
    for threshold in (0.05, 0.1, 0.2):
        bends = {role: curve.loss_bend(threshold, ntk) for role, curve in trained.items()}
        near = all(0.8 <= bend / paper[role] <= 1.25 for role, bend in bends.items())
        verdicts.append(near and (len(bends) == 1 or bends['base'] > bends['rope']))
    return agreed(verdicts)


def agreed(verdicts: Sequence[bool | None]) -> bool | None:
    """Of several thresholds: nothing where they differ."""
    return verdicts[0] if len(set(verdicts)) == 1 else None


def bends_meet(trained: dict[str, Curve], ntk: Curve | None, t: float) -> bool:
    pairs = [(curve.entropy_bend(t), curve.loss_bend(t)) for curve in trained.values()]
    meet = all(np.isfinite(pair).all() and 0.8 <= pair[0] / pair[1] <= 1.25 for pair in pairs)
    return meet and (ntk is None or min(ntk.loss_bend(t), ntk.entropy_bend(t)) > 2)


def moves(base: Curve, scaled: Curve, t: float) -> bool | None:
    """None where one of the bends that would move is not there, and the other moves."""
    pairs = [(base.loss_bend(t), scaled.loss_bend(t))]
    pairs.append((base.entropy_bend(t), scaled.entropy_bend(t)))
    moved = [s > 1.05 * b for b, s in pairs if np.isfinite(b)]
    return False if False in moved else True if len(moved) == 2 else None


def by_head(rows: Rows) -> tuple[Verdicts, Numbers]:
    """Figure 5."""
    layers: dict[str, list[tuple[float, float]]] = {}
    for r in rows:
        layers.setdefault(r['layer'], []).append(
            (float(r['multiplier']), float(r['as_trained_bits']))
        )
    pairs = [np.array(layer).T for layer in layers.values()]
    centred = np.concatenate([p - p.mean(axis=1, keepdims=True) for p in pairs], axis=1)
    own = [pearson(*p) for p in pairs]
    negative = [r < 0 for r in own if r is not None]
    pooled = pearson(*centred)
    holds = pooled is not None and pooled < -0.3 and 2 * sum(negative) > len(negative)
    numbers = {} if pooled is None else {'entropy_against_multiplier': [(pooled, (-0.3,))]}
    return {'entropy_against_multiplier': word(holds)}, numbers


def pearson(x: np.ndarray, y: np.ndarray) -> float | None:
    if len(x) < 3 or x.min() == x.max() or y.min() == y.max():
        return None
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()))


def by_multiplier(rows: Rows, L: int, ordered: list[str]) -> tuple[Verdicts, Numbers]:
    """Figure 7. ordered: records of its panels, the one with the least training first."""
    slopes, fits, forms, rises, harms = {}, {}, [], [], []
    for record in ordered:
        mine = [r for r in rows if r['record'] == record]
        best = np.array([float(r['best_multiplier']) for r in mine])
        loss = np.array([float(r['best_loss_nats']) for r in mine])
        x = np.log(np.arange(L, len(best) + 1) / L)
        y = best[L - 1 :]
        a = (x * (y - 1)).sum() / (x * x).sum()
        r2 = 1 - ((y - 1 - a * x) ** 2).sum() / ((y - y.mean()) ** 2).sum()
        slopes[record], fits[record] = a, r2
        forms.append(a > 0 and r2 >= 0.9)
        change = [
            float(r['large_multiplier_loss_nats']) - float(r['base_loss_nats']) for r in mine[:L]
        ]
        harms.append(np.mean(change) > 0.01)
        rises.append(beyond(loss[-L // 2 :].mean() - loss[L // 2 : L].mean() - 0.1, 0.01))
    fewest, most = ordered[0], ordered[-1]
    grows = beyond(slopes[most] - slopes[fewest], 0.02)
    found = {
        'fit_form': word(all(forms)),
        'fit_slope': word(
            together([0.25 <= slopes[r] <= 0.45 if fits[r] >= 0.5 else None for r in ordered])
        ),
        'fit_budget': word(grows if min(fits[fewest], fits[most]) >= 0.5 else None),
        'uniform_hurts': word(all(harms)),
        'uniform_not_flat': word(together(rises)),
    }
    return found, {'fit_slope': [(slopes[r], (0.25, 0.45)) for r in ordered]}


def by_length(rows: Rows, roles: dict) -> Verdicts:
    """Figures of losses against length, all seeds at once. roles: base, uniform and, where there is
    one, log_length -> group; headscale -> {multiple of L: group}."""
    window, tail = {}, {}
    for r in rows:
        place = (r['group'], float(r['length_over_L']))
        window.setdefault(place, {})[r['seed']] = float(r['loss_window_nats'])
        tail.setdefault(place, {})[r['seed']] = float(r['loss_tail_nats'])

    def loss(table, group, multiple):
        return np.array([value for _, value in sorted(table[group, multiple].items())])

    groups = sorted({group for group, _ in window})
    multiples = sorted({multiple for _, multiple in window})
    heads = roles['headscale']
    hurts = [loss(window, g, 1) - loss(window, roles['base'], 1) for g in heads.values()]
    ahead = [loss(window, roles['uniform'], m) - loss(window, g, m) for m, g in heads.items()]
    rises = [
        loss(tail, g, 2 * m) - loss(tail, g, m) for m, g in heads.items() if 2 * m in multiples
    ]
    found = {
        'headscale_hurts': word(together([beyond(d, 0.01) for d in hurts])),
        'headscale_beats_uniform': word(together([beyond(d, 0.01) for d in ahead])),
        'fails_past_searched': word(together([beyond(d - 0.5) for d in rises])),
    }
    if 'log_length' not in roles:
        return found
    others = [g for g in groups if g != roles['log_length']]
    serves = []
    for m in multiples:
        best = min(others, key=lambda g: loss(window, g, m).mean())
        above = loss(window, roles['log_length'], m) - loss(window, best, m)
        serves.append(beyond(0.01 - above))
    return found | {'log_length_serves_every_length': word(together(serves))}
