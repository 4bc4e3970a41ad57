"""Long recordings to measure with, by the size of their text; made once."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

STEPS = {
    "4 MB": 1,
    "10 MB": 3,
    "25 MB": 6,
    "50 MB": 12,
    "100 MB": 25,
    "200 MB": 50,
    "400 MB": 100,
    "500 MB": 126,
    "1 GB": 250,
    "2 GB": 500,
}


@dataclass(frozen=True)
class Trace:
    """A file to measure with; `size` is that of its text, in bytes."""

    name: str
    path: Path
    size: int


def recorded(folder: Path, name: str) -> Trace:
    """The recording of this size, made where it is not there yet."""
    place = folder / name.replace(" ", "-")
    if not list(place.glob("*.pt.trace.json")):
        place.mkdir(parents=True, exist_ok=True)
        code = "import sys, pathlib; from tests.performance.recorded_loop import record_loop; "
        code += "record_loop(pathlib.Path(sys.argv[1]), int(sys.argv[2]), memory=True)"
        subprocess.run([sys.executable, "-c", code, str(place), str(STEPS[name])], check=True)
    (path,) = place.glob("*.pt.trace.json")
    return Trace(name, path, path.stat().st_size)
