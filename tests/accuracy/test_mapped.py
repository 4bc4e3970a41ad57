"""What a process maps in its steps is counted."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.environments import same_imports

MAPS = """
import mmap

def build():
    def step():
        with mmap.mmap(-1, 64 * mmap.PAGESIZE) as memory:
            for page in range({pages}):
                memory[page * mmap.PAGESIZE] = 1
    return step
"""


def test_the_pages_of_a_step_are_counted_in_each_process(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(MAPS.format(pages=50), "utf-8")
    command = [sys.executable, "-m", "tests.accuracy.mapped", str(program), "--processes", "2", "--steps", "5"]
    said = subprocess.run(command, env=same_imports(), check=True, capture_output=True, text=True).stdout
    pages = [int(number) for number in re.findall(r"^\d+\.\d\d ms, (\d+) pages$", said, re.MULTILINE)]
    assert len(pages) == 2
    assert all(50 <= each < 60 for each in pages), said
