"""Scenarios: what is simulated."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _sinnet
from ._controller import is_algorithm, name_of
from ._progress import bar
from ._result import Fairness, Result
from ._sinnet import ScenarioError, SinnetError

#: Between the samples of stored series, as on the command line.
DEFAULT_INTERVAL = "100ms"


class Scenario:
    """A scenario, as a file of ``sinnet sim`` has it. It does not change: ``set`` and ``sweep`` give a changed copy.

    >>> try:
    ...     Scenario.from_dict({"duration": "1s"}).check()
    ... except ScenarioError as error:
    ...     print(error.source, error.line, error.column, error.message)
    dict 1 1 a scenario needs `name`
    """

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._assignments: tuple[str, ...] = ()
        self._algorithms: dict[str, type] = {}
        _sinnet.assigned(text, name, [])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scenario:
        """Reads a scenario file; files that it extends are beside it."""
        return cls(Path(path).read_text(encoding="utf-8"), os.fspath(path))

    @classmethod
    def from_toml(cls, text: str, name: str = "scenario.toml") -> Scenario:
        """From the text of a scenario file. Errors call it ``name``, and what it extends is beside that."""
        return cls(text, name)

    @classmethod
    def from_dict(cls, scenario: Mapping[str, Any]) -> Scenario:
        """From a dict with the keys of a scenario file; ``link`` and ``flow`` are lists of dicts."""
        try:
            text = _sinnet.to_toml(json.dumps(scenario), True)
        except (TypeError, ValueError) as error:
            raise SinnetError(f"this dict is no scenario: {error}") from None
        return cls(text, "dict")

    def set(self, key: str, value: Any) -> Scenario:
        """A copy with one key set, as by ``--set KEY=VALUE``: ``set("flow.tcp.congestion", "cubic")``, ``set("link.*.rate", "4Mbit/s")``.

        The value may also be a class, of a :class:`Controller` for ``congestion`` and ``path_congestion``, of a :class:`Scheduler` for ``scheduler``.
        """
        copy = self._copy()
        copy._assign(key, copy._written(value))
        return copy

    def sweep(self, keys: Mapping[str, Sequence[Any]] | None = None, /, **more: Sequence[Any]) -> Scenario:
        """A copy that is run once for each combination of values: ``sweep({"link.a-b.rate": ["4Mbit/s", "8Mbit/s"]})``.

        >>> Scenario.from_toml('name = "x"').sweep(duration=["1s", "2s"]).swept
        ['duration']
        """
        copy = self._copy()
        for key, values in {**(keys or {}), **more}.items():
            values = list(values)
            if not values:
                raise SinnetError(f"a sweep over {key} needs values")
            if key in copy.swept:
                copy._assign(key, copy._written(values[0]))
            plain = [copy._named(value) for value in values]
            copy._assign(f"sweep.{key}", _sinnet.to_toml(json.dumps(plain), False))
        return copy

    @property
    def swept(self) -> list[str]:
        """The keys that are swept."""
        return _sinnet.swept(self._text, self._name, list(self._assignments))

    def to_toml(self) -> str:
        """The scenario with what it extends and what was set worked in."""
        return _sinnet.assigned(self._text, self._name, list(self._assignments))

    def check(self) -> None:
        """Raises :class:`ScenarioError` where it makes no sense, as a run would."""
        self._campaign(None, None)

    def run(
        self,
        seeds: int | None = 25,
        *,
        seed: int | None = None,
        workers: int | None = None,
        progress: bool = True,
        store: str | os.PathLike[str] | None = None,
        interval: str | float | None = None,
        pcap: bool = False,
    ) -> Result:
        """Runs it once per seed and point of its sweep, as ``sinnet sim`` does, and with the same results bit for bit.

        ``seeds``: how many, one after the other from ``seed`` (the scenario's own if None). ``workers``: runs at the same time, as
        many as there are processors if None; one where Python classes take part. ``store``: a directory as of ``sinnet sim --out``,
        where finished runs stay and are found again. ``interval``: between the samples of time series, such as "10ms" or a number
        of seconds; with a store 100 ms if None, otherwise there are none then. ``pcap``: captures in the store.

        Ctrl-C stops within a second and raises ``KeyboardInterrupt``; what is finished stays in the store.
        """
        if pcap and store is None:
            raise SinnetError("captures need a store")
        campaign = self._campaign(seed, seeds)
        if campaign.remark is not None:
            warnings.warn(campaign.remark, stacklevel=2)
        sampled = interval_ns(interval if interval is not None or store is None else DEFAULT_INTERVAL)
        with bar(progress, campaign.runs) as watched:
            report = campaign.run(workers or processors(), _path(store), sampled, pcap, watched)
        return Result(report, campaign, _path(store), sampled is not None)

    def _campaign(self, seed: int | None, seeds: int | None, places: list[int] | None = None) -> _sinnet.Campaign:
        return _sinnet.Campaign(
            self._text, self._name, list(self._assignments), (seed, seeds), dict(self._algorithms), places
        )

    def _copy(self) -> Scenario:
        copy = object.__new__(Scenario)
        copy.__dict__.update(self.__dict__)
        copy._algorithms = dict(self._algorithms)
        return copy

    def _assign(self, key: str, written: str) -> None:
        assignments = (*self._assignments, f"{key}={written}")
        _sinnet.assigned(self._text, self._name, list(assignments))
        self._assignments = assignments

    def _named(self, value: Any) -> Any:
        if not is_algorithm(value):
            return value
        name = name_of(value)
        self._algorithms[name] = value
        return name

    def _written(self, value: Any) -> str:
        value = self._named(value)
        if isinstance(value, str):
            return value
        try:
            return _sinnet.to_toml(json.dumps(value), False)
        except (TypeError, ValueError) as error:
            raise SinnetError(f"{value!r} is no value of a scenario: {error}") from None

    def __repr__(self) -> str:
        assignments = "".join(f".set({assignment!r})" for assignment in self._assignments)
        return f"<sinnet.Scenario {self._name}{assignments}>"


def fairness(
    scenario: Scenario,
    seeds: int | None = 25,
    *,
    seed: int | None = None,
    workers: int | None = None,
    progress: bool = True,
) -> Fairness:
    """What each notion of fairness expects of a scenario, beside what its runs measure: as ``sinnet fairness``."""
    campaign = scenario._campaign(seed, seeds)
    with bar(progress, campaign.runs) as watched:
        report = campaign.run(workers or processors(), None, None, False, watched)
    text, data = campaign.fairness(report)
    return Fairness(text, json.loads(data))


def processors() -> int:
    """As many as this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def interval_ns(interval: str | float | None) -> int | None:
    """A time in nanoseconds."""
    if interval is None:
        return None
    written = interval if isinstance(interval, str) else f"{interval}s"
    parsed = _sinnet.nanoseconds(written)
    if not parsed:
        raise SinnetError(f"an interval is a time above zero, such as \"10ms\" or 0.01, not {interval!r}")
    return parsed


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)
