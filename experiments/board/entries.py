"""Short forms of claims for the board: a few words, printed numbers, deciding configs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Entry:
    """short: the claim in a few words. printed: the numbers of its source in short, '' where there
    are none. configs: names of those whose figure decides it."""

    short: str
    printed: str
    configs: tuple[str, ...]


def _entry(short: str, printed: str, configs: str) -> Entry:
    return Entry(short, printed, tuple(configs.split()))


LAWS = 'laws'
SPLIT = 'frontier split_seeds split_window'
KEYS = 'frontier split_passkey split_seeds split_text split_window'
# Of configs that put the same claims of split heads to other models or prompts: which.
ASKED: Mapping[str, str] = {
    'frontier': 'with lambda',
    'split_passkey': 'with lambda',
    'split_seeds': 'as trained',
    'split_text': 'as trained, in real text',
    'split_window': 'as trained',
}
ENTRIES: Mapping[str, Entry] = {
    'parity': _entry(
        'NoPE and RoPE level inside L', '0.007 nats; 0.1 points', 'fig1 fig2 table1 table2'
    ),
    'onset': _entry('Loss rises from about 1.2 L (NoPE)', '1.2 and 1.1 L', 'fig1 fig2'),
    'bends_meet': _entry('Entropy bends where the loss does', 'together', 'fig1 fig2'),
    'bends_move': _entry('A multiplier moves the bends of NoPE', 'outward; RoPE: no', 'fig1 fig2'),
    'fit_form': _entry('Best multiplier is 1 + a ln(i/L)', 'R^2 0.98 to 0.995', 'fig7'),
    'fit_slope': _entry('a of the fit is 0.3 to 0.4', 'a 0.301, 0.397', 'fig7'),
    'fit_budget': _entry('a of the fit grows with training', '0.301 to 0.397', 'fig7'),
    'uniform_hurts': _entry(
        'A large multiplier hurts inside L', '0.03 to 0.73 nats', 'fig1 fig2 fig7 table2'
    ),
    'headscale_beats_uniform': _entry(
        'HeadScale beats one multiplier', '-0.04 to -1.88 nats', 'fig4 fig_dynamic laws table2'
    ),
    'headscale_hurts_less': _entry(
        'HeadScale hurts less than a multiplier', '-0.01 to -0.51 nats', 'fig4 table2'
    ),
    'headscale_hurts': _entry(
        'HeadScale hurts inside L', '0.01 to 0.23 nats', 'fig_dynamic laws one_search'
    ),
    'parts_matter': _entry(
        'Start and bound of the search matter', '55 and 28 points', 'fig9 table4'
    ),
    'entropy_against_multiplier': _entry('Entropy falls with the multiplier', 'r below 0', 'fig5'),
    'fails_past_searched': _entry(
        'HeadScale fails past its length', '3.5 nats', 'fig_dynamic laws one_search table2'
    ),
    'passkey_reach': _entry('Passkey of NoPE works to 2 windows', 'about 2 windows', 'fig6 fig9'),
    'between_ntk_and_yarn': _entry(
        'HeadScale between NTK and YaRN', '-0.97 and +0.58 nats', 'table2 zero_shot'
    ),
    'ntk_by_window': _entry('HeadScale ahead of NTK from 4 L on', '-0.19 nats at 4 L', 'table2'),
    'headscale_entropy': _entry('HeadScale has the higher entropy', 'higher', 'fig4'),
    'heads_apart': _entry('Heads at 1 bit and at 10 bits', '9 and 91 % of the bound', 'fig3'),
    'low_layers': _entry('Low layers are near the bound', 'near', 'fig10'),
    'bound_for_retrieval': _entry(
        'The bound costs loss, helps retrieval', '-0.16 nats, -28 points', 'table4'
    ),
    'passkey_inside': _entry('Passkey inside the window', '81, 53, 26 %', 'fig6 fig9'),
    'yarn_flat': _entry('YaRN without training stays flat', '0.16 (NTK 1.71) nats', 'zero_shot'),
    'factors': _entry('Factors of NTK and YaRN', '', 'zero_shot'),
    'tuned_works': _entry('Tuned models work to their length', 'at most 0.25 nats', 'finetuned'),
    'tuned_fails': _entry('Tuned models fail past it', '3.5 to 4.1 nats', 'finetuned'),
    'yarn_below_pi': _entry('YaRN is below PI', '0.00 to 0.16 nats', 'finetuned'),
    'more_tuning': _entry('More tuning helps', '0.03 to 0.20 nats', 'finetuned'),
    'longbench_nope': _entry('NoPE ahead of RoPE in LongBench', '18.3 and 16.5', 'table3'),
    'longbench_shortest': _entry(
        'HeadScale at 2 L best in LongBench', '18.5, 17.2 and 17.0', 'table3'
    ),
    'rotary_passkey_fails': _entry('Passkey of RoPE fails at once', 'at once', 'fig6'),
    'alibi_passkey_fails': _entry('Passkey of ALiBi fails beyond L', 'fails', 'fig8'),
    'no_init_beginning': _entry('Without start: keys at the beginning', 'beginning alone', 'fig9'),
    'uniform_not_flat': _entry('No multiplier keeps the loss flat', 'rises', 'fig7'),
    'longer_search_serves_end': _entry(
        'A longer search serves the end', '18K for windows of 16K', 'one_search'
    ),
    'log_length_serves_every_length': _entry(
        'One log-length set serves all lengths', 'ours', 'fig_dynamic one_search'
    ),
    'fit_extends': _entry('1 + 0.397 ln(n/L) extends', 'lower loss', LAWS),
    'fit_near_best': _entry('The fit is near the best multiplier', 'near', LAWS),
    'log_n_extends': _entry('ln n / ln L extends (Su)', 'lower loss', LAWS),
    'grok_extends': _entry('ln i / ln L extends (Grok-2, Qwen)', 'lower loss', LAWS),
    'yarn_temperature_extends': _entry("YaRN's temperature extends", 'lower loss', LAWS),
    'info_scale_extends': _entry('InfoScale extends', 'lower loss', LAWS),
    'info_scale_beats_log_n': _entry('InfoScale is ahead of ln n', 'lower loss', LAWS),
    'llama_extends': _entry("Llama 4's staircase extends", 'lower loss', LAWS),
    'inkling_extends': _entry("Inkling's law extends", 'lower loss', LAWS),
    'swan_extends': _entry("SWAN-GPT's law extends", 'lower loss', LAWS),
    'entropy_extends': _entry('Sharpening by entropy extends', 'lower loss', LAWS),
    'scalable_softmax_extends': _entry('Scalable-Softmax extends', 'lower loss', LAWS),
    'scalable_softmax_bias_hurts': _entry('Bias of Scalable-Softmax hurts', 'higher loss', LAWS),
    'adaptive_beats_scalable_softmax': _entry(
        'ASEntmax ahead of Scalable-Softmax', 'lower loss', LAWS
    ),
    'log_square_serves_headscale': _entry(
        'Two numbers serve as HeadScale does', 'ours', 'laws one_search'
    ),
    'log_square_serves_tail': _entry(
        'Two numbers serve the end of windows', 'ours', 'laws one_search'
    ),
    'keeps_loss': _entry('Split heads keep the loss to 32 L', 'ours', SPLIT),
    'retrofit_keeps_loss': _entry('Heads split later keep the loss', 'ours', 'split_later'),
    'retrofit_in_domain': _entry('Split later, nothing lost at L', 'ours', 'split_later'),
    'in_domain': _entry('Split heads lose nothing at L', 'ours', SPLIT),
    'keys_far': _entry('Split heads repeat a key at 64 L', 'ours', KEYS),
    'keys_four': _entry('Split heads: one of four keys at 16 L', 'ours', KEYS),
    'local_carry_loss': _entry('Local heads carry the loss', 'ours', 'split_heads'),
    'global_carry_keys': _entry('Keys need a head without position', 'ours', 'split_heads'),
    'extension_gains': _entry('An extension gains beyond L', 'ours', 'extend'),
    'extension_costs': _entry('An extension costs little inside L', 'ours', 'extend'),
    'extension_reaches': _entry('An extension reads further', 'ours', 'extend'),
    'nope_ranks_first': _entry('NoPE ranks first on tasks', 'rank 0.69; T5 0.55', 'b_mrr'),
    'encodings_rank_in_order': _entry(
        'NoPE, T5, ALiBi, RoPE, sinusoidal', '0.69 0.55 0.50 0.33 0.22', 'b_mrr'
    ),
    'sinusoidal_ranks_last': _entry('Sinusoidal ranks last on tasks', 'rank 0.22', 'b_mrr'),
    'nope_copies_longest': _entry('NoPE copies the longest', '0.99; T5 0.77', 'b_mrr'),
    'nope_beats_told': _entry(
        'NoPE beats encodings given positions', '0.53; T5 0.49', 'b_positions'
    ),
    'all_solve_inside': _entry('All encodings solve short copies', 'near 1', 'b_mrr'),
    'nope_attends_like_t5': _entry('NoPE attends as T5 does', '0.3; ALiBi 0.73', 'b_attention'),
    'nope_attends_unlike_rotary': _entry(
        'NoPE attends unlike RoPE and sinusoidal', '1.3, 0.93; T5 0.3', 'b_attention'
    ),
    't5_is_as_near_as_another_seed': _entry(
        'T5 is as near to NoPE as another seed', '0.3; 0.3', 'b_attention'
    ),
    'unpadded_best': _entry(
        'No scratchpad is best but for addition', '0.67 to 1; addition 0.13', 'b_scratchpad'
    ),
    'pad_helps_addition': _entry(
        'A full scratchpad helps addition', '4 to 9 points', 'b_scratchpad'
    ),
    'pad_format_matters': _entry('The format of a scratchpad matters', 'highly', 'b_scratchpad'),
    'padded_encodings': _entry(
        'NoPE and T5 add best with a scratchpad', '0.17, 0.16; 0.12', 'b_scratchpad'
    ),
    'code_encodings_alike_inside': _entry(
        'On code encodings are close inside L', '2.75, 2.82, 2.69 at L', 'b_large'
    ),
    'rotary_code_fails_at_once': _entry(
        'On code RoPE fails just past L', '166 at 1.37 L from 2.69', 'b_large'
    ),
    'nope_code_fails_later': _entry(
        'On code NoPE fails, but past 1.37 L', '2.67; 143 at 2 L', 'b_large'
    ),
    'alibi_code_degrades_slower': _entry(
        'On code ALiBi fails more slowly', '151; NoPE 503 at 2.5 L', 'b_large'
    ),
    'temperature_carries_tasks': _entry('A searched temperature carries tasks', 'ours', 'b_lambda'),
    'effective_length': _entry('Effective length on RULER', '', 'ruler'),
    'ranges': _entry('Loss by range of positions', '', 'fig1 fig2 fig4'),
    'lowest': _entry('Lowest loss at each length', '', 'fig_dynamic laws one_search'),
}
