"""Freed memory goes back to the system, in processes that ask for it."""

import platform
import subprocess
import sys

import pytest

from tb_tidy_plugin.allocator import LEAST_BYTES

BLOCK_BYTES = 64 << 10
MANY = 2 * LEAST_BYTES // BLOCK_BYTES
FREEING = f"""
import sys
from pathlib import Path
from tb_tidy_plugin.allocator import give_back, spare_memory
def used(): return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096
if sys.argv[1] == "spare": spare_memory()
blocks = [bytes(bytearray({BLOCK_BYTES})) for _ in range(int(sys.argv[2]))]
del blocks[:-1]  # the last one keeps all before it
before = used()
give_back()
print(before - used())
"""


def freed_bytes(how: str, blocks: int) -> int:
    command = [sys.executable, "-c", FREEING, how, str(blocks)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_goes_back_where_a_process_spares_it() -> None:
    assert freed_bytes("spare", MANY) > MANY * BLOCK_BYTES // 2


def test_a_process_that_does_not_ask_keeps_its_allocator() -> None:
    assert freed_bytes("keep", MANY) == 0


def test_a_small_process_takes_no_time_for_it() -> None:
    assert freed_bytes("spare", MANY // 8) == 0
