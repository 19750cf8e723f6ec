"""Published configs of hybrids and other blocks, and the models that they describe. The parameters
are as many as stock `transformers` makes of the same configs."""

from __future__ import annotations

from typing import Any

from nope.interop.families import Described, family_of
from nope.model import LayerKind, counts
from nope.model.lam import GivenLaw, LogFloor
from nope.model.mixers import Attention, Mamba2
from nope.positions import ByParts, Linear, LongRoPE, RoPE, longrope_multiplier

NONE: frozenset[str] = frozenset()


def described(config: dict[str, Any]) -> Described:
    return family_of(config, NONE).read_config(config, NONE)


COMMAND_R7B: dict[str, Any] = {
    'architectures': ['Cohere2ForCausalLM'],
    'attention_bias': False,
    'bos_token_id': 5,
    'cache_implementation': 'hybrid',
    'eos_token_id': 255001,
    'head_dim': 128,
    'hidden_act': 'silu',
    'hidden_size': 4096,
    'intermediate_size': 14336,
    'layer_norm_eps': 1e-05,
    'layer_switch': 4,
    'logit_scale': 0.25,
    'max_position_embeddings': 132096,
    'model_type': 'cohere2',
    'num_attention_heads': 32,
    'num_hidden_layers': 32,
    'num_key_value_heads': 8,
    'order_of_interleaved_layers': 'local_attn_first',
    'position_embedding_type': 'rope_gptj',
    'rope_scaling': None,
    'rope_theta': 50000,
    'rotary_pct': 1.0,
    'sliding_window': 4096,
    'sliding_window_pattern': 4,
    'torch_dtype': 'bfloat16',
    'use_embedding_sharing': True,
    'use_gated_activation': True,
    'use_parallel_block': True,
    'use_qk_norm': False,
    'vocab_size': 256000,
}


def test_command_r7b_has_no_positions_in_every_fourth_layer() -> None:
    about = described(COMMAND_R7B)
    model, sliding = about.model, LayerKind(RoPE(50_000.0), 4096)
    assert model.pattern == (sliding, sliding, sliding, LayerKind())
    assert (model.block, model.norm) == ('parallel', 'layer')
    assert not model.norm_bias and not model.qk_norm
    assert model.tied_head and model.logit_multiplier == 0.25
    assert about.train_length == 132_096
    assert counts.parameters(model) == 8_028_033_024


# The text model of 4B says in its config only where it differs from the class.
GEMMA3_4B: dict[str, Any] = {
    'architectures': ['Gemma3ForConditionalGeneration'],
    'boi_token_index': 255999,
    'eoi_token_index': 256000,
    'eos_token_id': [1, 106],
    'image_token_index': 262144,
    'mm_tokens_per_image': 256,
    'model_type': 'gemma3',
    'text_config': {
        'hidden_size': 2560,
        'intermediate_size': 10240,
        'model_type': 'gemma3_text',
        'num_hidden_layers': 34,
        'rope_scaling': {'factor': 8.0, 'rope_type': 'linear'},
        'sliding_window': 1024,
    },
    'torch_dtype': 'bfloat16',
    'vision_config': {'hidden_size': 1152, 'model_type': 'siglip_vision_model'},
}


def test_gemma3_with_images_has_the_text_model_of_its_class() -> None:
    about = described(GEMMA3_4B)
    model = about.model
    full = LayerKind(RoPE(1e6, Linear(8.0)))
    assert model.pattern[:6] == (*(LayerKind(RoPE(), 1024),) * 5, full)
    assert (model.heads, model.kv_heads, model.head_dim, model.vocab_size) == (8, 4, 256, 262_208)
    assert (about.bos, about.eos, about.pad) == (2, 1, 0)
    assert counts.parameters(model) == 3_880_263_168


SLIDING, FULL = 'sliding_attention', 'full_attention'
GEMMA4_ROPE = {
    FULL: {'partial_rotary_factor': 0.25, 'rope_theta': 1000000.0, 'rope_type': 'proportional'},
    SLIDING: {'rope_theta': 10000.0, 'rope_type': 'default'},
}
GEMMA4_E2B: dict[str, Any] = {
    'architectures': ['Gemma4ForConditionalGeneration'],
    'audio_config': {'model_type': 'gemma4_audio'},
    'dtype': 'bfloat16',
    'eos_token_id': [1, 106],
    'model_type': 'gemma4',
    'text_config': {
        'attention_k_eq_v': False,
        'bos_token_id': 2,
        'enable_moe_block': False,
        'eos_token_id': 1,
        'final_logit_softcapping': 30.0,
        'global_head_dim': 512,
        'head_dim': 256,
        'hidden_activation': 'gelu_pytorch_tanh',
        'hidden_size': 1536,
        'hidden_size_per_layer_input': 256,
        'intermediate_size': 6144,
        'layer_types': [*[SLIDING] * 4, FULL] * 7,
        'max_position_embeddings': 131072,
        'model_type': 'gemma4_text',
        'num_attention_heads': 8,
        'num_global_key_value_heads': None,
        'num_hidden_layers': 35,
        'num_key_value_heads': 1,
        'num_kv_shared_layers': 20,
        'rms_norm_eps': 1e-06,
        'rope_parameters': GEMMA4_ROPE,
        'sliding_window': 512,
        'tie_word_embeddings': True,
        'use_double_wide_mlp': True,
        'vocab_size': 262144,
        'vocab_size_per_layer_input': 262144,
    },
    'tie_word_embeddings': True,
    'vision_config': {'model_type': 'gemma4_vision'},
}


