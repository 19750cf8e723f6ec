"""Model shapes of the sizes."""

from ml_collections.config_dict import placeholder

NOPE = {'kind': 'none'}
ROPE = {'kind': 'rope'}  # base 10,000, or that of the model it is for
ALIBI = {'kind': 'alibi'}
DYNAMIC_NTK = {**ROPE, 'scaling': {'kind': 'dynamic_ntk', 'factor': 2.0}}

_COMMON: dict = {'position': NOPE, 'tied_head': False, 'norm_epsilon': 1e-5}

_SHAPES: dict[str, dict] = {
    'quick': {'layers': 4, 'width': 64, 'heads': 4, 'kv_heads': 4, 'mlp_width': 168},
    'small': {'layers': 4, 'width': 128, 'heads': 4, 'kv_heads': 4, 'mlp_width': 344},
    'medium': {
        'layers': 6,
        'width': 256,
        'heads': 8,
        'kv_heads': 8,
        'mlp_width': 688,
        'dtype': 'bfloat16',  # a GPU's tensor cores; a CPU takes as long as in float32
    },
    'large': {
        'layers': 8,
        'width': 512,
        'heads': 8,
        'kv_heads': 8,
        'mlp_width': 1376,
        'dtype': 'bfloat16',
    },
    'paper': {
        'layers': 22,
        'width': 2048,
        'heads': 32,
        'kv_heads': 4,
        'mlp_width': 5632,
        'vocab_size': 32_000,
        'dtype': 'bfloat16',
        'remat': 'full',
        'unroll': 1,
    },
}


def execution() -> dict:
    """Execution fields of the `model` section.

    unroll: layers per iteration of a loop over them; None for no loop, which is faster on CPU.
    attention: None for the fastest implementation.
    """
    return {
        'dtype': 'float32',
        'remat': 'none',
        'attention': placeholder(str),
        'unroll': placeholder(int),
    }


def at(size: str) -> dict:
    """The `model` section at a size. head_dim: None for width / heads. vocab_size: None for the
    tokenizer's."""
    chosen = {'head_dim': placeholder(int), 'vocab_size': placeholder(int)}
    return _COMMON | execution() | chosen | _SHAPES[size]


def rope(scaling: str, factor: float) -> dict:
    """RoPE under a rule of scaling that has a factor."""
    return {**ROPE, 'scaling': {'kind': scaling, 'factor': factor}}
