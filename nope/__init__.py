"""Length generalization of causal Transformers without position encoding."""
