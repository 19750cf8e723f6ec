"""Tests that are slow as measured: the list, and the rule that makes it.

    python -m pytest -n 2 --durations=0 --durations-min=1 >TIMED
    python tests/slow.py TIMED

slow.txt holds the seconds and the name of each case of a test that the usual run leaves out, as if
it had the marker `slow`. Of every test the quickest cases stay, TOGETHER seconds in all; a test
whose quickest case takes ALONE seconds leaves the run unless it is one of KEPT. Cases that are
listed and not timed again keep their seconds; seven kernels compiled for devices were chosen by
hand.
"""

from __future__ import annotations

import collections
import functools
import pathlib
import re
import sys

TOGETHER = 1
ALONE = 6
LEAST = 1  # seconds of a case that is worth leaving out
# What a user does, and what holds for every field, module or figure.
KEPT = (
    'tests/distributed/processes_test.py::test_all_stop_at_the_same_call',
    'tests/experiments/cli/harness_test.py::test_a_model_is_measured_as_by_plain_forward_passes',
    'tests/experiments/attention_distance_test.py::'
    'test_models_of_a_task_read_held_out_examples_of_each_length',
    'tests/experiments/evaluations_test.py::test_a_kind_is_made_from_its_entry_to_its_records',
    'tests/experiments/execute_test.py::test_a_search_shares_the_weights_of_the_run_it_starts_from',
    'tests/experiments/fields_test.py::test_no_field_is_accepted_and_ignored',
    'tests/experiments/new_form_test.py::'
    'test_a_search_trains_it_and_its_records_and_folders_say_so',
    'tests/experiments/text_run_test.py::test_no_sample_is_lost_or_evaluated_twice',
    'tests/fuzz/permissions_test.py::test_what_may_not_be_read_or_written_is_named',
    'tests/experiments/cli/convert_test.py::test_what_cannot_be_done_is_said_in_one_line',
    'tests/experiments/cli/convert_test.py::test_a_run_is_exported_for_several_lengths_and_read_back',
    'tests/layering_test.py::test_drawing_needs_no_model',
    'tests/layering_test.py::test_every_import_is_a_declared_dependency',
    'tests/model/apart_test.py::test_a_cache_continues_as_the_whole_does',
    'tests/model/transformer_test.py::test_the_default_attention_is_the_reference',
    'tests/pretrained_test.py::test_the_example_of_the_readme_runs',
    'tests/sharding_test.py::test_a_step_of_other_blocks_is_the_same_on_a_mesh',
    'tests/tools/bench/theorems_test.py::test_both_theorems_are_measured_and_drawn',
    'tests/training/entropy_test.py::test_micro_batches_make_one_batch',
    'tests/training/entropy_test.py::test_no_label_is_read',
    'tests/training/step_test.py::test_a_straight_through_search_sees_lambda_clamped',
    'tests/training/step_test.py::test_one_step',
    'tests/training/tasks_test.py::test_a_stopped_run_on_a_task_goes_on_bitwise',
    'tests/training/tasks_test.py::test_the_loss_is_that_of_target_tokens_alone',
    'tests/training/train_test.py::test_a_bad_step_is_skipped_and_noted',
)
_LIST = pathlib.Path(__file__).with_suffix('.txt')
_TIMED = re.compile(r'\s*([\d.]+)s call\s+(\S.*)')


@functools.cache
def listed() -> dict[str, float]:
    """Seconds by the name of each case that is left out."""
    rows = (line.split(' ', 1) for line in _LIST.read_text().splitlines())
    return {name: float(seconds) for seconds, name in rows}


def chosen(seconds: dict[str, float]) -> dict[str, float]:
    """Of cases by name those to leave out."""
    tests = collections.defaultdict(list)
    for name, taken in seconds.items():
        tests[_test_of(name)].append((taken, name))
    gone = {}
    for test, cases in tests.items():
        together = 0.0
        for index, (taken, name) in enumerate(sorted(cases)):
            together += taken
            stays = index == 0 and (taken < ALONE or test in KEPT)
            if taken >= LEAST and together > TOGETHER and not stays:
                gone[name] = taken
    return gone


def _test_of(name: str) -> str:
    return name.partition('[')[0]


def main(paths: list[str]) -> None:
    timed: dict[str, float] = {}
    for path in paths:
        found = map(_TIMED.fullmatch, pathlib.Path(path).read_text().splitlines())
        timed |= {row[2]: float(row[1]) for row in found if row}
    tests = {_test_of(name) for name in timed}
    again = {name: taken for name, taken in listed().items() if _test_of(name) in tests}
    kept = {name: taken for name, taken in listed().items() if _test_of(name) not in tests}
    seconds = again | timed
    gone = kept | chosen(seconds)
    _LIST.write_text(''.join(f'{gone[name]:.0f} {name}\n' for name in sorted(gone)))
    print(f'{len(gone)} of {len(seconds)} cases, {sum(gone.values()):.0f} seconds: {_LIST}')


if __name__ == '__main__':
    main(sys.argv[1:])
