"""DOC."""

from __future__ import annotations

from experiments.figures.claims.claim import Claim

CLAIMS = (
    Claim(
        'log_length_serves_every_length',
        'One log-length set serves all lengths',
        '',
        'Ours, not of the paper: one set of coefficients serves every length.',
        thresholds={'nats': 0.01},
    ),
    Claim(
        'log_square_serves_headscale',
        'Two numbers serve as HeadScale does',
        '',
        'Ours, not of the paper: searched once, 1 + a x + b x^2 is at least as good as '
        'HeadScale at every length, that of its search included.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'log_square_serves_tail',
        'Two numbers serve the end of windows',
        '',
        'Ours, not of the paper: searched once, 1 + a x + b x^2 is at least as good as '
        'HeadScale at the end of windows as long as those that HeadScale was searched on.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'keeps_loss',
        'Split heads keep the loss to 32 L',
        '',
        'Ours, not of the paper: with heads split between local ones and ones without position, '
        'the mean loss at 32 L stays that at L, with no weight trained beyond L.',
        thresholds={'nats': 0.05, 'multiple': 32},
    ),
    Claim(
        'retrofit_keeps_loss',
        'Heads split later keep the loss',
        '',
        'Ours, not of the paper: a model without position whose heads are split after its '
        'training keeps its loss at 32 L.',
        thresholds={'nats': 0.05, 'multiple': 32},
    ),
    Claim(
        'retrofit_in_domain',
        'Split later, nothing lost at L',
        '',
        'Ours, not of the paper: split after its training, it loses nothing against rotary at L.',
        thresholds={'nats': 0.01},
    ),
    Claim(
        'in_domain',
        'Split heads lose nothing at L',
        '',
        'Ours, not of the paper: at L split heads lose nothing against rotary.',
        thresholds={'nats': 0.01},
    ),
    Claim(
        'keys_far',
        'Split heads repeat a key at 64 L',
        '',
        'Ours, not of the paper: split heads repeat a single key at 64 L.',
        thresholds={'needles': 1, 'multiple': 64, 'share': 0.99},
    ),
    Claim(
        'keys_four',
        'Split heads: one of four keys at 16 L',
        '',
        'Ours, not of the paper: split heads repeat the one of four named keys that is asked '
        'for at 16 L.',
        thresholds={'needles': 4, 'multiple': 16, 'share': 0.9},
    ),
    Claim(
        'local_carry_loss',
        'Local heads carry the loss',
        '',
        'Ours, not of the paper: local heads carry the order of nearby tokens, so that the loss '
        'needs them more than the heads without position.',
    ),
    Claim(
        'global_carry_keys',
        'Keys need a head without position',
        '',
        'Ours, not of the paper: keys far away are not found without some head that has no '
        'position encoding.',
        thresholds={'points': 10},
    ),
    Claim(
        'temperature_carries_tasks',
        'A searched temperature carries tasks',
        '',
        'Ours, not of the papers: a temperature searched on longer examples carries exact match '
        'further, to lengths beyond them.',
        thresholds={'points': 5},
    ),
    Claim('effective_length', 'Effective length on RULER', '', '', reading=True),
    Claim('extension_gains', 'An extension gains beyond L', '', ''),
    Claim(
        'extension_costs', 'An extension costs little inside L', '', '', thresholds={'nats': 0.05}
    ),
    Claim(
        'extension_reaches',
        'An extension reads further',
        '',
        '',
        thresholds={'nats': 0.1, 'noise_nats': 0.05},
    ),
    Claim('ranges', 'Loss by range of positions', '', '', reading=True),
    Claim('lowest', 'Lowest loss at each length', '', '', reading=True),
)
