"""Claims of other sources about laws of lambda, on models and text of their own."""

from __future__ import annotations

from experiments.figures.claims.claim import Claim


def _law(name: str, short: str, paper: str, printed: str = 'lower loss') -> Claim:
    """Losses of two laws differ where the interval of their difference over seeds is beyond 0, and
    its mean by these nats."""
    return Claim(name, short, printed, paper, thresholds={'nats': 0.005})


CLAIMS = (
    _law(
        'fit_extends',
        '1 + 0.397 ln(n/L) extends',
        'The fit 1 + 0.397 ln(n/L) of the best uniform multiplier says how much to sharpen '
        'beyond L.',
    ),
    Claim(
        'fit_near_best',
        'The fit is near the best multiplier',
        'near',
        'The best uniform multiplier for a length n follows 1 + 0.397 ln(n/L).',
        thresholds={'nats': 0.02},
    ),
    _law(
        'log_n_extends',
        'ln n / ln L extends (Su)',
        'Su Jianlin: logits multiplied by ln n / ln L keep the entropy of attention level, so '
        'that a trained model goes on beyond L.',
    ),
    _law(
        'grok_extends',
        'ln i / ln L extends (Grok-2, Qwen)',
        'Qwen and Grok-2: logits multiplied by max(1, ln i / ln L) serve positions beyond L.',
    ),
    _law(
        'yarn_temperature_extends',
        "YaRN's temperature extends",
        'YaRN (arXiv 2309.00071): logits multiplied by (1 + 0.1 ln(n/L))^2 lower the loss of an '
        'extended model at every position of the longer window. Said of RoPE models.',
    ),
    _law(
        'info_scale_extends',
        'InfoScale extends',
        'InfoScale (arXiv 2501.08570): it lowers the loss beyond L without training.',
    ),
    _law(
        'info_scale_beats_log_n',
        'InfoScale is ahead of ln n',
        'InfoScale (arXiv 2501.08570): beyond L it is ahead of scaling with ln n.',
    ),
    _law(
        'llama_extends',
        "Llama 4's staircase extends",
        'Llama 4: at inference the temperature 1 + 0.1 ln(1 + floor(i/L)) of layers without '
        'position helps them to generalise in length.',
    ),
    _law(
        'inkling_extends',
        "Inkling's law extends",
        'Inkling: 1 + 0.1 ln(max(i/L, 1)) serves positions beyond L.',
    ),
    _law(
        'swan_extends',
        "SWAN-GPT's law extends",
        'SWAN-GPT (arXiv 2504.08719): ln(a + i) / ln a at inference extends layers without '
        'position beyond L. Said of models whose other layers are RoPE with a window.',
    ),
    _law(
        'hypenet_extends',
        "HypeNet's law extends",
        'HypeNet (arXiv 2601.22156): ln(a + i) / ln a at inference, one a fitted for the model, '
        'extends layers without position beyond L. Said of models with recurrent layers besides.',
    ),
    _law(
        'beam_extends',
        "Beam's law extends",
        'Beam: (1 + i/L)^0.1 in layers without position serves positions beyond L. Said of models '
        'whose other layers are RoPE with a window.',
    ),
    _law(
        'entropy_extends',
        'Sharpening by entropy extends',
        'Velickovic et al. (arXiv 2410.01104): sharpened by its entropy at inference, softmax '
        'serves inputs longer than those of the training.',
    ),
    _law(
        'scalable_softmax_extends',
        'Scalable-Softmax extends',
        'Scalable-Softmax (arXiv 2501.19399): a model trained with s ln i has a lower loss '
        'beyond L.',
    ),
    _law(
        'scalable_softmax_bias_hurts',
        'Bias of Scalable-Softmax hurts',
        'Scalable-Softmax (arXiv 2501.19399): a bias beside s ln i hurts beyond L. Said of '
        'coefficients trained with the weights.',
        'higher loss',
    ),
    _law(
        'adaptive_beats_scalable_softmax',
        'ASEntmax ahead of Scalable-Softmax',
        'ASEntmax (arXiv 2506.16640): temperatures of each query are ahead of Scalable-Softmax '
        'beyond L. Said of entmax in place of softmax.',
    ),
)
