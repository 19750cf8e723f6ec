"""Claims of *The Impact of Positional Encoding on Length Generalization in Transformers* (arXiv
2305.19466) about encodings and scratchpads on synthetic tasks. APE is its sinusoidal encoding."""

from __future__ import annotations

from experiments.figures.claims.claim import Claim

CLAIMS = (
    Claim(
        'nope_ranks_first',
        'NoPE ranks first on tasks',
        'rank 0.69; T5 0.55',
        'Of the five encodings NoPE generalises best: mean reciprocal rank over 17 tasks and 3 '
        'seeds 0.69; T5 0.55, ALiBi 0.50, RoPE 0.33, APE 0.22 (Figure 1).',
        # Between ranks 4 and 5 lie 0.05.
        thresholds={'rank': 0.02},
    ),
    Claim(
        'encodings_rank_in_order',
        'NoPE, T5, ALiBi, RoPE, sinusoidal',
        '0.69 0.55 0.50 0.33 0.22',
        'The order of the encodings is NoPE, T5, ALiBi, RoPE, APE: mean reciprocal ranks '
        '0.69, 0.55, 0.50, 0.33 and 0.22 (Figure 1).',
        thresholds={'rank': 0.02},
    ),
    Claim(
        'sinusoidal_ranks_last',
        'Sinusoidal ranks last on tasks',
        'rank 0.22',
        'APE generalises worst: mean reciprocal rank 0.22, below 0.33 of RoPE (Figure 1).',
        thresholds={'rank': 0.02},
    ),
    Claim(
        'nope_copies_longest',
        'NoPE copies the longest',
        '0.99; T5 0.77',
        'Of the five encodings NoPE copies a repeated symbol furthest: accuracy beyond L 0.99; '
        'T5 0.77, ALiBi 0.29, RoPE and APE 0.00 (rsc, released results).',
        thresholds={'points': 2},
    ),
    Claim(
        'nope_beats_told',
        'NoPE beats encodings given positions',
        '0.53; T5 0.49',
        'NoPE generalises further than the encodings that are given positions: mean accuracy '
        'beyond L on eleven tasks 0.53; T5 0.49, ALiBi 0.27, RoPE 0.08, APE 0.05 (released '
        'results).',
        thresholds={'points': 2},
    ),
    Claim(
        'all_solve_inside',
        'All encodings solve short copies',
        'near 1',
        'Inside the lengths of training every encoding solves copying and reversal: accuracies '
        '0.99 and more, of cmc 0.89 to 0.90 (Figures F.4 and F.5, released results).',
        thresholds={'points': 95},
    ),
    Claim(
        'nope_attends_like_t5',
        'NoPE attends as T5 does',
        '0.3; ALiBi 0.73',
        "NoPE's attention patterns resemble those of T5's relative bias most: distance from "
        'NoPE, from short to long examples of SCAN, 0.1 to 0.3 of T5, 0.15 to 0.73 of ALiBi, '
        '0.2 to 0.93 of APE, 0.32 to 1.3 of RoPE (Figure 4).',
        # Distances shrink with a model.
        thresholds={'ratio': 0.1},
    ),
    Claim(
        'nope_attends_unlike_rope',
        'NoPE attends unlike RoPE and sinusoidal',
        '1.3, 0.93; T5 0.3',
        "NoPE's attention patterns resemble those of RoPE and APE least: distance up to 1.3 "
        'and 0.93, next to 0.3 of T5 and 0.73 of ALiBi (Figure 4).',
        thresholds={'ratio': 0.1},
    ),
    Claim(
        't5_is_as_near_as_another_seed',
        'T5 is as near to NoPE as another seed',
        '0.3; 0.3',
        "T5's relative bias attends as NoPE of another seed does: both at distances from 0.1 to "
        '0.3 (Figure 4).',
        thresholds={'ratio': 1.25},
    ),
    Claim(
        'unpadded_best',
        'No scratchpad is best but for addition',
        '0.67 to 1; addition 0.13',
        'On every task but addition models generalise best without scratchpad: mean reciprocal '
        'rank of no scratchpad among eight formats 1.0 (polynomial), 0.9 (sorting), 0.83 '
        '(LEGO), 0.67 (parity, summation); addition 0.13 (Figure 6, read off).',
        thresholds={'rank': 0.02},
    ),
    Claim(
        'pad_helps_addition',
        'A full scratchpad helps addition',
        '4 to 9 points',
        'A full scratchpad helps addition with every encoding: accuracy beyond L 0.17 against '
        '0.08 with NoPE, 0.16 against 0.07 with T5, 0.12 against 0.08 with ALiBi, 0.07 against '
        '0.00 with APE and with RoPE (released results).',
        thresholds={'points': 2},
    ),
    Claim(
        'pad_format_matters',
        'The format of a scratchpad matters',
        'highly',
        'The format of a scratchpad highly impacts how well models generalise (abstract).',
        thresholds={'points': 10},
    ),
    Claim(
        'padded_encodings',
        'NoPE and T5 add best with a scratchpad',
        '0.17, 0.16; 0.12',
        'With a full scratchpad NoPE and T5 generalise best on addition: accuracy beyond L 0.17 '
        'and 0.16; ALiBi 0.12, APE 0.07, RoPE 0.07 (released results).',
        thresholds={'points': 2},
    ),
    Claim(
        'code_encodings_alike_inside',
        'On code encodings are close inside L',
        '2.75, 2.82, 2.69 at L',
        'Inside the context of training NoPE, ALiBi and RoPE are close: mean perplexity 2.99, '
        '2.97 and 2.93 at 512 tokens, 2.75, 2.82 and 2.69 at 1,024 (1.3B models, Appendix F, '
        'documents of 2,750 to 3,750 tokens).',
        # Between the paper's encodings inside L lie up to 0.05.
        thresholds={'nats': 0.1},
    ),
    Claim(
        'rope_code_fails_at_once',
        'On code RoPE fails just past L',
        '166 at 1.37 L from 2.69',
        'RoPE fails just past the context of training: mean perplexity 3.42 at 1,200 tokens '
        'and 166 at 1,400, from 2.69 at 1,024 (1.3B models, Appendix F, documents of 2,750 to '
        '3,750 tokens).',
        # A perplexity 2.7 times as high.
        thresholds={'nats': 1},
    ),
    Claim(
        'nope_code_fails_later',
        'On code NoPE fails, but past 1.37 L',
        '2.67; 143 at 2 L',
        'NoPE stays flat to 1,400 tokens and then fails: mean perplexity 2.75 at 1,024, 2.67 at '
        '1,400, 143 at 2,048 (1.3B models, Appendix F, documents of 2,750 to 3,750 tokens).',
        thresholds={'nats': 1, 'flat_nats': 0.1},
    ),
    Claim(
        'alibi_code_degrades_slower',
        'On code ALiBi fails more slowly',
        '151; NoPE 503 at 2.5 L',
        'ALiBi degrades more slowly but fails too: mean perplexity 151 at 2,560 tokens, NoPE '
        '503 (1.3B models, Appendix F, documents of 2,750 to 3,750 tokens).',
        thresholds={'nats': 1, 'margin_nats': 0.1},
    ),
)
