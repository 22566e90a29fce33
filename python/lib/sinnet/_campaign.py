"""Campaigns on several processes or machines, over any executor of ``concurrent.futures``."""

from __future__ import annotations

import math
import multiprocessing
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from . import _sinnet
from ._progress import bar
from ._result import Result
from ._scenario import DEFAULT_INTERVAL, Scenario, interval_ns, processors
from ._sinnet import SinnetError, StoreError

#: A batch that has lost this many workers is not tried again: the runs themselves may be what kills it.
MOST_LOSSES = 3


@dataclass(frozen=True)
class _Batch:
    """Runs for one worker. The worker stores them; only their names return."""

    version: str
    program: str
    scenario: Scenario
    seed: int | None
    seeds: int | None
    places: list[int]
    store: str
    interval: int | None


class Campaign:
    """A scenario over seeds and a sweep, in a store that all workers can write: a directory here, or one over NFS on a cluster.

    Each run is files in the store, written whole or not at all, and the same from whichever worker. What a lost worker had under way
    is run again; a second start runs what is missing only, and so does ``sinnet sim --out`` of the same version: their stores
    are the same. ``seeds``, ``seed`` and ``interval`` are as in :meth:`Scenario.run`, ``sweep`` as in :meth:`Scenario.sweep`.

    With Dask: ``campaign.run(client.get_executor(pure=False))``.
    """

    def __init__(
        self,
        scenario: Scenario,
        seeds: int | None = 25,
        sweep: Mapping[str, Sequence[Any]] | None = None,
        *,
        store: str | os.PathLike[str],
        seed: int | None = None,
        interval: str | float | None = DEFAULT_INTERVAL,
    ) -> None:
        self.scenario = scenario.sweep(sweep) if sweep else scenario
        self.store = os.path.abspath(store)
        self._seeds = seeds
        self._seed = seed
        self._interval = interval_ns(interval)
        self._campaign = self.scenario._campaign(seed, seeds)

    @property
    def runs(self) -> int:
        """How many runs it has."""
        return self._campaign.runs

    def missing(self) -> list[int]:
        """The places of the runs that are not stored yet, counted from 0, point by point and seed by seed."""
        return self._campaign.missing(self.store, self._interval)

    def run(
        self,
        executor: Executor | None = None,
        *,
        workers: int | None = None,
        batch_s: float = 10.0,
        progress: bool = True,
    ) -> Result:
        """Runs what is missing in batches of about ``batch_s`` seconds of work, and writes the tables over all runs.

        Without an executor on ``workers`` processes of this machine, as many as there are processors if None. How long a run takes
        is tried here, with the first one that is missing.
        """
        missing = self.missing()
        if missing:
            began = time.monotonic()
            _run(self._batch(missing[:1]))
            seconds = time.monotonic() - began
            batches = self._batches(missing[1:], seconds, batch_s)
            with bar(progress, self.runs) as watched:
                _Runner(executor, workers or processors(), batches, self.runs - len(missing) + 1, self.runs, watched).run()
            left = self.missing()
            if left:
                raise StoreError(
                    f"{self.store}: {len(left)} runs are said to be done and are not here: is it on a file system that "
                    "all workers share?"
                )
        report = self._campaign.run(1, self.store, self._interval, False, None)
        return Result(report, self._campaign, self.store, self._interval is not None)

    def _batches(self, places: list[int], seconds: float, batch_s: float) -> list[_Batch]:
        count = min(len(places), max(1, math.ceil(len(places) * seconds / batch_s)))
        # Points of a sweep cost differently: each batch has some of all.
        return [self._batch(places[number::count]) for number in range(count)]

    def _batch(self, places: list[int]) -> _Batch:
        return _Batch(
            _sinnet.__version__,
            _sinnet.program,
            self.scenario,
            self._seed,
            self._seeds,
            places,
            self.store,
            self._interval,
        )


