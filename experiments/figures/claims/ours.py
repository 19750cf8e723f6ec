"""Our own claims and readings, which are no paper's: the rule of each states it."""

from __future__ import annotations

from experiments.figures.claims.claim import Claim

CLAIMS = (
    Claim(
        'log_length_serves_every_length',
        'One log-length set serves all lengths',
        thresholds={'nats': 0.01},
    ),
    Claim(
        'log_square_serves_headscale',
        'Two numbers serve as HeadScale does',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'log_square_serves_tail', 'Two numbers serve the end of windows', thresholds={'nats': 0.005}
    ),
    Claim(
        'keeps_loss', 'Split heads keep the loss to 32 L', thresholds={'nats': 0.05, 'multiple': 32}
    ),
    Claim('in_domain', 'Split heads lose nothing at L', thresholds={'nats': 0.01}),
    Claim(
        'keys_far',
        'Split heads repeat a key at 64 L',
        thresholds={'needles': 1, 'multiple': 64, 'share': 0.99},
    ),
    Claim(
        'keys_four',
        'Split heads: one of four keys at 16 L',
        thresholds={'needles': 4, 'multiple': 16, 'share': 0.9},
    ),
    Claim(
        'per_head_below_one',
        'Lambda a head: less loss than with one',
        thresholds={'nats': 0.005, 'multiple': 32},
    ),
    Claim(
        'per_head_further_than_one',
        'Lambda a head: more keys than with one',
        thresholds={'multiple': 64},
    ),
    Claim(
        'below_nape',
        'Gates, searched lambda: below NAPE',
        thresholds={'nats': 0.005, 'multiple': 32},
    ),
    Claim('further_than_nape', 'Gates, searched lambda: beyond NAPE', thresholds={'multiple': 64}),
    Claim(
        'state_space_below_window',
        'State spaces: less loss than windows',
        thresholds={'nats': 0.005, 'multiple': 32},
    ),
    Claim(
        'state_space_further_than_window',
        'State spaces: more keys than windows',
        thresholds={'multiple': 64},
    ),
    Claim(
        'headscale_as_full_tuning', 'HeadScale is level with full tuning', thresholds={'nats': 0.05}
    ),
    Claim('local_carry_loss', 'Local heads carry the loss'),
    Claim('global_carry_keys', 'Keys need a head without position', thresholds={'points': 10}),
    Claim(
        'temperature_carries_tasks',
        'A searched temperature carries tasks',
        thresholds={'points': 5},
    ),
    Claim('effective_length', 'Effective length on RULER', reading=True),
    Claim('recipes_read', 'How far each recipe reads', thresholds={'nats': 0.05}, reading=True),
    Claim('ranges', 'Loss by range of positions', reading=True),
    Claim('lowest', 'Lowest loss at each length', reading=True),
)
