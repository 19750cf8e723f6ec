"""Model configuration: one frozen value, checked when it is made."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nope.identity import added_later, none_was
from nope.model import accepted, lam
from nope.model.kinds import SIZES, LayerKind
from nope.positions import Gate, NoPE, Position, Table
from nope.runtime.errors import FieldError, inside


def execution_detail(default: Any) -> Any:
    """A field that changes speed or memory, not results: it is left out of a run's identity."""
    return dataclasses.field(default=default, metadata={'identity': False})


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """A decoder. The defaults are TinyLlama's shape: norms in front of a layer's parts, RMSNorm,
    SwiGLU, grouped-query attention, no biases.

    heads, kv_heads: N and K; query head n reads key-value head n // (N / K).
    position, window: of every layer, unless there is a pattern.
    pattern: kinds of layers in turns: layer i is pattern[i % len(pattern)].
    position_range: positions of the encodings lie below it: in training random ones, and evenly
        spread ones where none are given (`nope.model.spread`); None for 0, 1, 2 and so on.
    lam, lam_layers: the form of lambda, and whether it acts in all heads of all layers or only in
        those without position encoding ('nope'; in the others it is 1).
    norm, norm_bias: 'rms' (RMSNorm), 'layer' (LayerNorm), the latter with or without a bias, or
        'none', no norms before layers' parts and the head (`nope.theorems`).
    block: where the norms of a layer stand, and what its parts read (`nope.model.transformer`):
        'pre', each part its own norm of the sum so far; 'parallel', both parts one norm of the
        layer's input (Command R); 'post', each part the sum so far itself, and a norm takes what
        it adds (OLMo 2); 'both', norms at either end of each part (Gemma).
    norm_offset: weights of norms are stored less 1 (Gemma).
    embedding_norm: a norm between the embeddings and the first layer too.
    qk_norm: an RMSNorm of every query and key head before the position encoding, in all layers
        whose kind does not say otherwise (RNoPE-SWA, arXiv 2501.18795, has none in NoPE layers).
    qk_norm_over: what its mean square is taken over: a head by itself ('head'), or all query heads
        and all key heads together ('projection', OLMo 2), each of which then has its own weights.
    softmax_scale: what logits are multiplied with next to lambda; None for 1 / sqrt(H).
    value_norm: every value head divided by the root of its mean square (Gemma 4).
    qkv_bias, output_bias, mlp_bias: of the projections.
    mlp, activation: 'gated', down(act(gate(x)) * up(x)), or 'plain', down(act(up(x))).
    sinks: a learned logit for each head and layer in every softmax (`nope.model.sinks`); not beside
        forget gates.
    output_gate: what multiplies each head's output: nothing ('none'), or sigmoid(x W) with x what
        queries are projected from, a number for each head ('head') or for each of its dimensions
        ('element') (Qiu et al., 2025, arXiv 2505.06708).
    temperature: what multiplies 1 / sqrt(H) next to lambda, of every query and in the heads that
        `lam_layers` names: nothing ('none'), a learned function of the query's token and position
        ('adaptive'), or one of the entropy of its attention without it ('entropy')
        (`nope.model.temperature`).
    weights: rule of the attention weights: 'softmax', or one that holds a T x S array for each
        head, 'entmax' (alpha = 1.5) or 'stick_breaking' (`nope.attention.dense`).
    tied_head: the embedding matrix is the vocabulary projection too.
    embedding_multiplier: of the embeddings, before positions are added (Gemma: sqrt(D)).
    residual_multiplier: of what a layer's parts add to the sum so far (Granite).
    layer_scale: what leaves a layer is multiplied by a learned number (Gemma 4).
    token_width: width P of what every layer reads of the tokens besides the sum so far
        (`nope.model.token_inputs`, Gemma 3n); None for nothing.
    logit_multiplier: of the final hidden states (T5 with a tied head: 1 / sqrt(D)).
    logit_cap: c of the logits c tanh(logit / c); None for logits as they are (Gemma).
    dropout: in training the probability with which an entry of the embeddings, of the MLP's
        activations, of what attention and MLP add and of the final hidden states becomes 0
        (`nope.model.dropout`).
    attention_dropout: that of the attention weights; 'reference' alone has it, with T x S numbers
        for each head, and then trains whatever evaluations attend with.
    init: the rule fresh parameters are drawn by (`nope.model.init`).
    dtype: of the computation; parameters are float32 always.
    remat: what the backward pass recomputes: nothing, norms and the MLP's gate ('elementwise'),
        everything but the matrix products ('dots'), whole layers ('full'), or whole layers with
        what goes into each kept in the host's memory ('offload'). XLA's CPU backend recomputes in
        a loop over layers only (`unroll`), and there a search of lambda always has 'elementwise' in
        place of 'none'.
    attention: name of the attention implementation; None lets `nope.attention` choose.
    unroll: layers per iteration of the scan over layers; None for all of them, no loop.

    Raises FieldError for a value out of range, and for values that do not go together.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    mlp_width: int
    vocab_size: int
    head_dim: int
    position: Position = NoPE()
    lam: lam.Form = lam.Constant()
    tied_head: bool = False
    norm_epsilon: float = 1e-5
    dtype: str = 'float32'
    remat: str = execution_detail('none')
    attention: str | None = execution_detail(None)
    unroll: int | None = execution_detail(1)
    window: int | None = none_was(0, added_later=True)
    pattern: tuple[LayerKind, ...] = added_later(())
    lam_layers: str = added_later('all')
    norm: str = added_later('rms')
    norm_bias: bool = added_later(False)
    embedding_norm: bool = added_later(False)
    qk_norm: bool = added_later(False)
    softmax_scale: float | None = none_was(0.0, added_later=True)
    qkv_bias: bool = added_later(False)
    output_bias: bool = added_later(False)
    mlp_bias: bool = added_later(False)
    mlp: str = added_later('gated')
    activation: str = added_later('silu')
    logit_multiplier: float = added_later(1.0)
    init: str = added_later('tinyllama')
    sinks: bool = added_later(False)
    output_gate: str = added_later('none')
    temperature: str = added_later('none')
    weights: str = added_later('softmax')
    position_range: int | None = added_later(None)
    block: str = added_later('pre')
    qk_norm_over: str = added_later('head')
    norm_offset: bool = added_later(False)
    embedding_multiplier: float = added_later(1.0)
    dropout: float = added_later(0.0)
    attention_dropout: float = added_later(0.0)
    residual_multiplier: float = added_later(1.0)
    value_norm: bool = added_later(False)
    layer_scale: bool = added_later(False)
    token_width: int | None = added_later(None)
    logit_cap: float | None = added_later(None)

    def __post_init__(self) -> None:
        accepted.check(vars(self))
        if self.heads % self.kv_heads:
            raise FieldError(
                'kv_heads', self.kv_heads, f'heads, {self.heads}, must be a multiple of it'
            )
        if self.norm_bias and self.norm != 'layer':
            raise FieldError('norm_bias', True, "only the norm 'layer' has a bias")
        if self.embedding_norm and self.norm == 'none':
            raise FieldError('embedding_norm', True, "the norm is 'none'")
        if self.qk_norm_over != 'head' and not self.qk_norm:
            raise FieldError('qk_norm_over', self.qk_norm_over, 'qk_norm is False')
        if self.unroll is not None and not 1 <= self.unroll <= self.layers:
            raise FieldError(
                'unroll', self.unroll, f'accepted: 1 to layers, {self.layers}, or None for all'
            )
        if self.attention_dropout > 0 and self.attention not in (None, 'reference'):
            raise FieldError(
                'attention',
                self.attention,
                f"attention_dropout is {self.attention_dropout}, which 'reference' alone has; "
                "accepted: None, 'reference', or attention_dropout 0.0",
            )
        self._check_kinds()
        self._check_weights()

    def _check_kinds(self) -> None:
        LayerKind(self.position, self.window)  # checks the window
        if not self.pattern:
            self._check_position(LayerKind(self.position), 'position')
        else:
            self._check_pattern()
            self._check_sizes()
        if self.position_range is not None:
            self._check_range(self.position_range)
        if self.lam_layers == 'nope' and not self.heads_without_position.any():
            raise FieldError(
                'lam_layers',
                self.lam_layers,
                f'every head has a position encoding ({self.describe_position()})',
            )

    def _check_weights(self) -> None:
        """FieldError for what softmax alone has, where the weights are others, and for sinks beside
        gates that softmax alone does not cancel."""
        if self.sinks and self.gate is not None:
            raise FieldError(
                'sinks',
                True,
                f'forget gates ({self.describe_position()}) move the logits of all keys of a query '
                'alike, and a sink has a logit that stays; accepted: False',
            )
        if self.weights == 'softmax':
            return
        if self.attention is not None:
            rule = f"weights {self.weights!r} have one implementation; accepted: None, or 'softmax'"
            raise FieldError('attention', self.attention, rule)
        if self.temperature == 'entropy':
            rule = f'it follows the entropy of softmax, and weights are {self.weights!r}'
            raise FieldError('temperature', self.temperature, rule)
        if self.sinks:
            raise FieldError('sinks', True, f"weights {self.weights!r} have none; only 'softmax'")
        if self.weights == 'stick_breaking' and self.gate is not None:
            raise FieldError(
                'weights',
                self.weights,
                f'forget gates ({self.describe_position()}) move every logit of a query alike, '
                "which 'softmax' and 'entmax' remove and it does not",
            )

    def _check_range(self, position_range: int) -> None:
        """FieldError unless random positions below that are for every encoding of the model."""
        encodings = [kind.position for kind in self.kinds if kind.position != NoPE()]
        if not encodings:
            raise FieldError(
                'position_range', position_range, 'the model has no position encoding, and no use'
            )
        for position in encodings:
            if not position.takes_positions or position.follows_length:
                raise FieldError(
                    'position_range',
                    position_range,
                    f'{position.describe()} does not follow given positions alone; accepted: '
                    'rotary without a rule that follows the length, sinusoidal, learned, and split '
                    'heads of them',
                )
            if position.longest is not None and position.longest < position_range:
                rule = f'{position.describe()} positions end at {position.longest}'
                raise FieldError('position_range', position_range, rule)
        if not 1 <= position_range <= 2**30:
            raise FieldError('position_range', position_range, 'accepted: 1 to 2**30')

    def _check_pattern(self) -> None:
        for name, neutral in (('position', NoPE()), ('window', None)):
            value = getattr(self, name)
            if value != neutral:
                shown = value.describe() if isinstance(value, Position) else value
                raise FieldError(name, shown, 'it must be left out: pattern says what layers are')
        if len(self.pattern) > self.layers:
            raise FieldError(
                'pattern',
                tuple(kind.describe() for kind in self.pattern),
                f'it has {len(self.pattern)} kinds of layers; there are {self.layers} layers',
            )
        for i, kind in enumerate(self.pattern):
            self._check_position(kind, f'pattern[{i}].position')
        self._check_norms()
        tables = {k.position for k in self.kinds if k.position.table(self.width, self.heads)}
        if len(tables) > 1:
            raise FieldError(
                'pattern',
                tuple(kind.describe() for kind in self.pattern),
                'it has several learned encodings; accepted is one',
            )
        gates = {kind.position.gate(self.heads) for kind in self.pattern} - {None}
        if len(gates) > 1:
            raise FieldError(
                'pattern',
                tuple(kind.describe() for kind in self.pattern),
                'it has forget gates of several forms; accepted is one number of gated heads and '
                'one start',
            )

    def _check_norms(self) -> None:
        for i, kind in enumerate(self.pattern):
            if kind.qk_norm and not self.qk_norm:
                raise FieldError(
                    f'pattern[{i}].qk_norm',
                    True,
                    'the model has no QK-norm; accepted: qk_norm of the model True, and False for '
                    'the kinds of layers without it',
                )
        if self.qk_norm and not any(self.layers_with_qk_norm):
            raise FieldError('qk_norm', True, 'every kind of layer in pattern is without it')

    def _check_sizes(self) -> None:
        """FieldError for sizes of a kind that do not fit the model, and for keys of a layer that
        there is not."""
        for i, kind in enumerate(self.pattern):
            if kind.kv_heads is not None and self.heads % kind.kv_heads:
                rule = f'heads, {self.heads}, must be a multiple of it'
                raise FieldError(f'pattern[{i}].kv_heads', kind.kv_heads, rule)
            if kind.head_dim is not None:
                with inside('lam'):
                    self.lam.check_head_dim(kind.head_dim)
            if kind.keys_from == 'earlier' and self.gate is not None:
                raise FieldError(
                    f'pattern[{i}].keys_from',
                    kind.keys_from,
                    f'forget gates ({self.describe_position()}) are of the layer that keys are of',
                )
        if None in self._sources:
            layer = self._sources.index(None)
            place, kind = f'pattern[{layer % len(self.pattern)}]', self.layer_kinds[layer]
            wanted = kind.source.describe()
            rule = f'no layer before layer {layer} has keys of its own and is {wanted}'
            raise FieldError(f'{place}.keys_from', kind.keys_from, rule)

    def _check_position(self, kind: LayerKind, place: str) -> None:
        """FieldError for an encoding, of the field `place`, that does not fit such layers of the
        model."""
        position = kind.position
        with inside(place, 'head_dim'):
            position.check(kind.head_dim or self.head_dim)
            position.check_heads(self.heads, kind.kv_heads or self.kv_heads)
        if self.pattern and position.embeds:
            rule = 'it is added to the embeddings: layers cannot differ in it'
            raise FieldError(place, position.describe(), rule)

    @property
    def kinds(self) -> tuple[LayerKind, ...]:
        """The different kinds of layers."""
        return tuple(dict.fromkeys(self.layer_kinds))

    @functools.cached_property
    def layer_kinds(self) -> tuple[LayerKind, ...]:
        """[L]: the kind of every layer."""
        return tuple(self._kind_of(layer) for layer in range(self.layers))

    @property
    def kind_indices(self) -> np.ndarray:
        """int32 [L]: of every layer, which of `kinds` it is."""
        kinds = self.kinds
        return np.array([kinds.index(kind) for kind in self.layer_kinds], np.int32)

    @property
    def apart(self) -> bool:
        """Whether every layer has arrays of its own, {'0': ..., '1': ...}, in place of a row of
        stacks: where layers differ in the shapes of their arrays, or read the tokens."""
        return self.token_width is not None or any(kind.has_own_arrays for kind in self.kinds)

    def of_layer(self, layer: int) -> ModelConfig:
        """The model with the sizes of that layer as its own; its `kinds` are in the same order."""
        kind = self.layer_kinds[layer]
        return _of_kind(self, kind) if kind.has_own_arrays else self

    def source_of(self, layer: int) -> int:
        """The layer whose keys and values a layer attends to: itself, or the last one before it
        that has its own and is like it."""
        source = self._sources[layer]
        assert source is not None  # checked when the model was made
        return source

    @functools.cached_property
    def _sources(self) -> tuple[int | None, ...]:
        """[L]: as `source_of`; None where there is no such layer."""
        last: dict[LayerKind, int] = {}
        found: list[int | None] = []
        for layer, kind in enumerate(self.layer_kinds):
            if kind.keys_from == 'input':
                last[kind.source] = layer
            found.append(layer if kind.keys_from == 'input' else last.get(kind.source))
        return tuple(found)

    @property
    def without_position(self) -> tuple[bool, ...]:
        """Of every layer, whether none of its heads has a position encoding."""
        return tuple(bool(heads_N.all()) for heads_N in self.heads_without_position)

    @property
    def heads_without_position(self) -> np.ndarray:
        """bool [L, N]: of every head, whether it has no position encoding."""
        found = [kind.position.without_position(self.heads) for kind in self.layer_kinds]
        return np.stack(found)

    def scaled_heads(self, kind: LayerKind) -> np.ndarray:
        """bool [N]: of the heads of such a layer, whether lambda and the temperature act there."""
        if self.lam_layers == 'all':
            return np.ones(self.heads, bool)
        return kind.position.without_position(self.heads)

    @property
    def layers_with_qk_norm(self) -> np.ndarray:
        """bool [L]: of every layer, whether it norms its queries and keys."""
        return np.array([self.qk_norm and k.qk_norm is not False for k in self.layer_kinds])

    @property
    def chunked(self) -> bool:
        """Whether any of its layers attends inside chunks."""
        return any(kind.chunk is not None for kind in self.kinds)

    @property
    def longest(self) -> int | None:
        """The longest sequence that its encodings are defined for; None for any."""
        limits = [kind.position.longest for kind in self.kinds]
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def drops(self) -> bool:
        """Whether it has dropout in training."""
        return self.dropout > 0 or self.attention_dropout > 0

    @property
    def follows_length(self) -> bool:
        """Whether what it makes of a token depends on the length of the whole sequence."""
        spread = self.position_range is not None
        return (
            spread or self.lam.follows_length or any(k.position.follows_length for k in self.kinds)
        )

    @property
    def table(self) -> Table | None:
        """The learned array of its position encoding."""
        tables = [kind.position.table(self.width, self.heads) for kind in self.kinds]
        return next((table for table in tables if table is not None), None)

    @property
    def gate(self) -> Gate | None:
        """The forget gates of its layers; those without such heads have them too, and do not use
        them, since all layers have the same arrays."""
        gates = [kind.position.gate(self.heads) for kind in self.kinds]
        return next((gate for gate in gates if gate is not None), None)

    def describe_position(self) -> str:
        """'none', 'rotary, YaRN x4', 'rotary + none': the kinds of layers by how far they see."""
        kinds = ' + '.join(k.describe() for k in dict.fromkeys(kind.reach for kind in self.kinds))
        drawn = self.position_range
        return kinds if drawn is None else f'{kinds}, random positions below {drawn}'

    def describe_kinds(self) -> str:
        """The kinds of layers with all in which they differ."""
        return ' + '.join(kind.describe() for kind in self.kinds)

    def with_position(self, position: Position) -> ModelConfig:
        """The same model with another encoding in every layer that has one (and everywhere, where
        none has). Without an encoding there are no random positions either."""
        if self.position_range is not None and position == NoPE():
            return dataclasses.replace(self, position_range=None).with_position(position)
        if not self.pattern:
            return dataclasses.replace(self, position=position)
        self._check_position(LayerKind(position), 'position')
        everywhere = all(isinstance(kind.position, NoPE) for kind in self.pattern)
        kinds = (
            dataclasses.replace(kind, position=position)
            if everywhere or not isinstance(kind.position, NoPE)
            else kind
            for kind in self.pattern
        )
        return dataclasses.replace(self, pattern=tuple(kinds))

    def multipliers(
        self,
        coefficients_LN: jax.Array,
        length: int | jax.Array,
        positions_T: jax.Array | None = None,
    ) -> jax.Array:
        """p_h of every layer and head of one sequence, float32: 1 where lambda does not act.

        coefficients_LN: float32, [L, N, C] of a form with C > 1 numbers a head. length: tokens in
        the sequence. positions_T: int32, of the queries, 0-based; for a form
        that follows the position, without which it raises ValueError. [L, N], or [L, T, N] of
        such a form.
        """
        if self.lam.follows_position and positions_T is None:
            raise ValueError(
                f'lambda of the form {type(self.lam).__name__} follows the position of the query: '
                'its multipliers need positions_T'
            )
        multipliers = self.lam.multipliers(coefficients_LN, length, positions_T)
        if self.lam_layers == 'all':
            return multipliers
        acts_LN = self.heads_without_position
        if multipliers.ndim == 3:
            acts_LN = acts_LN[:, None]
        return jnp.where(acts_LN, multipliers, 1.0)

    def _kind_of(self, layer: int) -> LayerKind:
        if not self.pattern:
            return LayerKind(self.position, self.window)
        kind = self.pattern[layer % len(self.pattern)]
        said = {name: getattr(self, name) for name in ('qk_norm', *SIZES)}
        changes: dict[str, Any] = {
            name: None for name, value in said.items() if getattr(kind, name) == value
        }
        return dataclasses.replace(kind, **changes) if changes else kind


@functools.lru_cache(maxsize=64)
def _of_kind(config: ModelConfig, kind: LayerKind) -> ModelConfig:
    """`config` with the sizes of that kind as its own."""

    def said(kind: LayerKind) -> dict[str, Any]:
        return {name: getattr(kind, name) or getattr(config, name) for name in SIZES}

    pattern = tuple(dataclasses.replace(other, **said(other)) for other in config.pattern)
    return dataclasses.replace(config, **said(kind), pattern=pattern)
