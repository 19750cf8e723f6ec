"""Claims of *The Impact of Positional Encoding on Length Generalization in Transformers* (arXiv
2305.19466) about encodings and scratchpads on synthetic tasks. APE is its sinusoidal encoding."""

from __future__ import annotations

from experiments.figures.claims.listed import Listed

# Differences of mean reciprocal ranks, and of accuracies, up to which nothing is decided. Between
# ranks 4 and 5 lie 0.05.
RANK_MARGIN = {'rank': 0.02}
SHARE_MARGIN = {'accuracy': 0.02}
# Ratios of attention distances, which shrink with a model: from 1 up to this nothing is decided.
RATIO_MARGIN = {'ratio': 0.1}

NOPE_FIRST = Listed(
    'nope_ranks_first',
    None,
    'Of the five encodings NoPE generalises best: mean reciprocal rank over 17 tasks and 3 seeds '
    '0.69; T5 0.55, ALiBi 0.50, Rotary 0.33, APE 0.22 (Figure 1).',
    thresholds=RANK_MARGIN,
)
FULL_ORDER = Listed(
    'encodings_rank_in_order',
    None,
    'The order of the encodings is NoPE, T5, ALiBi, Rotary, APE: mean reciprocal ranks 0.69, 0.55, '
    '0.50, 0.33 and 0.22 (Figure 1).',
    thresholds=RANK_MARGIN,
)
SINUSOIDAL_LAST = Listed(
    'sinusoidal_ranks_last',
    None,
    'APE generalises worst: mean reciprocal rank 0.22, below 0.33 of Rotary (Figure 1).',
    thresholds=RANK_MARGIN,
)
NOPE_COPIES = Listed(
    'nope_copies_longest',
    None,
    'Of the five encodings NoPE copies a repeated symbol furthest: accuracy beyond L 0.99; T5 '
    '0.77, ALiBi 0.29, Rotary and APE 0.00 (rsc, released results).',
    thresholds=SHARE_MARGIN,
)
NOPE_BEATS_TOLD = Listed(
    'nope_beats_told',
    None,
    'NoPE generalises further than the encodings that are given positions: mean accuracy beyond L '
    'on eleven tasks 0.53; T5 0.49, ALiBi 0.27, Rotary 0.08, APE 0.05 (released results).',
    thresholds=SHARE_MARGIN,
)
ALL_SOLVE_INSIDE = Listed(
    'all_solve_inside',
    None,
    'Inside the lengths of training every encoding solves copying and reversal: accuracies 0.99 '
    'and more, of cmc 0.89 to 0.90 (Figures F.4 and F.5, released results).',
    thresholds={'accuracy': 0.95},
)
ATTENDS_LIKE_T5 = Listed(
    'nope_attends_like_t5',
    None,
    "NoPE's attention patterns resemble those of T5's relative bias most: distance from NoPE, from "
    'short to long examples of SCAN, 0.1 to 0.3 of T5, 0.15 to 0.73 of ALiBi, 0.2 to 0.93 of APE, '
    '0.32 to 1.3 of Rotary (Figure 4).',
    thresholds=RATIO_MARGIN,
)
ATTENDS_UNLIKE_ROTARY = Listed(
    'nope_attends_unlike_rotary',
    None,
    "NoPE's attention patterns resemble those of Rotary and APE least: distance up to 1.3 and "
    '0.93, next to 0.3 of T5 and 0.73 of ALiBi (Figure 4).',
    thresholds=RATIO_MARGIN,
)
T5_AS_ANOTHER_SEED = Listed(
    't5_is_as_near_as_another_seed',
    None,
    "T5's relative bias attends as NoPE of another seed does: both at distances from 0.1 to 0.3 "
    '(Figure 4).',
    thresholds={'ratio': 1.25},
)
UNPADDED_BEST = Listed(
    'unpadded_best',
    None,
    'On every task but addition models generalise best without scratchpad: mean reciprocal rank of '
    'no scratchpad among eight formats 1.0 (polynomial), 0.9 (sorting), 0.83 (LEGO), 0.67 (parity, '
    'summation); addition 0.13 (Figure 6, read off).',
    thresholds=RANK_MARGIN,
)
PAD_HELPS_ADDITION = Listed(
    'pad_helps_addition',
    None,
    'A full scratchpad helps addition with every encoding: accuracy beyond L 0.17 against 0.08 '
    'with NoPE, 0.16 against 0.07 with T5, 0.12 against 0.08 with ALiBi, 0.07 against 0.00 with '
    'APE and with Rotary (released results).',
    thresholds=SHARE_MARGIN,
)
PAD_FORMAT_MATTERS = Listed(
    'pad_format_matters',
    None,
    'The format of a scratchpad highly impacts how well models generalise (abstract).',
    # The best format's accuracy beyond L is above the worst one's by more, mean over encodings.
    thresholds={'points': 10},
)
PADDED_ENCODINGS = Listed(
    'padded_encodings',
    None,
    'With a full scratchpad NoPE and T5 generalise best on addition: accuracy beyond L 0.17 and '
    '0.16; ALiBi 0.12, APE 0.07, Rotary 0.07 (released results).',
    thresholds=SHARE_MARGIN,
)
# Models of code. In nats: 1 is a perplexity 2.7 times as high; between the paper's encodings inside
# L lie up to 0.04.
FAILED = {'nats': 1.0}
CODE_ALIKE_INSIDE = Listed(
    'code_encodings_alike_inside',
    None,
    'Inside the context of training NoPE, ALiBi and Rotary are close: mean perplexity 2.99, 2.97 '
    'and 2.93 at 512 tokens, 2.75, 2.82 and 2.69 at 1,024 (1.3B models, Appendix F, documents of '
    '2,750 to 3,750 tokens).',
    thresholds={'nats': 0.1},
)
ROTARY_CODE_FAILS_AT_ONCE = Listed(
    'rotary_code_fails_at_once',
    None,
    'Rotary fails just past the context of training: mean perplexity 3.42 at 1,200 tokens and 166 '
    'at 1,400, from 2.69 at 1,024 (1.3B models, Appendix F, documents of 2,750 to 3,750 tokens).',
    thresholds=FAILED,
)
NOPE_CODE_FAILS_LATER = Listed(
    'nope_code_fails_later',
    None,
    'NoPE stays flat to 1,400 tokens and then fails: mean perplexity 2.75 at 1,024, 2.67 at 1,400, '
    '143 at 2,048 (1.3B models, Appendix F, documents of 2,750 to 3,750 tokens).',
    thresholds={**FAILED, 'flat_nats': 0.1},
)
ALIBI_DEGRADES_SLOWER = Listed(
    'alibi_code_degrades_slower',
    None,
    'ALiBi degrades more slowly but fails too: mean perplexity 151 at 2,560 tokens, NoPE 503 '
    '(1.3B models, Appendix F, documents of 2,750 to 3,750 tokens).',
    thresholds={**FAILED, 'margin_nats': 0.1},
)
