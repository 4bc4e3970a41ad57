"""Freed memory is used again and goes back to the system, in processes that ask for it."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tb_tidy_plugin.system.allocator import LEAST_BYTES

BLOCK_BYTES = 64 << 10
MANY = 2 * LEAST_BYTES // BLOCK_BYTES
FREEING = f"""
import sys
from pathlib import Path
from tb_tidy_plugin.system.allocator import give_back, spare_memory
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


HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
HAS_HUGE_PAGES = HUGE_PAGES.exists() and "[always]" in HUGE_PAGES.read_text("ascii")
AGAIN = """
import resource, sys
from tb_tidy_plugin.system.allocator import spare_memory
if sys.argv[1] == "spare": spare_memory()
def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = faults()
for size in range(1, 8): bytearray(size << 22)
print(faults() - before)
"""


def faults(how: str) -> int:
    """Number of pages that the system clears for texts of 4 to 28 MB, of which only one is there at a time."""
    done = subprocess.run([sys.executable, "-c", AGAIN, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
@pytest.mark.skipif(HAS_HUGE_PAGES, reason="pages are of any size")
def test_freed_memory_is_used_again_where_a_process_spares_it() -> None:
    assert faults("spare") < faults("keep") / 2


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_goes_back_where_a_process_spares_it() -> None:
    assert freed_bytes("spare", MANY) > MANY * BLOCK_BYTES // 2


def test_a_process_that_does_not_ask_keeps_its_allocator() -> None:
    assert freed_bytes("keep", MANY) <= 0  # a page of code may come in meanwhile


def test_a_small_process_takes_no_time_for_it() -> None:
    assert freed_bytes("spare", MANY // 8) <= 0