def _run(batch: _Batch) -> int:
    """Runs and stores a batch, in a worker; how many runs it was."""
    if (batch.version, batch.program) != (_sinnet.__version__, _sinnet.program):
        raise StoreError(
            f"this worker has another build of sinnet ({_sinnet.__version__}, {_sinnet.program[:8]}) than who asks "
            f"({batch.version}, {batch.program[:8]}), and runs of one campaign come from one: install the same everywhere"
        )
    campaign = batch.scenario._campaign(batch.seed, batch.seeds, batch.places)
    campaign.run(1, batch.store, batch.interval, False, None)
    return len(batch.places)


class _Runner:
    """Gives batches to an executor, and those of lost workers again."""

    def __init__(
        self, executor: Executor | None, workers: int, batches: list[_Batch], finished: int, runs: int, watched: Any
    ) -> None:
        self._given = executor
        self._workers = workers
        self._waiting = [(batch, 0) for batch in batches]
        self._finished = finished
        self._runs = runs
        self._watched = watched

    def run(self) -> None:
        executor: Executor | None = self._given
        processes: dict[int, Any] = {}
        under_way: dict[Future[int], tuple[_Batch, int]] = {}
        try:
            while self._waiting or under_way:
                if executor is None:
                    # Processes that begin anew have no locks of this one's threads.
                    context = multiprocessing.get_context("spawn")
                    executor = ProcessPoolExecutor(self._workers, mp_context=context)
                    # A pool that breaks forgets its processes, of which one may just have begun.
                    processes = getattr(executor, "_processes", {})
                lost = self._submit(executor, under_way)
                done, _ = wait(under_way, timeout=1.0, return_when=FIRST_COMPLETED)
                for future in done:
                    lost |= self._take(future, *under_way.pop(future))
                if lost and self._given is None:
                    # A pool that has lost a process is of no use any more, nor is what it had under way.
                    self._waiting += under_way.values()
                    under_way.clear()
                    _end(executor, processes)
                    executor = None
                if self._watched is not None:
                    self._watched(self._finished / self._runs, self._finished, self._runs)
        except BaseException:
            for future in under_way:
                future.cancel()
            if self._given is None and executor is not None:
                _end(executor, processes)
                executor = None
            raise
        finally:
            if self._given is None and executor is not None:
                executor.shutdown()

    def _submit(self, executor: Executor, under_way: dict[Future[int], tuple[_Batch, int]]) -> bool:
        while self._waiting:
            batch, losses = self._waiting[0]
            try:
                under_way[executor.submit(_run, batch)] = batch, losses
            except (BrokenExecutor, OSError) as error:
                # A pool that breaks while it begins a process says so by whatever of it is closed already.
                self._waiting[0] = batch, losses + 1
                if self._given is not None or losses + 1 >= MOST_LOSSES:
                    raise _lost(error) from error
                return True
            self._waiting.pop(0)
        return False

    def _take(self, future: Future[int], batch: _Batch, losses: int) -> bool:
        """Looks at a future that has ended; True if a worker was lost."""
        try:
            self._finished += future.result()
            return False
        except SinnetError:
            raise
        except (BrokenExecutor, CancelledError) as error:
            why: Exception = error
        except Exception as error:
            # Dask says so without a class of the standard library.
            if type(error).__name__ not in ("KilledWorker", "FutureCancelledError", "CommClosedError"):
                raise
            why = error
        if losses + 1 >= MOST_LOSSES or (self._given is not None and isinstance(why, BrokenExecutor)):
            raise _lost(why) from why
        self._waiting.append((batch, losses + 1))
        return True


def _lost(why: BaseException) -> SinnetError:
    return SinnetError(f"workers are lost ({type(why).__name__}: {why}); what is finished is stored, and the next start runs the rest")


def _end(pool: Executor, processes: dict[int, Any]) -> None:
    """Ends the processes of a pool without waiting for what they do: a run that is not finished is not stored."""
    begun = list(processes.values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in begun:
        process.terminate()
