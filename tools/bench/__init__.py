"""Benchmarks, device checks and ahead-of-time compilation: `python -m tools.bench PROGRAM`."""
