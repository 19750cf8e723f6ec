"""Tokenisation of a corpus into token shards: parallel, restartable, byte-identical.

The content of every shard depends on the parts of the corpus alone (`sources.CorpusPart`). A worker
takes a part, writes its shards under temporary names, renames them and last writes the part's unit
file; shards that were not renamed when a process died are written again.
"""

from __future__ import annotations

import concurrent.futures
import logging
import multiprocessing
import os
import pathlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

from nope.data import digest, shards
from nope.data.sources import PART_BYTES, CorpusPart, Source, grouped, of_split
from nope.data.splits import SPLITS
from nope.data.tokenizers import Tokenizer, is_read_whole, load_tokenizer
from nope.runtime import files, progress, workers

log = logging.getLogger(__name__)

REPLACED = 'replaced'  # documents of a shard that are no UTF-8
_REPORT_SECONDS = 0.2

# (documents, tokens, bytes of text) since the last report.
Report = Callable[[int, int, int], None]


def prepare(
    source: Source,
    tokenizer: str,
    out: pathlib.Path,
    *,
    cache: pathlib.Path,
    field: str = 'data.tokenizer',
    split: str | None = None,
    workers: int = 1,
    part_bytes: int = PART_BYTES,
) -> dict[str, Any]:
    """Tokenises `source` into the folder `out` and returns its metadata.

    Every document is encoded with EOS appended and no BOS; empty ones are left out. A call on
    a finished folder returns at once, on an unfinished one continues it; two calls at a time
    take turns. The files are the same for any `workers`; with one, no process is started; with
    more, the main program is imported again in each and needs its `if __name__ == '__main__'`.

    tokenizer: as `data.tokenizer`. field: its name in messages. split: tokenises that split alone.
    part_bytes: about the text of a part. Parts are the units of work, and are repeated after a
    restart. Raises as `Source.list_parts` and `load_tokenizer`; ValueError when `out` holds, or was
    begun for, something else, lies in the corpus, or the corpus changes meanwhile.
    """
    out = out.absolute()
    source.check_outside(out)
    parts = source.list_parts(cache, part_bytes)
    if split is not None:
        parts = of_split(parts, split)
    parts = grouped(parts, part_bytes)
    loaded = load_tokenizer(tokenizer, field)
    identity = source.identity()
    if identity.get('tokenizer', loaded.fingerprint) != loaded.fingerprint:
        raise ValueError(f'{field}={tokenizer!r}; {source.name()} is made for another tokenizer')
    plan = {
        'format': shards.FORMAT,
        'version': shards.VERSION,
        'source': identity,
        'description': source.describe(),
        'tokenizer': loaded.fingerprint,
        'vocab_size': loaded.vocab_size,
        'eos_id': loaded.eos_id,
        'dtype': shards.token_dtype(loaded.vocab_size).str,
        'page': shards.PAGE,
        'part_bytes': part_bytes,
        'parts': len(parts),
        **({} if split is None else {'split': split}),
    }
    out.mkdir(parents=True, exist_ok=True)
    with files.exclusive(out.with_name(f'.{out.name}.lock')) as locked:
        _check_plan(out, plan)
        if not (out / 'metadata.json').is_file():
            if locked:
                with files.exclusive(_workers_lock(out)):
                    pass  # workers of a killed command are gone
                for leftover in out.glob('*.partial-*'):
                    leftover.unlink()
            todo = [i for i in range(len(parts)) if _unit(out, i, len(parts)) is None]
            _tokenise_parts(parts, todo, loaded, out, workers)
            _check_unchanged(source, out, plan)
            _write_metadata(source, out, plan)
    return shards.read_metadata(source.name(), out)


