"""Types: what is written in Python is checked whole, and the stubs of what is Rust are held against it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sinnet

pytest.importorskip("mypy")
CONFIG = Path(__file__).parent.parent / "pyproject.toml"


def test_the_stubs_are_what_is_there(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.write_text("sinnet._sinnet.__all__\n")
    words = ["mypy.stubtest", "sinnet._sinnet", "--mypy-config-file", str(CONFIG), "--allowlist", str(allowed)]
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_and_a_controller_are_typed(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import sinnet\n"
        "class Fixed(sinnet.Controller):\n"
        "    def on_ack(self, ack: sinnet.Ack) -> float:\n"
        "        return 20 * ack.mss\n"
        "    def on_loss(self, loss: sinnet.Loss) -> float:\n"
        "        return 20 * loss.mss\n"
        "reveal_type(sinnet.Scenario.load('x').set('a', 1).run().digests)\n"
    )
    # A copy: a folder among installed packages would have mypy check those as well.
    folder = shutil.copytree(Path(sinnet.__file__).parent, tmp_path / "sinnet", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    words = ["mypy", "--config-file", str(CONFIG), "--cache-dir", str(tmp_path), str(mine), str(folder)]
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert 'Revealed type is "list[str]"' in done.stdout.replace("builtins.", "")
