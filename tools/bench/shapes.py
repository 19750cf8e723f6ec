"""Model shapes that several tools measure."""

from __future__ import annotations

import dataclasses

from nope.model import ModelConfig


def decoder(layers: int, width: int, heads: int, mlp_width: int, vocab_size: int) -> ModelConfig:
    """NoPE with as many key-value heads as heads, which share the width.

    unroll=None: without a loop over so few layers a training step is a tenth to a quarter faster.
    Evaluation gains nothing from it and keeps the loop, whose one layer needs less memory.
    """
    return ModelConfig(
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=heads,
        mlp_width=mlp_width,
        vocab_size=vocab_size,
        head_dim=width // heads,
        unroll=None,
    )


QUICK = decoder(4, 64, 4, 168, 258)  # that of `configs/first_paper/fig4.py:quick`, read as bytes
SMALL = decoder(4, 128, 4, 344, 258)  # that of `small`
MIDDLE = decoder(8, 512, 8, 1376, 4096)
LONG = decoder(4, 256, 4, 688, 4096)
# Less memory for a long sequence: without a loop XLA's CPU backend undoes rematerialisation.
LOOPED = dataclasses.replace(MIDDLE, unroll=1)

# Of an accelerator's size: the 1.1 billion parameters of TinyLlama, in NoPE.
LARGE = ModelConfig(
    layers=22, width=2048, heads=32, kv_heads=4, mlp_width=5632, vocab_size=32_000, head_dim=64,
    dtype='bfloat16', remat='fit', unroll=1,
)  # fmt: skip
