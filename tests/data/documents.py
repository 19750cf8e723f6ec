"""Documents that are read whole, for tests."""

from __future__ import annotations

import numpy as np

from nope.data.documents import Documents


def whole(documents: Documents) -> list[np.ndarray]:
    """The tokens of each document, int32 [lengths[i]]."""
    return [
        documents.windows(np.array([i]), np.array([length]), length)[0]
        for i, length in enumerate(documents.lengths.tolist())
    ]