def _check_plan(out: pathlib.Path, plan: dict[str, Any]) -> None:
    path = out / 'plan.json'
    found = files.read_object(path)
    if found is None:
        if any(out.glob('*.array_record')) or (out / 'metadata.json').is_file():
            raise ValueError(f'{out} holds shards but no plan.json: choose another folder')
        files.write_json(path, plan)
        return
    ignored = {'description'}  # the name of a folder, not its content
    if (out / 'metadata.json').is_file():
        ignored.add('parts')  # how the work was divided
    different = [k for k in sorted({*plan, *found} - ignored) if found.get(k) != plan.get(k)]
    if different and not any(out.glob('unit-*.json')) and not any(out.glob('*.array_record')):
        files.write_json(path, plan)  # nothing was made by what is there
    elif different:
        changes = ', '.join(
            f'{k}: {found.get(k)!r:.200} there, {plan.get(k)!r:.200} now' for k in different
        )
        raise ValueError(
            f'{out} was begun for other data or settings ({changes}): choose another folder, or '
            'remove it'
        )


def _check_unchanged(source: Source, out: pathlib.Path, plan: dict[str, Any]) -> None:
    """ValueError where the corpus is not the one whose name the tokens are to have. What was made
    is removed, since it may be of either."""
    if source.identity() == plan['source']:
        return
    for made in ('unit-*.json', '*.array_record', '*.documents.npy', 'plan.json'):
        for path in out.glob(made):
            path.unlink()
    raise ValueError(
        f'{source.name()}: files of {plan["description"]} changed while they were tokenised; start '
        'again once they stay as they are'
    )


def _write_metadata(source: Source, out: pathlib.Path, plan: dict[str, Any]) -> None:
    units = [_unit(out, i, plan['parts']) or {} for i in range(plan['parts'])]
    replaced = sum(counts.pop(REPLACED, 0) for unit in units for counts in unit.values())
    splits = {
        split: [{'part': i, **unit[split]} for i, unit in enumerate(units) if split in unit]
        for split in SPLITS
    }
    if not any(splits.values()) and 'split' not in plan:  # of one split its reader says so
        raise ValueError(f'{source.name()}: there is no text in {plan["description"]}')
    files.write_json(out / 'metadata.json', {**plan, 'splits': splits})
    if replaced:
        log.warning(
            '%s: %d documents of %s are no UTF-8: each byte that is none became U+FFFD',
            *(source.name(), replaced, plan['description']),
        )


def _unit(out: pathlib.Path, index: int, count: int) -> dict[str, Any] | None:
    """Counts of a part by its splits; None where it is not whole, or its unit file is damaged."""
    try:
        found = files.read_object(_unit_path(out, index, count))
    except ValueError:
        return None
    counts = None if found is None else found.get('counts')
    return counts if found == _sealed(counts) else None


def _sealed(counts: Any) -> dict[str, Any]:
    """A unit file's content."""
    return {'counts': counts, 'digest': digest.of_json(counts)}


def _unit_path(out: pathlib.Path, index: int, count: int) -> pathlib.Path:
    return out / f'{shards.shard_stem("unit", index, count)}.json'


