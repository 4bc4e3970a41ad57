"""`python -m tests.growth`: measures how fast each kind of input makes time and memory grow; the table.

The smallest of three sizes takes a second or more; of the inputs in `MANY`, it is the one given there.

Exits with 1 where anything grows too fast.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path

from tests.growth.growth import complaints, line_of, sizes_of, small_run, times_of
from tests.growth.taken import KINDS, Taker
from tests.support.growing import INPUTS


def main() -> None:
    """Measures all inputs, or those whose names fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=float, help="how many times as much as the tests take; by default, see above")
    parser.add_argument("--only", default="*", help="a glob of names")
    parser.add_argument("--what", choices=tuple(KINDS), default="everything")
    given = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = small_run(folder / "small")
        with Taker(given.what, small) as taker:
            for each, growing in INPUTS.items():
                if fnmatch(each, given.only):
                    times = given.times or times_of(taker, each, growing, folder / "run")
                    sizes = sizes_of(taker, growing, folder / "run", times)
                    failed += bool(complaints(sizes))
                    sys.stdout.write(f"{line_of(each, sizes)}\n")
                    sys.stdout.flush()
    sys.exit(min(failed, 1))


if __name__ == "__main__":
    main()