def test_layers_of_gemma4_e2b_attend_to_the_keys_of_two() -> None:
    about = described(GEMMA4_E2B)
    model = about.model
    local = LayerKind(RoPE(), 512)
    whole = LayerKind(RoPE(1e6, share=0.25), head_dim=512)
    assert model.layer_kinds[:5] == (*(local,) * 4, whole)
    assert {model.source_of(layer) for layer in range(15, 35)} == {13, 14}
    assert all(kind.mlp_width == 2 * 6144 for kind in model.layer_kinds[15:])
    assert (about.bos, about.eos, about.pad) == (2, 1, 0)
    # That of stock, and a factor of each layer, which is none of its parameters.
    assert counts.parameters(model) == 4_628_569_344 + 35


MINISTRAL3_3B: dict[str, Any] = {
    'architectures': ['Mistral3ForConditionalGeneration'],
    'dtype': 'bfloat16',
    'image_token_index': 10,
    'model_type': 'mistral3',
    'multimodal_projector_bias': False,
    'text_config': {
        'attention_dropout': 0.0,
        'head_dim': 128,
        'hidden_act': 'silu',
        'hidden_size': 3072,
        'intermediate_size': 9216,
        'max_position_embeddings': 262144,
        'model_type': 'ministral3',
        'num_attention_heads': 32,
        'num_hidden_layers': 26,
        'num_key_value_heads': 8,
        'rms_norm_eps': 1e-05,
        'rope_parameters': {
            'beta_fast': 32.0,
            'beta_slow': 1.0,
            'factor': 16.0,
            'llama_4_scaling_beta': 0.1,
            'mscale': 1.0,
            'mscale_all_dim': 1.0,
            'original_max_position_embeddings': 16384,
            'rope_theta': 1000000.0,
            'rope_type': 'yarn',
            'type': 'yarn',
        },
        'sliding_window': None,
        'tie_word_embeddings': True,
        'vocab_size': 131072,
    },
    'vision_config': {'hidden_size': 1024, 'model_type': 'pixtral'},
}


def test_ministral3_with_images_has_a_text_model_whose_queries_grow() -> None:
    about = described(MINISTRAL3_3B)
    rope = RoPE(1e6, ByParts(16.0, 16384))
    assert about.model.law == GivenLaw(LogFloor(16384), 0.1, first=0)
    assert about.model.position == rope and about.model.tied_head
    assert about.train_length == 16384
    assert counts.parameters(about.model) == 3_429_006_336


PHI4_MINI: dict[str, Any] = {
    'architectures': ['Phi3ForCausalLM'],
    'attention_bias': False,
    'bos_token_id': 199999,
    'eos_token_id': 199999,
    'full_attn_mod': 1,
    'hidden_act': 'silu',
    'hidden_size': 3072,
    'intermediate_size': 8192,
    'interpolate_factor': 1,
    'lm_head_bias': False,
    'max_position_embeddings': 131072,
    'mlp_bias': False,
    'model_type': 'phi3',
    'num_attention_heads': 24,
    'num_hidden_layers': 32,
    'num_key_value_heads': 8,
    'original_max_position_embeddings': 4096,
    'partial_rotary_factor': 0.75,
    'rms_norm_eps': 1e-05,
    # The published file has other long factors, as many.
    'rope_scaling': {
        'type': 'longrope',
        'short_factor': [1.0] * 48,
        'long_factor': [1 + pair for pair in range(48)],
    },
    'rope_theta': 10000.0,
    'sliding_window': 262144,
    'tie_word_embeddings': True,
    'torch_dtype': 'bfloat16',
    'vocab_size': 200064,
}


def test_phi4_mini_turns_three_quarters_of_a_head_by_longrope() -> None:
    about = described(PHI4_MINI)
    position = about.model.position
    assert isinstance(position, RoPE) and isinstance(position.scaling, LongRoPE)
    assert position.dims == 96
    assert position.scaling.multiplier == longrope_multiplier(32.0, 4096)
    assert (about.train_length, about.longest) == (4096, 131_072)
    assert counts.parameters(about.model) == 3_836_021_760


