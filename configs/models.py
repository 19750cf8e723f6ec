"""Model shapes of the three sizes."""

NOPE = {'kind': 'none'}
ROTARY = {'kind': 'rotary'}  # base 10,000, or that of the model it is for
ALIBI = {'kind': 'alibi'}
DYNAMIC_NTK = {**ROTARY, 'scaling': {'kind': 'dynamic_ntk', 'factor': 2.0}}

EXECUTION: dict = {
    'dtype': 'float32',
    'remat': 'none',
    'attention': '',
    'unroll': 0,  # no loop over so few layers: a step is a tenth to a quarter faster on CPU
}
_COMMON: dict = {
    'head_dim': 0,  # 0: width / heads
    'vocab_size': 0,  # 0: the tokenizer's
    'position': NOPE,
    'tied_head': False,
    'norm_epsilon': 1e-5,
    **EXECUTION,
}

_SHAPES: dict[str, dict] = {
    'quick': {'layers': 4, 'width': 64, 'heads': 4, 'kv_heads': 4, 'mlp_width': 168},
    'small': {'layers': 4, 'width': 128, 'heads': 4, 'kv_heads': 4, 'mlp_width': 344},
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


def at(size: str) -> dict:
    """The `model` section at a size."""
    return _COMMON | _SHAPES[size]


def rotary(scaling: str, factor: float) -> dict:
    """Rotary positions under a rule of scaling that has a factor."""
    return {**ROTARY, 'scaling': {'kind': scaling, 'factor': factor}}