def _tokenise_parts(
    parts: Sequence[CorpusPart],
    todo: Sequence[int],
    tokenizer: Tokenizer,
    out: pathlib.Path,
    workers: int,
) -> None:
    total = sum(parts[i].size for i in todo)
    with _Progress(total, hidden=not todo) as bar:
        if min(workers, len(todo)) <= 1:
            for i in todo:
                _tokenise_part(parts[i], i, len(parts), tokenizer, out, bar.add)
            return
        # spawn: a fork would copy the threads' locks of whatever else runs in this process.
        context = multiprocessing.get_context('spawn')
        counters = context.Array('q', 3)
        with concurrent.futures.ProcessPoolExecutor(
            min(workers, len(todo)), context, _start_worker, (tokenizer, counters, out)
        ) as pool:
            jobs = {pool.submit(_work, parts[i], i, len(parts), out) for i in todo}
            try:
                while jobs:
                    done, jobs = concurrent.futures.wait(jobs, timeout=_REPORT_SECONDS)
                    with counters:
                        bar.show(*counters[:])
                    for job in done:
                        job.result()
            except BrokenProcessPool as error:
                raise OSError(
                    f'{out}: a worker was killed, as for lack of memory; what is finished stays, '
                    'and the same command goes on from there; fewer workers need less'
                ) from error
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _tokenise_part(
    part: CorpusPart,
    index: int,
    count: int,
    tokenizer: Tokenizer,
    out: pathlib.Path,
    report: Report,
) -> None:
    """Writes the shards of one part and, last, its unit file."""
    dtype = shards.token_dtype(tokenizer.vocab_size)
    eos = np.asarray([tokenizer.eos_id], np.int32)
    writers: dict[str, shards.ShardWriter] = {}
    replaced: Counter[str] = Counter()
    documents = tokens = size = 0
    reported = time.monotonic()
    try:
        for split, text in part.documents():
            ids = text if isinstance(text, np.ndarray) else tokenizer.encode(text)
            if len(ids) == 0:
                continue
            if not isinstance(text, np.ndarray) and not is_read_whole(tokenizer, text):
                replaced[split] += 1
            if split not in writers:
                stem = shards.shard_stem(split, index, count)
                writers[split] = shards.ShardWriter(out, stem, dtype)
            writers[split].add(np.concatenate([ids, eos]))
            documents, tokens, size = documents + 1, tokens + len(ids) + 1, size + len(text)
            if time.monotonic() - reported > _REPORT_SECONDS:
                report(documents, tokens, size)
                documents = tokens = size = 0
                reported = time.monotonic()
        report(documents, tokens, size)
        unit = {split: writer.close() for split, writer in writers.items()}
        unit |= {split: {**unit[split], REPLACED: n} for split, n in replaced.items()}
        files.write_json(_unit_path(out, index, count), _sealed(unit))
    except BaseException:
        for writer in writers.values():
            writer.discard()
        raise


class _Progress:
    """A progress bar in bytes of text, with the rates of documents and tokens."""

    def __init__(self, total: int, hidden: bool) -> None:
        self._bar = progress.bar(
            total=total, desc='tokenising', unit='B', unit_scale=True, disable=hidden
        )
        self._began = time.monotonic()
        self._sums = (0, 0, 0)

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def add(self, documents: int, tokens: int, size: int) -> None:
        now = (documents, tokens, size)
        self.show(*(a + b for a, b in zip(self._sums, now, strict=True)))

    def show(self, documents: int, tokens: int, size: int) -> None:
        """Sums since the beginning."""
        self._sums = (documents, tokens, size)
        seconds = max(time.monotonic() - self._began, 1e-3)
        rates = f'{documents / seconds:.0f} docs/s, {tokens / seconds:,.0f} tokens/s'
        self._bar.set_postfix_str(rates, refresh=False)
        # Packed files hold more text than their size says.
        self._bar.total = max(self._bar.total, size)
        self._bar.update(size - self._bar.n)


# A worker process' tokenizer and the counters it shares, set once when it starts.
_worker: dict[str, Any] = {}


def _start_worker(tokenizer: Tokenizer, counters: Any, out: pathlib.Path) -> None:
    """A parent that is killed takes its workers along, and the next one waits for their end."""
    files.share_until_exit(_workers_lock(out))
    workers.end_with_parent()  # behind the lock: the next parent may be at work already
    os.environ['TOKENIZERS_PARALLELISM'] = 'false'
    _worker.update(tokenizer=tokenizer, counters=counters)


def _workers_lock(out: pathlib.Path) -> pathlib.Path:
    return out.with_name(f'.{out.name}.workers.lock')


def _work(part: CorpusPart, index: int, count: int, out: pathlib.Path) -> None:
    counters = _worker['counters']

    def report(*amounts: int) -> None:
        with counters:
            for k, amount in enumerate(amounts):
                counters[k] += amount

    _tokenise_part(part, index, count, _worker['tokenizer'], out, report)
