"""Prompts of several parts at a time, each part in one process."""

from __future__ import annotations

import concurrent.futures
import multiprocessing

from nope.evals.forward import Progress
from nope.evals.ruler.prompts import Plan

LEAST_TOKENS = 2**22  # of prompts that are missing, below which starting processes does not pay


def build(plan: Plan, *, workers: int, progress: Progress = iter) -> None:
    """Puts the prompts of a plan that its cache lacks there, `workers` parts at a time.

    They are those of `Plan.prompts` whatever the number of workers: the samples of a part are drawn
    from one random stream, by one process. With one worker, or little to do, no process is started;
    with more, the main program is imported again in each and needs its `if __name__ ==
    '__main__'`. Nothing is done without a cache. Errors as `Plan.prompts`.
    """
    if plan.cache is None:
        return
    missing = [part for part in plan.parts if len(plan.cached(*part)) < plan.samples]
    missing.sort(reverse=True)  # the longest take longest
    tokens = plan.samples * sum(length for length, _ in missing)
    if min(workers, len(missing)) <= 1 or tokens < LEAST_TOKENS:
        for length, task in missing:
            plan.make(length, task, write=True)
        return
    # spawn: a fork would copy the threads' locks of whatever else runs in this process.
    context = multiprocessing.get_context('spawn')
    with concurrent.futures.ProcessPoolExecutor(min(workers, len(missing)), context) as pool:
        jobs = [pool.submit(_make, plan, *part) for part in missing]
        try:
            for job in progress(concurrent.futures.as_completed(jobs)):
                job.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _make(plan: Plan, length: int, task: str) -> None:
    plan.make(length, task, write=True)
