"""Fields of a model configuration, and facts that follow from them."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from nope.model import lam
from nope.model.kinds import SIZES, LayerKind
from nope.model.lam import GivenLaw
from nope.positions import Gate, NoPE, Position, Table


def execution_detail(default: Any) -> Any:
    """A field that changes speed or memory, not results: it is left out of a run's identity."""
    return dataclasses.field(default=default, metadata={'identity': False})


@dataclasses.dataclass(frozen=True)
class ModelFields:
    """Fields of a model's configuration, and what follows from them about its layers and heads.

    The defaults are TinyLlama's shape: norms in front of a layer's parts, RMSNorm, SwiGLU,
    grouped-query attention, no biases.

    heads, kv_heads: N and K; query head n reads key-value head n // (N / K).
    position, window: of every layer, unless there is a pattern.
    pattern: kinds of layers in turns: layer i is pattern[i % len(pattern)].
    position_range: positions of the encodings lie below it: in training random ones, and evenly
        spread ones where none are given (`nope.model.sequence`); None for 0, 1, 2 and so on.
    lam, lam_layers: the law of lambda, and whether it acts in all heads of all layers or only in
        those without position encoding ('nope'; in the others it is 1).
    norm, norm_bias: 'rms' (RMSNorm), 'layer' (LayerNorm), the latter with or without a bias, or
        'none', no norms before layers' parts and the head (`nope.theorems`).
    block: where the norms of a layer stand, and what its parts read (`nope.model.blocks`):
        'pre', each part its own norm of the sum so far; 'parallel', both parts one norm of the
        layer's input (Command R); 'post', each part the sum so far itself, and a norm takes what
        it adds (OLMo 2); 'both', norms at either end of each part (Gemma).
    norm_offset: weights of norms are stored less 1 (Gemma).
    output_norm_epsilon: of norms behind a layer's parts; None for norm_epsilon.
    embedding_norm: a norm between the embeddings and the first layer too.
    qk_norm: an RMSNorm of every query and key head before the position encoding, in all layers
        whose kind does not say otherwise (RNoPE-SWA, arXiv 2501.18795, has none in NoPE layers).
    qk_norm_over: what its mean square is taken over: a head by itself ('head'), or all query heads
        and all key heads together ('projection', OLMo 2), each of which then has its own weights.
    qk_norm_weights: whether it has weights (not in Muse Glimmer).
    softmax_scale: what logits are multiplied with next to lambda; None for 1 / sqrt(H).
    law: a law that multiplies logits beside lambda, with coefficients that nothing searches (Llama
        4, Ministral 3); None for none.
    value_norm: every value head divided by the root of its mean square (Gemma 4).
    qkv_bias, output_bias, mlp_bias: of the projections.
    mlp, activation: 'gated', down(act(gate(x)) * up(x)), or 'plain', down(act(up(x))).
    sinks: a learned logit for each head and layer in every softmax, not beside forget gates
        (`nope.model.attention.sinks`).
    output_gate: what multiplies each head's output: nothing ('none'), or sigmoid(x W) with x what
        queries are projected from, a number for each head ('head') or for each of its dimensions
        ('element') (Qiu et al., 2025, arXiv 2505.06708).
    temperature: what multiplies 1 / sqrt(H) next to lambda, of every query and in the heads that
        `lam_layers` names: nothing ('none'), a learned function of the query's token and position
        ('adaptive'), or one of the entropy of its attention without it ('entropy')
        (`nope.model.attention.temperature`).
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
    dtype: of the computation; parameters are float32 always. Products of float32 are exact, and on
        accelerators many times slower than 'bfloat16'.
    remat: what the backward pass recomputes: nothing, norms and the MLP's gate ('elementwise'),
        everything but the matrix products ('dots'), or whole layers ('full'); 'fit' is in training
        the first of these that fits a device (`nope.training.remat`). XLA's CPU backend
        recomputes in a loop over layers only (`unroll`), and there a search of lambda always has
        'elementwise' in place of 'none'.
    attention: name of the attention implementation; None lets `nope.attention` choose.
    unroll: layers per iteration of the scan over layers; None for all of them, no loop.
    causal: whether a token sees no later ones. False makes an encoder, in which every token sees
        all tokens of its segment; without positions it reads a bag of words.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    mlp_width: int
    vocab_size: int
    head_dim: int
    position: Position = NoPE()
    lam: lam.Law = lam.Constant()
    tied_head: bool = False
    norm_epsilon: float = 1e-5
    dtype: str = 'float32'
    remat: str = execution_detail('none')
    attention: str | None = execution_detail(None)
    unroll: int | None = execution_detail(1)
    window: int | None = None
    pattern: tuple[LayerKind, ...] = ()
    lam_layers: str = 'all'
    norm: str = 'rms'
    norm_bias: bool = False
    embedding_norm: bool = False
    qk_norm: bool = False
    softmax_scale: float | None = None
    law: GivenLaw | None = None
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    mlp: str = 'gated'
    activation: str = 'silu'
    logit_multiplier: float = 1.0
    init: str = 'tinyllama'
    sinks: bool = False
    output_gate: str = 'none'
    temperature: str = 'none'
    weights: str = 'softmax'
    position_range: int | None = None
    block: str = 'pre'
    qk_norm_over: str = 'head'
    norm_offset: bool = False
    embedding_multiplier: float = 1.0
    dropout: float = 0.0
    attention_dropout: float = 0.0
    residual_multiplier: float = 1.0
    value_norm: bool = False
    layer_scale: bool = False
    token_width: int | None = None
    logit_cap: float | None = None
    causal: bool = True
    qk_norm_weights: bool = True
    output_norm_epsilon: float | None = None

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

    @functools.cached_property
    def attending(self) -> tuple[int, ...]:
        """The layers that have attention. Arrays by layer and head, as those of lambda and entropy
        are, have a row for each of these: their L is `attention_layers`."""
        return tuple(i for i, kind in enumerate(self.layer_kinds) if kind.attends)

    @property
    def attention_layers(self) -> int:
        """Number of layers that have attention."""
        return len(self.attending)

    @property
    def rewinds(self) -> bool:
        """Whether a cache can forget its last tokens: keys can, and states cannot."""
        return all(kind.attends or kind.mixer is None for kind in self.kinds)

    @property
    def apart(self) -> bool:
        """Whether every layer has arrays of its own, {'0': ..., '1': ...}, in place of a row of
        stacks: where layers differ in the shapes of their arrays, or read the tokens."""
        return self.token_width is not None or any(kind.has_own_arrays for kind in self.kinds)

    def source_of(self, layer: int) -> int:
        """Source of a layer's keys and values: itself, or the last layer before it of the same kind
        with own ones."""
        source = self.sources[layer]
        assert source is not None  # checked when the model was made
        return source

    @functools.cached_property
    def sources(self) -> tuple[int | None, ...]:
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
        """Of every layer with attention, whether none of its heads has a position encoding."""
        return tuple(bool(heads_N.all()) for heads_N in self.heads_without_position)

    @property
    def heads_without_position(self) -> np.ndarray:
        """bool [L, N]: of every head, whether it has no position encoding."""
        kinds = (self.layer_kinds[layer] for layer in self.attending)
        return np.stack([kind.position.without_position(self.heads) for kind in kinds])

    def scaled_heads(self, kind: LayerKind) -> np.ndarray:
        """bool [N]: of the heads of such a layer, whether lambda and the temperature act there."""
        if self.lam_layers == 'all':
            return np.ones(self.heads, bool)
        return kind.position.without_position(self.heads)

    @property
    def heads_with_lam(self) -> np.ndarray:
        """bool [L, N]: of every head, whether lambda and the temperature act there."""
        return np.stack([self.scaled_heads(self.layer_kinds[i]) for i in self.attending])

    @property
    def layers_with_qk_norm(self) -> np.ndarray:
        """bool [L]: of every layer with attention, whether it norms its queries and keys."""
        kinds = (self.layer_kinds[layer] for layer in self.attending)
        return np.array([self.qk_norm and kind.qk_norm is not False for kind in kinds])

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
        laws = self.lam.follows_length or (self.law is not None and self.law.law.follows_length)
        return spread or laws or any(k.position.follows_length for k in self.kinds)

    @property
    def scale_follows_position(self) -> bool:
        """Whether `scale` depends on the position of the query."""
        given = self.law is not None and self.law.law.follows_position
        return self.lam.follows_position or given

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
        """'none', 'RoPE, YaRN x4', 'RoPE + none': the kinds of layers by how far they see."""
        kinds = ' + '.join(k.describe() for k in dict.fromkeys(kind.reach for kind in self.kinds))
        law = '' if self.law is None else f', {self.law.describe()}'
        drawn = self.position_range
        below = '' if drawn is None else f', random positions below {drawn}'
        return f'{kinds}{law}{below}'

    def describe_kinds(self) -> str:
        """The kinds of layers with all in which they differ."""
        return ' + '.join(kind.describe() for kind in self.kinds)

    def _kind_of(self, layer: int) -> LayerKind:
        if not self.pattern:
            return LayerKind(self.position, self.window)
        kind = self.pattern[layer % len(self.pattern)]
        said = {name: getattr(self, name) for name in ('qk_norm', *SIZES)}
        changes: dict[str, Any] = {
            name: None for name, value in said.items() if getattr(kind, name) == value
        }
        return dataclasses.replace(kind, **changes) if changes else kind
