"""Figure 6: passkey retrieval by length and depth, RoPE and NoPE, as trained and extended.

    nope run fig6:quick --workdir=work/quick

RoPE models are extended by fine-tuning under YaRN, NoPE by one multiplier per head. Quick and
small: models trained to retrieve, brief prompts (shared/retrieval.py).

Quick: one CPU core, 16 minutes a seed. Result, three seeds: every base model repeats every key
inside L, and HeadScale at 4 L moves NoPE's end to 2 L in two seeds of three. Searched at 9 L it
reads 18 percent inside 8 L, where the paper's reads 81.
"""

from ml_collections import ConfigDict

from configs.shared import models, pieces, released, retrieval


@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = retrieval.experiment('fig6', size)
    config.runs = {'rope': pieces.base(models.ROPE), 'nope': pieces.base()}
    # Run, label, longest prompts and the context that they are averaged over, in multiples of L.
    rope = (
        ('rope', 'RoPE', 2.0, 1.0),
        (retrieval.yarn(config, 4.0), 'RoPE, YaRN at 4 L', 8.0, 4.0),
        (retrieval.yarn(config, 8.0), 'RoPE, YaRN at 8 L', 16.0, 8.0),
    )
    nope = (
        ('nope', 'NoPE', 2.0, 1.0),
        (pieces.add_headscale(config, 4.0), 'NoPE, HeadScale at 4 L', 8.0, 4.0),
        (pieces.add_headscale(config, 9.0), 'NoPE, HeadScale at 9 L', 16.0, 8.0),
    )
    panels: list[dict] = []
    for run, label, times, window in rope + nope:
        record = retrieval.passkey(config, run, times, window)
        panels.append({'record': record, 'label': label})
    panels[-1]['paper'] = 81
    config.figure = {
        'kind': 'passkey_maps',
        'panels': tuple(panels),
        'roles': {'nope': tuple(label for _, label, _, _ in nope), 'rope': 'RoPE'},
    }
    return config
