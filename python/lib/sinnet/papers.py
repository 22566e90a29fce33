"""The experiments of the papers on multipath HIP: published beside measured, as ``sinnet papers`` has them."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _sinnet
from ._progress import bar
from ._scenario import processors


def experiments() -> dict[str, str]:
    """Identifiers and titles."""
    return dict(_sinnet.papers_list())


def run(
    *ids: str,
    seeds: int = 25,
    store: str | os.PathLike[str] = "sinnet-papers",
    workers: int | None = None,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Runs experiments, or groups of them, all if none is named: the rows of ``sinnet papers run --json``.

    Finished runs stay in ``store`` and are found again. All of them with 25 seeds take hours.
    """
    with bar(progress, 0) as watched:
        rows = _sinnet.papers_run(list(ids), seeds, os.fspath(store), workers or processors(), watched)
    found: list[dict[str, Any]] = json.loads(rows)
    return found
