"""What runs found."""

from __future__ import annotations

import html
import json
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _sinnet
from ._sinnet import SinnetError, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SERIES = ("flows", "paths", "links")


class Fairness:
    """What notions of fairness expect, beside what was measured. ``str`` is what ``sinnet fairness`` prints, ``data`` its JSON."""

    def __init__(self, text: str, data: dict[str, Any]) -> None:
        self.text = text
        self.data = data

    def __str__(self) -> str:
        return self.text.rstrip()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Result:
    """Finished runs. ``str`` is the table that ``sinnet sim`` prints.

    Tables hand themselves out through Arrow's C data interface (``polars.DataFrame(result.flows)``, ``pyarrow.table(result.flows)``,
    ``result.flows.to_pandas()``). Swept keys are columns: numbers in seconds, bit/s, bytes or packets where all values are, text
    otherwise. Rates are in Mbit/s, round-trip times in ms, queues and windows in packets; docs/metrics.md has every column.
    """

    def __init__(self, report: _sinnet.Report, campaign: _sinnet.Campaign, store: str | None, has_series: bool) -> None:
        self._report = report
        self._campaign = campaign
        self._store = store
        self._has_series = has_series

    @cached_property
    def _tables(self) -> tuple[Table, Table, Table, Table]:
        return self._report.tables()

    @property
    def runs(self) -> Table:
        """A row per run: all flows together, and the digest."""
        return self._tables[0]

    @property
    def flows(self) -> Table:
        """A row per run and flow."""
        return self._tables[1]

    @property
    def paths(self) -> Table:
        """A row per run, flow and path, of flows of protocols that may have several."""
        return self._tables[2]

    @property
    def links(self) -> Table:
        """A row per run, link and direction."""
        return self._tables[3]

    @cached_property
    def summary(self) -> Table:
        """Means over the seeds, a row per point of the sweep, flow or link, and metric.

        ``mean``, ``sd`` (of the runs) and ``ci95``, half of the mean's 95 % confidence interval: the numbers of ``sinnet sim``.
        Null: nothing was measured, or in one run only. ``of`` is ``total`` (all flows together), ``flow`` or ``link``.
        """
        return self._report.summary()

    @property
    def digests(self) -> list[str]:
        """A hash over everything that happened in each run; the command line's ``--json`` has the same."""
        return self._report.digests

    def mean(self, metric: str, *, flow: str | None = None, link: str | None = None, **parameters: Any) -> float:
        """The mean of one number: of a flow, a link, or of all flows together; ``parameters`` choose among points of a sweep."""
        return self._estimate(metric, flow, link, parameters)[0]

    def interval(
        self, metric: str, *, flow: str | None = None, link: str | None = None, **parameters: Any
    ) -> tuple[float, float]:
        """The ends of the 95 % confidence interval of :meth:`mean`."""
        mean, half = self._estimate(metric, flow, link, parameters)
        if half is None:
            raise SinnetError("one run has no interval: take more seeds")
        return mean - half, mean + half

    def series(self, of: str = "flows") -> Table:
        """Time series: a row per sample and flow (``flows``), path (``paths``) or link (``links``).

        Of runs in memory those of this call of ``run(interval=...)``; of a store, what its files have.
        """
        if of not in _SERIES:
            raise SinnetError(f"there are series of {', '.join(_SERIES)}, not of {of!r}")
        if not self._has_series:
            raise SinnetError('these runs have no series: run(interval="100ms") samples some')
        if self._store is None:
            return self._report.series(_SERIES.index(of))
        names = self._campaign.names
        return _sinnet.table_of_files([os.path.join(self._store, of, f"{name}.parquet") for name in names])

    def to_dict(self) -> dict[str, Any]:
        """What ``sinnet sim --json`` prints."""
        data: dict[str, Any] = json.loads(self._report.json())
        return data

    def to_parquet(self, directory: str | os.PathLike[str]) -> None:
        """Writes ``summary.parquet``, ``summary_flows.parquet`` and ``summary_links.parquet``: :attr:`runs`, :attr:`flows`, :attr:`links`."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        runs, flows, links = (str(folder / f"{name}.parquet") for name in ("summary", "summary_flows", "summary_links"))
        self._report.write((runs, flows, links))

    def plot(self, metric: str = "goodput_mbps", *, of: str = "flows", x: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws means with bands of 95 % confidence; matplotlib has to be installed (``pip install matplotlib``).

        ``x`` is a swept key of numbers, or ``"time_s"`` for a series; without it the first such key, else bars. ``of``: ``total``,
        ``flows`` or ``links``, of a series also ``paths``.
        """
        from ._plot import plot

        return plot(self, metric, of, x, ax)

    def _estimate(
        self, metric: str, flow: str | None, link: str | None, parameters: dict[str, Any]
    ) -> tuple[float, float | None]:
        kind = "flow" if flow is not None else "link" if link is not None else "total"
        name = flow if flow is not None else link if link is not None else "total"
        table = self.summary.to_dict()
        found = [
            row
            for row in range(len(self.summary))
            if table["of"][row] == kind
            and table["name"][row] == name
            and table["metric"][row] == metric
            and all(str(table[key][row]) == str(value) for key, value in parameters.items() if key in table)
        ]
        unknown = [key for key in parameters if key not in table]
        if unknown or len(found) != 1:
            why = f"{', '.join(unknown)} is not swept" if unknown else f"{len(found)} rows of `summary` are that"
            raise SinnetError(f"{metric} of {kind} {name!r}: {why}")
        mean = table["mean"][found[0]]
        if mean is None:
            raise SinnetError(f"{metric} of {kind} {name!r} was not measured")
        return mean, table["ci95"][found[0]]

    def __str__(self) -> str:
        return self._report.text().rstrip()

    def __repr__(self) -> str:
        return f"<sinnet.Result of {len(self.digests)} runs>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
