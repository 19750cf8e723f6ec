"""Claims of the first paper (arXiv 2404.12224), as printed; its eleven main ones are numbered."""

from __future__ import annotations

from experiments.figures.claims.claim import Claim

CLAIMS = (
    Claim(
        'parity',
        'NoPE and RoPE level inside L',
        '0.007 nats; 0.1 points',
        'In-domain parity of NoPE and RoPE: PG19 at L 14.6 against 14.5, a difference of 0.007 '
        'nats, proof-pile 3.5 against 3.5 (Table 2); mean of seven commonsense tasks 46.2 '
        'against 46.1 (Table 1).',
        number=1,
        # A point is about twice the standard error of the difference of two such means.
        thresholds={'nats': 0.05, 'points': 1},
    ),
    Claim(
        'onset',
        'Loss rises from about 1.2 L (NoPE)',
        '1.2 and 1.1 L',
        'Loss of NoPE starts to rise at about 1.2 L, that of RoPE at about 1.1 L.',
        number=2,
        # An onset is about the paper's within the factor by which two bends agree.
        thresholds={'factor': 1.25},
        numbers={'base': 1.2, 'rope': 1.1},
    ),
    Claim(
        'bends_meet',
        'Entropy bends where the loss does',
        'together',
        'The entropy curve bends at the position where the loss bends (NoPE, RoPE); RoPE-NTK '
        'shows neither bend.',
        number=3,
        # Two bends agree within a factor. RoPE-NTK is claimed to show no bend up to the length
        # that the paper draws.
        thresholds={'factor': 1.25, 'ntk_reach': 2},
    ),
    Claim(
        'bends_move',
        'A multiplier moves the bends of NoPE',
        'outward; RoPE: no',
        'A uniform multiplier above 1 moves both bends outward for NoPE, not for RoPE.',
        number=4,
        thresholds={'factor': 1.05},
    ),
    Claim(
        'fit_form',
        'Best multiplier is 1 + a ln(i/L)',
        'R^2 0.98 to 0.995',
        'The best uniform multiplier grows as 1 + a ln(i/L): R^2 = 0.9954 at 10K steps, R^2 = '
        '0.9773 at 50K steps.',
        number=5,
        thresholds={'r2': 0.9},
    ),
    Claim(
        'fit_slope',
        'a of the fit is 0.3 to 0.4',
        'a 0.301, 0.397',
        'a is about 0.3 to 0.4: 0.3010 at 10K steps, 0.3973 at 50K steps.',
        number=5,
        # The ends, and what a fit has to explain for its slope to mean anything.
        thresholds={'low': 0.25, 'high': 0.45, 'r2': 0.5},
    ),
    Claim(
        'fit_budget',
        'a of the fit grows with training',
        '0.301 to 0.397',
        'a grows with training, from 0.3010 at 10K steps to 0.3973 at 50K steps.',
        number=5,
        # The least growth, and what the fits have to explain.
        thresholds={'a': 0.02, 'r2': 0.5},
    ),
    Claim(
        'uniform_hurts',
        'A large multiplier hurts inside L',
        '0.03 to 0.73 nats',
        'A large uniform multiplier hurts short positions: PG19 at L from 14.6 to 15.0, 19.0 '
        'and 30.4 for 1.2, 1.5 and 1.8, that is 0.03, 0.26 and 0.73 nats (Table 2).',
        number=6,
        thresholds={'nats': 0.01},
        numbers={'small': 1.2, 'middle': 1.5, 'large': 1.8},
    ),
    Claim(
        'headscale_beats_uniform',
        'HeadScale beats one multiplier',
        '-0.04 to -1.88 nats',
        'HeadScale beats the uniform multiplier at its target length: PG19 at 2 L, 4 L and 8 L '
        '15.3, 21.1 and 30.4 against 16.0, 45.3 and 198.8 (Table 2); lower by 0.2 nats at '
        'position 2 L and 0.8 nats at 4 L (Figure 4).',
        number=7,
        thresholds={'nats': 0.01},
    ),
    Claim(
        'headscale_hurts_less',
        'HeadScale hurts less than a multiplier',
        '-0.01 to -0.51 nats',
        'HeadScale hurts short positions less than the uniform multiplier for the same length: '
        'PG19 at L 14.8, 15.7 and 18.3 against 15.0, 19.0 and 30.4 (Table 2).',
        number=7,
        thresholds={'nats': 0.01},
    ),
    Claim(
        'headscale_hurts',
        'HeadScale hurts inside L',
        '0.01 to 0.23 nats',
        'HeadScale hurts short positions: PG19 at L from 14.6 to 14.8, 15.7 and 18.3 (0.01, '
        '0.07 and 0.23 nats) for multipliers searched at 2 L, 4 L and 9 L (Table 2).',
        number=7,
        thresholds={'nats': 0.01},
    ),
    Claim(
        'parts_matter',
        'Start and bound of the search matter',
        '55 and 28 points',
        'The start from the best uniform multiplier matters (passkey 81 % to 26 % without it), '
        'and so does the constraint (81 % to 53 %; Table 4).',
        number=8,
        # The paper's gaps are 28 and 55 points. Of 800 prompts a percentage has a standard error
        # of at most 1.8.
        thresholds={'points': 10},
        numbers={'full': 81, 'no_bound': 53, 'no_init': 26},
    ),
    Claim(
        'entropy_against_multiplier',
        'Entropy falls with the multiplier',
        'r below 0',
        'Inside a layer, entropy falls with the multiplier: a negative correlation (Figure 5).',
        number=9,
        # Below it a tenth of the variance is not explained.
        thresholds={'r': 0.3},
    ),
    Claim(
        'fails_past_searched',
        'HeadScale fails past its length',
        '3.5 nats',
        'HeadScale does not extrapolate past its tuned length in perplexity: multipliers '
        'searched at 4 L go from 21.1 at 4 L to 721.7 at 8 L (PG19, Table 2), 3.5 nats.',
        number=10,
        # A rise by half a nat: 1.6 times the perplexity.
        thresholds={'nats': 0.5},
    ),
    Claim(
        'passkey_reach',
        'Passkey of NoPE works to 2 windows',
        'about 2 windows',
        'Passkey retrieval works to about twice the window for models without position encoding '
        '(Figure 6).',
        number=10,
        # A length works from this mean accuracy on, and 'about twice the window' begins here.
        thresholds={'accuracy': 0.5, 'windows': 1.5},
    ),
    Claim(
        'between_ntk_and_yarn',
        'HeadScale between NTK and YaRN',
        '-0.97 and +0.58 nats',
        'At 8 L HeadScale is better than RoPE-NTK without tuning (PG19 30.4 against 80.4, '
        'proof-pile 4.1 against 13.3), weaker than YaRN without tuning (17.1 and 3.6; Table 2).',
        number=11,
        thresholds={'nats': 0.01},
    ),
    Claim(
        'ntk_by_window',
        'HeadScale ahead of NTK from 4 L on',
        '-0.19 nats at 4 L',
        'HeadScale is better than NTK (section 4.2): multipliers searched at 9 L are at 4 L and '
        '8 L (PG19 18.8 and 30.4 against 22.8 and 80.4), but not at L and 2 L (18.3 and 19.0 '
        'against 14.5 and 14.9).',
        # Multiples of L from which on it is claimed to be better, and up to which not.
        thresholds={'nats': 0.01, 'from': 4, 'up_to': 2},
    ),
    Claim(
        'headscale_entropy',
        'HeadScale has the higher entropy',
        'higher',
        'The mean entropy of HeadScale is higher than that of the uniform multiplier (Figure 4).',
        thresholds={'bits': 0.01},
    ),
    Claim(
        'heads_apart',
        'Heads at 1 bit and at 10 bits',
        '9 and 91 % of the bound',
        'Some heads converge to about 1 bit, others to about 10 bits, of a bound of 11 (Figure 3).',
        # Shares of the bound log2 L of concentrated and spread heads.
        thresholds={'concentrated': 0.25, 'spread': 0.75},
    ),
    Claim(
        'low_layers',
        'Low layers are near the bound',
        'near',
        'Low layers lie near the upper bound of the entropy (Figure 10).',
        # Of log2(i): the spread heads of Figure 3 have 10 of 11 bits.
        thresholds={'near': 0.9},
    ),
    Claim(
        'bound_for_retrieval',
        'The bound costs loss, helps retrieval',
        '-0.16 nats, -28 points',
        'Without the constraint PG19 perplexity at 8 L is better (25.9 against 30.4); '
        'proof-pile (4.2 against 4.1), passkey (53 % against 81 %) and LongBench (16.7 against '
        '17.0) are worse (Table 4).',
        thresholds={'nats': 0.01, 'points': 0.25},
    ),
    Claim(
        'passkey_inside',
        'Passkey inside the window',
        '81, 53, 26 %',
        'The paper prints the mean accuracy inside the window above every panel of Figures 6, 8 '
        'and 9.',
        thresholds={'points': 10},
    ),
    Claim(
        'yarn_flat',
        'YaRN without training stays flat',
        '0.16 (NTK 1.71) nats',
        'Without training YaRN stays flat and dynamic NTK does not: PG19 perplexity at L, 2 L, '
        '4 L and 8 L 14.5, 14.5, 15.0 and 17.1 against 14.5, 14.9, 22.8 and 80.4, that is a '
        'rise to 8 L of 0.16 against 1.71 nats (Table 2).',
        # The most that a flat curve rises, and the least that NTK rises more.
        thresholds={'nats': 0.3},
    ),
    Claim(
        'factors',
        'Factors of NTK and YaRN',
        '',
        'The factors of NTK and YaRN without training are found by grid search; neither their '
        'values nor the text they were found on are given.',
        reading=True,
    ),
    Claim(
        'tuned_works',
        'Tuned models work to their length',
        'at most 0.25 nats',
        'Fine-tuned models work up to their tuned length: PG19 perplexity there (2 L, 4 L, 8 L) '
        'with PI 15.9, 17.1 and 18.2 after 200 steps and 15.0, 15.0 and 14.9 after 1,000, with '
        'YaRN 15.4, 15.5 and 15.5, and 15.0, 14.8 and 14.5; the base model at L 14.5 (Table 2).',
        # The most that one of Table 2 loses is 0.25.
        thresholds={'nats': 0.3},
    ),
    Claim(
        'tuned_fails',
        'Tuned models fail past it',
        '3.5 to 4.1 nats',
        'Fine-tuned models fail past their tuned length: PG19 perplexity at twice the length '
        '545 to 910 for every one of them, 3.5 to 4.1 nats more (Table 2).',
        thresholds={'nats': 0.5},
    ),
    Claim(
        'yarn_below_pi',
        'YaRN is below PI',
        '0.00 to 0.16 nats',
        'YaRN is below PI at the same length and budget, or level with it: by 0.03, 0.10 and '
        '0.16 nats at 2 L, 4 L and 8 L after 200 steps, by 0.00, 0.01 and 0.03 after 1,000 '
        '(PG19, Table 2).',
        thresholds={'nats': 0.01},
    ),
    Claim(
        'more_tuning',
        'More tuning helps',
        '0.03 to 0.20 nats',
        'More fine-tuning helps: after 1,000 steps perplexity at the tuned length is lower than '
        'after 200, by 0.06, 0.13 and 0.20 nats with PI and by 0.03, 0.05 and 0.07 with YaRN '
        '(PG19 at 2 L, 4 L and 8 L, Table 2).',
        thresholds={'nats': 0.01},
    ),
    Claim(
        'longbench_nope',
        'NoPE ahead of RoPE in LongBench',
        '18.3 and 16.5',
        'In the mean of LongBench NoPE is ahead of RoPE: 18.3 against 16.5 (Table 3).',
        thresholds={'points': 0.25},
    ),
    Claim(
        'longbench_shortest',
        'HeadScale at 2 L best in LongBench',
        '18.5, 17.2 and 17.0',
        'Of the searches of HeadScale that at 2 L has the best mean of LongBench: 18.5 against '
        '17.2 at 4 L and 17.0 at 9 L (Table 3).',
        thresholds={'points': 0.25},
    ),
    Claim(
        'rope_passkey_fails',
        'Passkey of RoPE fails at once',
        'at once',
        'Passkey retrieval of RoPE fails at once beyond the training length (Figure 6).',
        # At most this share from this multiple of L on, the second length beyond L that is drawn.
        thresholds={'percent': 10, 'windows': 1.25},
    ),
    Claim(
        'alibi_passkey_fails',
        'Passkey of ALiBi fails beyond L',
        'fails',
        'Passkey retrieval of models with ALiBi (BLOOM, MPT) fails beyond the training length '
        '(Figure 8).',
        thresholds={'accuracy': 0.5, 'windows': 1.5},
    ),
    Claim(
        'no_init_beginning',
        'Without start: keys at the beginning',
        'beginning alone',
        'Without the initialisation the searched model retrieves keys near the beginning alone '
        '(Figure 9).',
        # The beginning is this share of a prompt. Its keys are repeated more often than the others
        # by these points, and the others at most at this rate.
        thresholds={'share': 0.2, 'points': 10, 'accuracy': 0.5},
    ),
    Claim(
        'uniform_not_flat',
        'No multiplier keeps the loss flat',
        'rises',
        'Beyond L the loss rises under the best uniform multiplier of each position too '
        '(Appendix B, Figure 7).',
        thresholds={'nats': 0.1, 'margin': 0.01},
    ),
    Claim(
        'longer_search_serves_end',
        'A longer search serves the end',
        '18K for windows of 16K',
        'Multipliers searched at 16K degrade slightly at the end of windows of 16K; those '
        'searched at 18K serve them better.',
        # A longer search is one by at most this factor; 18K is 1.125 times 16K.
        thresholds={'nats': 0.01, 'factor': 1.5},
    ),
)
