"""Every claim under test, once: its statement, the numbers of its source, and our thresholds.

The first paper (arXiv 2404.12224) makes eleven claims that a reproduction should test; `number`
counts them, and parts of one that are decided apart share it. Perplexities are quoted as printed;
differences in nats are of their logarithms. Lengths are in multiples of the training length L.

Adding one: an entry in the file of its source and a `Rule` in the module, here or of a kind, of the
data that decides it.
"""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figures.claims import first_paper, other_sources, ours, second_paper
from experiments.figures.claims.claim import Claim

# Claims by the heading that they stand below.
SOURCES: Mapping[str, tuple[Claim, ...]] = {
    'Claims of the first paper': first_paper.CLAIMS,
    'Claims of the second paper': second_paper.CLAIMS,
    'Claims of other sources, and ours': (*other_sources.CLAIMS, *ours.CLAIMS),
}
CLAIMS: Mapping[str, Claim] = {c.id: c for claims in SOURCES.values() for c in claims}
