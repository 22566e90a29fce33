"""The package and the program are made of the same."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import sinnet

ROOT = Path(__file__).parents[2]


def versions(lock: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r'\nname = "([^"]+)"\nversion = "([^"]+)"', lock.read_text()):
        found.setdefault(name, set()).add(version)
    return found


@pytest.mark.skipif(not (ROOT / "crates").exists(), reason="not in the repository")
def test_crates_of_others_have_the_programs_versions() -> None:
    """Results are bytes of Parquet and of JSON, too. `cargo update --manifest-path python/Cargo.toml -p CRATE --precise VERSION` mends it."""
    theirs = versions(ROOT / "Cargo.lock")
    ours = versions(ROOT / "python" / "Cargo.lock")
    # What Arrow's crates bring in besides may be of another generation, but not instead.
    decide = [name for name in ("parquet", "serde_json", "statrs", "rand_xoshiro", "sha2", "toml", "microlp", "snap") if name in theirs]
    assert len(decide) > 5
    assert {name: theirs[name] for name in decide} == {name: ours[name] for name in decide}


def test_the_version_is_the_programs() -> None:
    manifest = (ROOT / "Cargo.toml").read_text() if (ROOT / "Cargo.toml").exists() else ""
    if manifest:
        assert f'\nversion = "{sinnet.__version__}"' in manifest
        assert f'\nversion = "{sinnet.__version__}"' in (ROOT / "python" / "Cargo.toml").read_text()


def test_everything_that_is_offered_is_told() -> None:
    for name in sinnet.__all__:
        thing = getattr(sinnet, name)
        assert name == "__version__" or thing.__doc__, f"{name} has no documentation"
        if isinstance(thing, type) and thing.__module__.startswith("sinnet._"):
            for method, value in vars(thing).items():
                if not method.startswith("_") and callable(value):
                    assert value.__doc__, f"{name}.{method} has no documentation"


def test_the_tutorial_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    manual = ROOT / "docs" / "python.md"
    if not manual.exists():
        pytest.skip("not in the repository")
    tutorial = manual.read_text().split("## Ten minutes")[1].split("\n## ")[0]
    # A file, so that the source of a class can be read, as in a script.
    script = tmp_path / "tutorial.py"
    script.write_text("\n".join(re.findall(r"```python\n(.*?)```", tutorial, re.DOTALL)))
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    runpy.run_path(str(script))
    assert (tmp_path / "goodput.png").stat().st_size > 1000
    assert (tmp_path / "windows.png").stat().st_size > 1000


def test_the_page_of_all_names_is_what_the_package_says() -> None:
    """`tools/python-reference >docs/python-api.md` mends it."""
    page = ROOT / "docs" / "python-api.md"
    if not page.exists():
        pytest.skip("not in the repository")
    said = subprocess.run([sys.executable, ROOT / "tools" / "python-reference"], capture_output=True, text=True, check=True).stdout
    assert page.read_text() == said
