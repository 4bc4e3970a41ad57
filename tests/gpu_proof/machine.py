"""What a machine has for a run, found and installed without a network, by the standard library alone."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

NEEDED = ("isal", "msgspec", "numpy", "platformdirs", "pytest", "torch")
"""What measuring imports. A report, which is made elsewhere, needs all that TorchTidy installs."""

CLOCKS = "clocks.sm,clocks.mem,pstate,temperature.gpu,power.draw,utilization.gpu"
COMMAND_S = 20


def missing() -> list[str]:
    """The packages that are needed and not there."""
    return [name for name in NEEDED if not _has(name)]


def install(wheels: Path, into: Path) -> str:
    """Installs wheels of what is not here into a folder; returns pip's complaint, empty where it has none.

    Only files of `wheels` are used: pip is given no index, and what a wheel asks for is not looked up.
    """
    chosen = [wheel for wheel in sorted(wheels.glob("*.whl")) if not _has(wheel.name.partition("-")[0])]
    complaint = ""
    if chosen:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--upgrade"]
        ended = subprocess.run(
            [*command, "--target", str(into), *map(str, chosen)], capture_output=True, text=True, check=False
        )
        complaint = ended.stderr.strip() if ended.returncode else ""
    return complaint


def import_from(folder: Path) -> None:
    """Lets this process and those that it starts import from the folder."""
    if folder.is_dir() and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


def clocks() -> str:
    """The clocks, power and temperature of the device now; empty where no driver says so."""
    return _printed("nvidia-smi", f"--query-gpu={CLOCKS}", "--format=csv,noheader")


def driver() -> str:
    """All that the driver says of its devices; empty where there is none."""
    return _printed("nvidia-smi", "-q", "-d", "CLOCK,POWER,PERFORMANCE,MEMORY")[:20_000]


def commit() -> str:
    """The kit's own commit, empty outside a checkout."""
    return _printed("git", "rev-parse", "HEAD")


def python() -> str:
    """Version of Python, and the system."""
    return f"{platform.python_version()}, {platform.system()} {platform.machine()}"


def _printed(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_S, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""


def _has(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
