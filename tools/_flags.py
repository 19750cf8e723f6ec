"""Flags that several tools share."""

from __future__ import annotations

import argparse


def add_model(parser: argparse.ArgumentParser) -> None:
    """Adds the options that name the model and its batch."""
    parser.add_argument('--model', required=True, help='hf:DIR, or a folder of WORKDIR/runs')
    parser.add_argument('--tokenizer', default='', help="'bytes' or a tokenizer file")
    parser.add_argument('--step', type=int, help='a kept checkpoint before the last, of a run')
    parser.add_argument('--nope', action='store_true', help='hf: it was trained without rotation')
    parser.add_argument('--batch-tokens', type=int, default=16384, help='a batch, per device')