NEMOTRON_NANO_9B: dict[str, Any] = {
    'architectures': ['NemotronHForCausalLM'],
    'attention_bias': False,
    'bos_token_id': 1,
    'chunk_size': 128,
    'conv_kernel': 4,
    'eos_token_id': 12,
    'expand': 2,
    'head_dim': 128,
    'hidden_size': 4480,
    'hybrid_override_pattern': 'M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-',
    'intermediate_size': 15680,
    'layer_norm_epsilon': 1e-05,
    'mamba_head_dim': 80,
    'mamba_hidden_act': 'silu',
    'mamba_num_heads': 128,
    'mamba_proj_bias': False,
    'max_position_embeddings': 131072,
    'mlp_bias': False,
    'mlp_hidden_act': 'relu2',
    'model_type': 'nemotron_h',
    'n_groups': 8,
    'num_attention_heads': 40,
    'num_hidden_layers': 56,
    'num_key_value_heads': 8,
    'pad_token_id': 0,
    'sliding_window': None,
    'ssm_state_size': 128,
    'tie_word_embeddings': False,
    'time_step_limit': [0.0, float('inf')],
    'time_step_max': 0.1,
    'time_step_min': 0.001,
    'torch_dtype': 'bfloat16',
    'use_bias': False,
    'use_conv_bias': True,
    'vocab_size': 131072,
}
NEMOTRON_H_8B = NEMOTRON_NANO_9B | {
    'hidden_size': 4096,
    'hybrid_override_pattern': 'M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-',
    'intermediate_size': 21504,
    'mamba_head_dim': 64,
    'max_position_embeddings': 8192,
    'num_attention_heads': 32,
    'num_hidden_layers': 52,
}


def test_nemotron_nano_9b_has_four_layers_with_attention_and_no_positions() -> None:
    about = described(NEMOTRON_NANO_9B)
    model = about.model
    assert model.attending == (14, 21, 30, 39) and model.layers == 56
    assert all(model.without_position) and (model.mlp, model.activation) == ('plain', 'relu2')
    mamba = Mamba2(128, 80, 128, groups=8, least_step=0.001)
    assert {kind.mixer for kind in model.kinds} == {mamba, Attention(), None}
    assert sum(kind.mixer == mamba for kind in model.layer_kinds) == 27
    assert (about.train_length, about.bos, about.eos, about.pad) == (131072, 1, 12, 0)
    assert counts.parameters(model) == 8_888_227_328
    assert counts.parameters(described(NEMOTRON_H_8B).model) == 8_100_852_736


GRANITE_4_H_MICRO: dict[str, Any] = {
    'architectures': ['GraniteMoeHybridForCausalLM'],
    'attention_bias': False,
    'attention_multiplier': 0.015625,
    'bos_token_id': 100257,
    'embedding_multiplier': 12,
    'eos_token_id': 100257,
    'hidden_act': 'silu',
    'hidden_size': 2048,
    'intermediate_size': 8192,
    'layer_types': ['attention' if i in (5, 15, 25, 35) else 'mamba' for i in range(40)],
    'logits_scaling': 8,
    'mamba_chunk_size': 256,
    'mamba_conv_bias': True,
    'mamba_d_conv': 4,
    'mamba_d_head': 64,
    'mamba_d_state': 128,
    'mamba_expand': 2,
    'mamba_n_groups': 1,
    'mamba_n_heads': 64,
    'mamba_proj_bias': False,
    'max_position_embeddings': 131072,
    'model_type': 'granitemoehybrid',
    'num_attention_heads': 32,
    'num_experts_per_tok': 0,
    'num_hidden_layers': 40,
    'num_key_value_heads': 8,
    'num_local_experts': 0,
    'pad_token_id': 100256,
    'position_embedding_type': 'nope',
    'residual_multiplier': 0.22,
    'rms_norm_eps': 1e-05,
    'rope_scaling': None,
    'rope_theta': 10000,
    'shared_intermediate_size': 8192,
    'tie_word_embeddings': True,
    'torch_dtype': 'bfloat16',
    'vocab_size': 100352,
}


def test_granite_4_h_micro_has_four_layers_with_attention_and_no_positions() -> None:
    model = described(GRANITE_4_H_MICRO).model
    assert model.attending == (5, 15, 25, 35) and all(model.without_position)
    assert {kind.mixer for kind in model.kinds} == {Mamba2(64, 64, 128), Attention()}
    assert (model.softmax_scale, model.logit_multiplier) == (1 / 64, 1 / 8)
    assert counts.parameters(model) == 3_191_396_096


def test_muse_glimmer_has_no_positions_in_every_fourth_layer_from_the_last() -> None:
    """By the defaults of stock's class, which are those of the 30B model."""
    sizes = {'hidden_size': 6656, 'intermediate_size': 19968, 'num_hidden_layers': 52}
    text = {'model_type': 'muse_glimmer_text', **sizes}
    model = described({'model_type': 'muse_glimmer', 'text_config': text}).model
    local = LayerKind(RoPE(), 2048)
    assert model.pattern == (local, local, local, LayerKind())
    assert (model.output_gate, model.qk_norm_weights, model.logit_cap) == ('element', False, 20.0)
    assert counts.parameters(model) == 27_854_780_928
