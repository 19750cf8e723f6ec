"""DOC."""

from __future__ import annotations

from experiments.figures.claims.claim import Claim

CLAIMS = (
    Claim(
        'fit_extends',
        '1 + 0.397 ln(n/L) extends',
        'lower loss',
        'The fit 1 + 0.397 ln(n/L) of the best uniform multiplier says how much to sharpen '
        'beyond L.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'fit_near_best',
        'The fit is near the best multiplier',
        'near',
        'The best uniform multiplier for a length n follows 1 + 0.397 ln(n/L).',
        thresholds={'nats': 0.02},
    ),
    Claim(
        'log_n_extends',
        'ln n / ln L extends (Su)',
        'lower loss',
        'Su Jianlin: logits multiplied by ln n / ln L keep the entropy of attention level, so '
        'that a trained model goes on beyond L.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'grok_extends',
        'ln i / ln L extends (Grok-2, Qwen)',
        'lower loss',
        'Qwen and Grok-2: logits multiplied by max(1, ln i / ln L) serve positions beyond L.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'yarn_temperature_extends',
        "YaRN's temperature extends",
        'lower loss',
        'YaRN (arXiv 2309.00071): logits multiplied by (1 + 0.1 ln(n/L))^2 lower the loss of an '
        'extended model at every position of the longer window. Said of rotary models.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'info_scale_extends',
        'InfoScale extends',
        'lower loss',
        'InfoScale (arXiv 2501.08570): it lowers the loss beyond L without training.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'info_scale_beats_log_n',
        'InfoScale is ahead of ln n',
        'lower loss',
        'InfoScale (arXiv 2501.08570): beyond L it is ahead of scaling with ln n.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'llama_extends',
        "Llama 4's staircase extends",
        'lower loss',
        'Llama 4: at inference the temperature 1 + 0.1 ln(1 + floor(i/L)) of layers without '
        'position helps them to generalise in length.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'inkling_extends',
        "Inkling's law extends",
        'lower loss',
        'Inkling: 1 + 0.1 ln(max(i/L, 1)) serves positions beyond L.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'swan_extends',
        "SWAN-GPT's law extends",
        'lower loss',
        'SWAN-GPT (arXiv 2504.08719): ln(a + i) / ln a at inference extends layers without '
        'position beyond L. Said of models whose other layers are rotary with a window.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'entropy_extends',
        'Sharpening by entropy extends',
        'lower loss',
        'Velickovic et al. (arXiv 2410.01104): sharpened by its entropy at inference, softmax '
        'serves inputs longer than those of the training.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'scalable_softmax_extends',
        'Scalable-Softmax extends',
        'lower loss',
        'Scalable-Softmax (arXiv 2501.19399): a model trained with s ln i has a lower loss '
        'beyond L.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'scalable_softmax_bias_hurts',
        'Bias of Scalable-Softmax hurts',
        'higher loss',
        'Scalable-Softmax (arXiv 2501.19399): a bias beside s ln i hurts beyond L. Said of '
        'coefficients trained with the weights.',
        thresholds={'nats': 0.005},
    ),
    Claim(
        'adaptive_beats_scalable_softmax',
        'ASEntmax ahead of Scalable-Softmax',
        'lower loss',
        'ASEntmax (arXiv 2506.16640): temperatures of each query are ahead of Scalable-Softmax '
        'beyond L. Said of entmax in place of softmax.',
        thresholds={'nats': 0.005},
    ),
)
