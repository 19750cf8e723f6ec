"""Evaluations: one file each; `run(config, variables, blocks, ...)` returns `Records`."""
