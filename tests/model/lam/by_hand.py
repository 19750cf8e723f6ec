"""A decoder of `tests.tiny.MODEL`'s kind, its norms in any place, written out in float64 NumPy,
with any multipliers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nope.model import ModelConfig


class Output(NamedTuple):
    """hidden [T, D] after the final norm; entropy [L, N, T], nats."""

    hidden: np.ndarray
    entropy: np.ndarray


def forward(
    config: ModelConfig, params: Any, tokens_T: np.ndarray, multipliers_LTN: np.ndarray
) -> Output:
    """One sequence. multipliers_LTN: of 1/sqrt(H), for every layer, query and head."""

    def leaf(*path: str) -> np.ndarray:
        found = params
        for key in path:
            found = found[key]
        return np.asarray(found, np.float64)

    def norm(layer: int, name: str, x_TD: np.ndarray) -> np.ndarray:
        return _rms(config, x_TD, leaf('layers', name, 'scale')[layer])

    def attention(layer: int, x_TD: np.ndarray) -> np.ndarray:
        q, k, v, out = (
            leaf('layers', 'attention', name)[layer] for name in ('query', 'key', 'value', 'output')
        )
        q_TNH, k_TKH, v_TKH = (np.einsum('TD,DNH->TNH', x_TD, w) for w in (q, k, v))
        seen_TNH, entropy_NT = _attend(q_TNH, k_TKH, v_TKH, multipliers_LTN[layer])
        entropies.append(entropy_NT)
        return np.einsum('TNH,NHD->TD', seen_TNH, out)

    def mlp(layer: int, x_TD: np.ndarray) -> np.ndarray:
        gate, up, down = (leaf('layers', 'mlp', name)[layer] for name in ('gate', 'up', 'down'))
        gate_TF = x_TD @ gate
        return (gate_TF / (1 + np.exp(-gate_TF)) * (x_TD @ up)) @ down

    x_TD = leaf('embedding')[tokens_T] * config.embedding_multiplier
    entropies: list[np.ndarray] = []
    for layer in range(config.layers):
        if config.block == 'pre':
            x_TD = x_TD + attention(layer, norm(layer, 'attention_norm', x_TD))
            x_TD = x_TD + mlp(layer, norm(layer, 'mlp_norm', x_TD))
        elif config.block == 'parallel':
            normed_TD = norm(layer, 'attention_norm', x_TD)
            x_TD = x_TD + attention(layer, normed_TD) + mlp(layer, normed_TD)
        elif config.block == 'both':
            added_TD = attention(layer, norm(layer, 'attention_norm', x_TD))
            x_TD = x_TD + norm(layer, 'attention_output_norm', added_TD)
            added_TD = mlp(layer, norm(layer, 'mlp_norm', x_TD))
            x_TD = x_TD + norm(layer, 'mlp_output_norm', added_TD)
        else:
            x_TD = x_TD + norm(layer, 'attention_norm', attention(layer, x_TD))
            x_TD = x_TD + norm(layer, 'mlp_norm', mlp(layer, x_TD))
    return Output(_rms(config, x_TD, leaf('final_norm', 'scale')), np.stack(entropies))


def _attend(
    q_TNH: np.ndarray, k_TKH: np.ndarray, v_TKH: np.ndarray, multipliers_TN: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """softmax_j(p_ih / sqrt(H) q_i . k_j) over j <= i, and its entropy."""
    T, N, H = q_TNH.shape
    k_TNH, v_TNH = (x.repeat(N // x.shape[1], axis=1) for x in (k_TKH, v_TKH))
    factor_NT1 = (multipliers_TN / H**0.5).T[..., None]
    logits_NTS = np.einsum('TNH,SNH->NTS', q_TNH, k_TNH) * factor_NT1
    logits_NTS[:, np.triu(np.ones((T, T), bool), 1)] = -np.inf
    weights_NTS = np.exp(logits_NTS - logits_NTS.max(-1, keepdims=True))
    weights_NTS /= weights_NTS.sum(-1, keepdims=True)
    logs_NTS = np.log(np.where(weights_NTS > 0, weights_NTS, 1))
    return np.einsum('NTS,SNH->TNH', weights_NTS, v_TNH), -(weights_NTS * logs_NTS).sum(-1)


def _rms(config: ModelConfig, x_TD: np.ndarray, weight_D: np.ndarray) -> np.ndarray:
    mean_square = np.mean(x_TD**2, axis=-1, keepdims=True)
    return x_TD / np.sqrt(mean_square + config.norm_epsilon) * (weight_D + config.norm_offset)
