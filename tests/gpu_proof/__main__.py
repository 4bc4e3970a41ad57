"""`make gpu-proof` measures on this machine's GPU and packs the run; with `--report ARCHIVE` it writes the page of one.

It may be called again and again: what is done is not done again. Exit status 0 once everything is done, 3 where time
ended before, 2 where something is missing.
"""

from __future__ import annotations

import argparse
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

from tests.gpu_proof import machine

ROOT = Path(__file__).resolve().parents[2]
DONE, MISSING, NOT_DONE = 0, 2, 3
SITE = "site"
PACKED_EVERY_S = 60.0


def main(arguments: list[str] | None = None) -> int:
    """Measures or reports; the exit status."""
    given = _parser().parse_args(arguments)
    machine.import_from(given.state / SITE)
    if given.wheels and machine.missing():
        complaint = machine.install(given.wheels, given.state / SITE)
        if complaint:
            sys.stderr.write(f"pip could not install the wheels: {complaint}\n")
        machine.import_from(given.state / SITE)
    if missing := machine.missing():
        sys.stderr.write(
            f"Missing here: {', '.join(missing)}. Bring their wheels along (docs/gpu-proof.md), and name their folder "
            "with --wheels.\n"
        )
        return MISSING
    return _reported(given) if given.report else _measured(given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu_proof", description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu for a rehearsal")
    parser.add_argument("--minutes", type=float, default=8.0, help="end after so many, and go on at the next call")
    parser.add_argument("--state", type=Path, default=ROOT / "build" / "gpu-proof", help="folder of what is done")
    parser.add_argument("--out", type=Path, default=ROOT / "build", help="folder of the archive")
    parser.add_argument("--resume", type=Path, help="archive of an earlier call, where its state is gone")
    parser.add_argument("--wheels", type=Path, help="folder of wheels of what is missing here")
    parser.add_argument(
        "--sizes", nargs="+", choices=["tiny", "small", "middle", "large"], default=["small", "middle", "large"]
    )
    parser.add_argument("--only", nargs="+", default=["*"], help="pieces of these names (`pair/sync_readback/*`)")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--turn-seconds", type=float, default=0.25)
    parser.add_argument("--spawn", action="store_true", help="every process imports torch by itself")
    parser.add_argument("--archive-mb", type=int, default=200)
    parser.add_argument("--part-mb", type=int, help="the archive in parts of at most so many MB")
    parser.add_argument("--list", action="store_true", help="name the pieces and end")
    parser.add_argument(
        "--report", type=Path, metavar="ARCHIVE", help="write the page and the sample runs of an archive"
    )
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "accuracy-gpu.md")
    parser.add_argument("--samples", type=Path, default=ROOT / "sample_runs")
    return parser


def _measured(given: argparse.Namespace) -> int:
    import torch

    from tests.gpu_proof.archive import MB, ArchiveError, pack, unpack
    from tests.gpu_proof.pieces import Plan, pieces, run
    from tests.gpu_proof.state import Machine, State

    plan = Plan(
        given.device, given.sizes, given.turns, given.turn_seconds, start="spawn" if given.spawn else "forkserver"
    )
    chosen = [piece for piece in pieces(plan) if any(fnmatch(piece.name, each) for each in given.only)]
    if given.list:
        sys.stdout.writelines(f"{piece.name}\n" for piece in chosen)
        return DONE
    if plan.device == "cuda" and not torch.cuda.is_available():
        sys.stderr.write("PyTorch sees no GPU here. `--device cpu` rehearses.\n")
        return MISSING
    state = State(given.state)
    if given.resume and state.machine is None:
        try:
            unpack(given.resume, given.state)
        except (ArchiveError, OSError) as problem:
            sys.stderr.write(f"{problem}\n")
            return MISSING
    name = torch.cuda.get_device_name() if plan.device == "cuda" else "CPU"
    here = Machine(
        device=plan.device, name=name, torch=str(torch.__version__), python=machine.python(), cores=machine.cores(),
        driver=machine.driver(), commit=machine.commit(),
    )  # fmt: skip
    sys.stderr.write(f"{here.name}, torch {here.torch}, Python {here.python}, {here.cores} cores\n")
    before = state.machine
    if before is not None and (before.device, before.name, before.torch) != (here.device, here.name, here.torch):
        sys.stderr.write(
            f"{given.state} is of {before.name} with torch {before.torch}: name another folder with --state.\n"
        )
        return MISSING
    state.made_on(here)
    part_bytes = given.part_mb * MB if given.part_mb else None
    packed_at = time.monotonic()

    def say(line: str) -> None:
        """Packs now and then, too: who ends this process finds an archive."""
        nonlocal packed_at
        sys.stderr.write(f"{line}\n")
        if time.monotonic() > packed_at + PACKED_EVERY_S:
            pack(given.state, given.out, given.archive_mb * MB, part_bytes)
            packed_at = time.monotonic()

    is_done = run(state, chosen, 60 * given.minutes, machine.clocks, say)
    for path in pack(given.state, given.out, given.archive_mb * MB, part_bytes):
        sys.stderr.write(f"{path}: {path.stat().st_size / MB:.1f} MB\n")
    sys.stderr.write("Everything is done.\n" if is_done else "Time ended: call again to go on.\n")
    return DONE if is_done else NOT_DONE


def _reported(given: argparse.Namespace) -> int:
    from tempfile import TemporaryDirectory

    from msgspec import MsgspecError

    from tests.gpu_proof.archive import ArchiveError, unpack
    from tests.gpu_proof.report import PAGE, page, take_samples
    from tests.gpu_proof.state import State

    with TemporaryDirectory(prefix="torchtidy-gpu-proof-") as name:
        state = State(Path(name))
        try:
            unpack(given.report, state.folder)
            machine_of = state.machine
        except (ArchiveError, MsgspecError, OSError) as problem:
            sys.stderr.write(f"{problem}\n")
            return MISSING
        if (machine_of is None or machine_of.device != "cuda") and given.page == PAGE:
            sys.stderr.write("This archive is a rehearsal on a CPU: name a page with --page.\n")
            return MISSING
        try:
            given.page.write_text(page(state), "utf-8")
            for taken in take_samples(state, given.samples):
                sys.stderr.write(f"{taken}\n")
        except (MsgspecError, OSError, ValueError) as problem:
            sys.stderr.write(f"This archive is not a run's: {problem}\n")
            return MISSING
    return DONE


if __name__ == "__main__":
    sys.exit(main())
