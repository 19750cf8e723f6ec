"""Claims under test that are not of the paper, and readings: a part of the `catalogue`."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figures.claims.listed import Listed
from experiments.figures.read.position_curve import THRESHOLD

# Of a lambda that follows the length, which is not the paper's.
ONE_SET = Listed(
    'log_length_serves_every_length',
    None,
    'Ours, not of the paper: one set of coefficients serves every length.',
    thresholds={'nats': 0.01},
)

# Of laws of lambda: what their sources say, on models and text of their own. Losses of two laws
# differ where they do so by these nats for every seed, not where the sign of a mean says so.
LAW_APART: Mapping[str, float] = {'nats': 0.005}
FIT_EXTENDS = Listed(
    'fit_extends',
    None,
    'The fit 1 + 0.397 ln(n/L) of the best uniform multiplier says how much to sharpen beyond L.',
    thresholds=LAW_APART,
)
FIT_NEAR_BEST = Listed(
    'fit_near_best',
    None,
    'The best uniform multiplier for a length n follows 1 + 0.397 ln(n/L).',
    thresholds={'nats': 0.02},
)
LOG_N_EXTENDS = Listed(
    'log_n_extends',
    None,
    'Su Jianlin: logits multiplied by ln n / ln L keep the entropy of attention level, so that a '
    'trained model goes on beyond L.',
    thresholds=LAW_APART,
)
GROK_EXTENDS = Listed(
    'grok_extends',
    None,
    'Qwen and Grok-2: logits multiplied by max(1, ln i / ln L) serve positions beyond L.',
    thresholds=LAW_APART,
)
YARN_TEMPERATURE_EXTENDS = Listed(
    'yarn_temperature_extends',
    None,
    'YaRN (arXiv 2309.00071): logits multiplied by (1 + 0.1 ln(n/L))^2 lower the loss of an '
    'extended model at every position of the longer window. Said of rotary models.',
    thresholds=LAW_APART,
)
INFO_SCALE_EXTENDS = Listed(
    'info_scale_extends',
    None,
    'InfoScale (arXiv 2501.08570): it lowers the loss beyond L without training.',
    thresholds=LAW_APART,
)
INFO_SCALE_BEATS_LOG_N = Listed(
    'info_scale_beats_log_n',
    None,
    'InfoScale (arXiv 2501.08570): beyond L it is ahead of scaling with ln n.',
    thresholds=LAW_APART,
)
LLAMA_EXTENDS = Listed(
    'llama_extends',
    None,
    'Llama 4: at inference the temperature 1 + 0.1 ln(1 + floor(i/L)) of layers without position '
    'helps them to generalise in length.',
    thresholds=LAW_APART,
)
INKLING_EXTENDS = Listed(
    'inkling_extends',
    None,
    'Inkling: 1 + 0.1 ln(max(i/L, 1)) serves positions beyond L.',
    thresholds=LAW_APART,
)
SWAN_EXTENDS = Listed(
    'swan_extends',
    None,
    'SWAN-GPT (arXiv 2504.08719): ln(a + i) / ln a at inference extends layers without position '
    'beyond L. Said of models whose other layers are rotary with a window.',
    thresholds=LAW_APART,
)
ENTROPY_EXTENDS = Listed(
    'entropy_extends',
    None,
    'Velickovic et al. (arXiv 2410.01104): sharpened by its entropy at inference, softmax serves '
    'inputs longer than those of the training.',
    thresholds=LAW_APART,
)
SCALABLE_EXTENDS = Listed(
    'scalable_softmax_extends',
    None,
    'Scalable-Softmax (arXiv 2501.19399): a model trained with s ln i has a lower loss beyond L.',
    thresholds=LAW_APART,
)
SCALABLE_BIAS_HURTS = Listed(
    'scalable_softmax_bias_hurts',
    None,
    'Scalable-Softmax (arXiv 2501.19399): a bias beside s ln i hurts beyond L. Said of '
    'coefficients trained with the weights.',
    thresholds=LAW_APART,
)
ADAPTIVE_BEATS_SCALABLE = Listed(
    'adaptive_beats_scalable_softmax',
    None,
    'ASEntmax (arXiv 2506.16640): temperatures of each query are ahead of Scalable-Softmax '
    'beyond L. Said of entmax in place of softmax.',
    thresholds=LAW_APART,
)
LOG_SQUARE_SERVES_HEADSCALE = Listed(
    'log_square_serves_headscale',
    None,
    'Ours, not of the paper: searched once, 1 + a x + b x^2 is at least as good as HeadScale at '
    'every length, that of its search included.',
    thresholds=LAW_APART,
)
LOG_SQUARE_SERVES_TAIL = Listed(
    'log_square_serves_tail',
    None,
    'Ours, not of the paper: searched once, 1 + a x + b x^2 is at least as good as HeadScale at '
    'the end of windows as long as those that HeadScale was searched on.',
    thresholds=LAW_APART,
)

# Of heads split between local ones and ones without position, which are not the paper's.
KEEPS_LOSS = Listed(
    'keeps_loss',
    None,
    'Ours, not of the paper: with heads split between local ones and ones without position, the '
    'mean loss at 32 L stays that at L, with no weight trained beyond L.',
    thresholds={'nats': 0.05, 'multiple': 32},
)
RETROFIT_KEEPS_LOSS = Listed(
    'retrofit_keeps_loss',
    None,
    'Ours, not of the paper: a model without position whose heads are split after its training '
    'keeps its loss at 32 L.',
    thresholds=KEEPS_LOSS.thresholds,
)
RETROFIT_IN_DOMAIN = Listed(
    'retrofit_in_domain',
    None,
    'Ours, not of the paper: split after its training, it loses nothing against rotary at L.',
    thresholds={'nats': 0.01},
)
IN_DOMAIN = Listed(
    'in_domain',
    None,
    'Ours, not of the paper: at L split heads lose nothing against rotary.',
    thresholds={'nats': 0.01},
)
KEYS_FAR = Listed(
    'keys_far',
    None,
    'Ours, not of the paper: split heads repeat a single key at 64 L.',
    thresholds={'needles': 1, 'multiple': 64, 'share': 0.99},
)
KEYS_FOUR = Listed(
    'keys_four',
    None,
    'Ours, not of the paper: split heads repeat the one of four named keys that is asked for at '
    '16 L.',
    thresholds={'needles': 4, 'multiple': 16, 'share': 0.90},
)
LOCAL_CARRY_LOSS = Listed(
    'local_carry_loss',
    None,
    'Ours, not of the paper: local heads carry the order of nearby tokens, so that the loss needs '
    'them more than the heads without position.',
)
GLOBAL_CARRY_KEYS = Listed(
    'global_carry_keys',
    None,
    'Ours, not of the paper: keys far away are not found without some head that has no position '
    'encoding.',
    thresholds={'points': 10},
)

# Of a temperature on synthetic tasks, which is neither paper's.
TEMPERATURE_CARRIES_TASKS = Listed(
    'temperature_carries_tasks',
    None,
    'Ours, not of the papers: a temperature searched on longer examples carries exact match '
    'further, to lengths beyond them.',
    thresholds={'points': 5},
)

# Of a checkpoint that was extended, and readings.
EFFECTIVE_LENGTH = Listed('effective_length', None, '', reading=True)
EXTENSION_GAINS = Listed('extension_gains', None, '')
EXTENSION_COSTS = Listed('extension_costs', None, '', thresholds={'nats': 0.05})
EXTENSION_REACHES = Listed(
    'extension_reaches', None, '', thresholds={'nats': THRESHOLD, 'noise_nats': 0.05}
)
RANGES = Listed('ranges', None, '', reading=True)
LOWEST = Listed('lowest', None, '', reading=True)
