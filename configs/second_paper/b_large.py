"""Loss at the ends of documents of code against context length, for models of three encodings.

    nope run b_large:quick --workdir=work/quick

The 1.3B models of the second paper (arXiv 2305.19466, appendix F): NoPE, ALiBi and RoPE trained
alike on code. The figure has the loss of the last 200 tokens of documents against the length of the
context, 0.5 to 2.5 L, by range of document lengths. The paper prints exp(loss), the perplexity.

quick, small, medium: the standard library in bytes, the models of encodings, the last 0.2 L bytes.
Quick: an hour of one core for three seeds (`--config.seeds="(0,1,2)"`). Result: three of the
paper's four claims do not hold, and one is open. ALiBi stays level to 2.5 L, where NoPE has 2.78
nats and RoPE 3.76.

paper: 1.31 billion parameters, L = 1024, 30 billion tokens. Starcoder has to be prepared as token
shards (nope prepare). The appendix does not state these choices, so they are ours: GELU without a
gate, an untied head, RMSNorm, a cosine to a tenth. Documents have 2,750 tokens or more, which hold
every context. Not run.
"""

from ml_collections import ConfigDict

from configs.encodings import encodings
from configs.shared import base, models, pieces

# The paper's contexts, in tokens of L = 1,024.
CONTEXTS = (512, 640, 760, 878, 1024, 1200, 1400, 1600, 1800, 2048, 2304, 2560)
SCORED = 200
TRAINED = 1024
# Ranges of document lengths: in tokens, and at the smaller sizes in multiples of L.
PAPER_RANGES = ((2750, 3000), (3000, 3250), (3250, 3500), (3500, 3750))
RANGES = ((4, 16), (16, 64), (64, 256), (256, 1024))
# Run -> the role of its curves.
ROLES = {'none': 'code_nope', 'alibi': 'code_alibi', 'rope': 'code_rope'}
_SHARDS = (
    ('shards:shards/starcoder/python', 0.40),
    ('shards:shards/starcoder/java', 0.25),
    ('shards:shards/starcoder/javascript', 0.25),
    ('shards:shards/starcoder/issues', 0.05),
    ('shards:shards/starcoder/commits', 0.05),
)


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('b_large', size)
    paper, subwords = size == 'paper', size in ('large', 'paper')
    if paper:
        _as_in_the_paper(config)
    config.evaluation.update({'cut': 'ends', 'windows': 150 if paper else 128})
    rope = {**models.ROPE, 'dims': 32, 'interleaved': True} if paper else models.ROPE
    positions = {'none': models.NOPE, 'alibi': models.ALIBI, 'rope': rope}
    config.runs = {name: pieces.base(position) for name, position in positions.items()}
    curves: list[dict] = []
    roles: dict[str, tuple[str, ...]] = {}
    ranges = PAPER_RANGES if paper else _ranges(config.train.length)
    for shortest, longest in ranges[2:] if size == 'large' else ranges:  # no book is shorter
        documents = {'shortest': shortest, 'longest': longest}
        for run, role in ROLES.items():
            group = f'{run}_{shortest}'
            config.evals[f'{group}/'] = {
                'kind': 'lengths',
                'run': run,
                'times': tuple(tokens / TRAINED for tokens in CONTEXTS),
                'tail': SCORED / TRAINED,
                'evaluation': documents,
            }
            row = f'documents of {shortest:,} to {longest:,} {"tokens" if subwords else "bytes"}'
            curves.append({'group': group, 'label': encodings.ENCODINGS[run][0], 'row': row})
            roles[role] = (*roles.get(role, ()), group)
    config.figure = {'kind': 'length_curves', 'curves': tuple(curves), 'roles': roles}
    return config


def _ranges(train_length: int) -> tuple[tuple[int, int], ...]:
    return tuple((low * train_length, high * train_length) for low, high in RANGES)


def _as_in_the_paper(config: ConfigDict) -> None:
    """Shape, training and data of the 1.3B models."""
    config.model.update(
        {
            'layers': 24,
            'width': 1024,
            'heads': 32,
            'kv_heads': 32,
            'head_dim': 128,
            'mlp': 'plain',
            'activation': 'gelu',
            'mlp_width': 16_384,
            'vocab_size': 49_152,
        }
    )
    config.train.update(
        {
            'length': TRAINED,
            'batch_size': 256,
            'steps': 114_400,
            'learning_rate': 2e-4,
            'warmup_steps': 2288,
            'decay_steps': 114_400,
        }
    )
    config.data.mixture = _SHARDS
    config.data.tokenizer = 'shards/starcoder/tokenizer.json'
