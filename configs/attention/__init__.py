"""Why a model stops: shape of its attention, and how it forms in training."""
