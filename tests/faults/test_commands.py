"""Commands on a machine whose calls fail, one after the other.

Each run either does what it does without a fault, or says what went wrong; it changes nothing of the user's and leaves
nothing that a later run would be misled by.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tb_tidy_plugin.cli.main import main
from tb_tidy_plugin.trace import cache as cache_module
from tb_tidy_plugin.trace import cached_columns
from tb_tidy_plugin.trace import files as files_module
from tb_tidy_plugin.trace.cache import PACKAGE
from tb_tidy_plugin.trace.merge import event_list_of, write_merged
from tb_tidy_plugin.words.errors import TidyError
from tests.faults.injected import ERRORS, Fault, faults, injected
from tests.support.environments import same_imports
from tests.support.thinned import STEPS
from tests.support.whole_run import contents, write_run

FULL = Path("/dev/full")
DRAFTS = ".tidy-draft-*"
SAID_OTHERWISE = ("lack of permission", "does not exist", "could not be read, or not completely")
"""How reasons are told in other words than the system's own."""


@dataclass(frozen=True)
class Done:
    """What became of a command."""

    code: object
    out: str
    said: str = field(compare=False)


class Machine:
    """A folder with a run, one for output, and this user's cache; commands are run in the run's folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str = "w.1.pt.trace.json") -> None:
        self.folder, self.run, self.out = folder, folder / "run", folder / "out"
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        self.trace = write_run(self.run, name)
        self.before = contents(self.run)
        self.out.mkdir()
        monkeypatch.chdir(self.run)

    @property
    def cache(self) -> Path:
        return self.folder / "cache" / "tb-tidy" / "analyses"

    def does(self, *arguments: str) -> Done:
        """Runs `tb-tidy` in this process."""
        cache_module.say_once.cache_clear()  # each run is a process to both
        files_module.log_once.cache_clear()
        out, said = io.StringIO(), io.StringIO()
        self._monkeypatch.setattr(sys, "argv", ["tb-tidy", *arguments])
        code: object = None
        try:
            with redirect_stdout(out), redirect_stderr(said):
                main()
        except SystemExit as end:
            code = end.code
        return Done(code, out.getvalue(), said.getvalue())

    def forget(self) -> None:
        """Deletes what is kept of traces, and what was written."""
        for path in (*self.cache.glob("*"), *self.out.iterdir()):
            path.unlink()

    def left(self) -> list[str]:
        """What no command may leave."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob(DRAFTS))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(cached_columns, "WORTH_KEEPING", 0)
    return Machine(tmp_path, monkeypatch)


def wrong_with(machine: Machine, done: Done, usual: Done, fault: Fault) -> Iterator[str]:
    """What a command has done that it may not do, whatever failed."""
    everything = " ".join((done.out + done.said + " ".join(map(str, contents(machine.out).values()))).split())
    is_said = any(words in everything for words in (os.strerror(fault.error), *SAID_OTHERWISE))
    if done.code not in {usual.code, 2}:
        yield f"it ended with {done.code}"
    if done != usual and not is_said:
        yield f"it did not say so: {done.said[-300:] or done.out[-300:]}"
    if contents(machine.run) != machine.before:
        yield "it changed files of the user's"
    if left := machine.left():
        yield f"it left {left}"


def tried(
    machine: Machine,
    arguments: Iterable[str],
    kinds: Iterable[str],
    before_each: Callable[[], object] = lambda: None,
    where: Path | None = None,
    *,
    all_errors: bool = False,
    every: int = 1,
) -> tuple[list[str], set[str]]:
    """All that was wrong, and the kinds of calls of which one failed."""
    wrong, reached = [], set[str]()
    before_each()
    usual = machine.does(*arguments)
    assert usual.code == 0, usual.said
    for fault in faults(kinds, all_errors=all_errors, every=every):
        before_each()
        everything = contents(machine.folder)
        with injected(fault, where or machine.folder):
            done = machine.does(*arguments)
        if not fault.is_reached:
            continue
        reached.add(fault.kind)
        wrong += [f"{fault}: {each}" for each in wrong_with(machine, done, usual, fault)]
        writes = contents(machine.folder) != everything
        if writes and machine.does(*arguments) != usual:
            wrong.append(f"{fault}: the next run does something else")
    return wrong, reached


CHECK = ("check", ".", "--format", "json", "--jobs", "1")


@pytest.mark.slow
@STEPS
def test_check_with_an_empty_cache(machine: Machine, every: int) -> None:
    kinds = [kind for kind in ERRORS if kind not in {"fork", "fsync", "mmap"}]
    wrong, reached = tried(machine, CHECK, kinds, machine.forget, all_errors=True, every=every)
    assert wrong == []
    assert reached >= {"open", "read", "write", "close", "rename", "stat", "list", "unlink", "mkdir"}


@STEPS
def test_check_with_all_that_it_asks_for_in_the_cache(machine: Machine, every: int) -> None:
    def keep() -> None:
        machine.forget()
        machine.does(*CHECK)

    wrong, reached = tried(machine, CHECK, ERRORS, keep, every=every)
    assert wrong == []
    assert reached >= {"open", "read", "mmap", "stat"}


def test_check_of_gz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = Machine(tmp_path, monkeypatch, "w.1.pt.trace.json.gz")
    arguments = ("check", packed.trace.name, "--format", "json", "--no-cache")
    wrong, reached = tried(packed, arguments, ("open", "read", "close"), packed.forget)
    assert wrong == []
    assert reached == {"open", "read", "close"}


def test_check_into_files_of_which_one_is_a_link(machine: Machine) -> None:
    """The report, behind a link that stays one, and the baseline are as they were or as they should be."""
    arguments = (
        "check",
        machine.trace.name,
        "--format",
        "html",
        "-o",
        "../out/link",
        "--write-baseline",
        "../out/known",
    )

    def write_old() -> None:
        for path in machine.out.iterdir():
            path.unlink()
        (machine.out / "real").write_text("old")
        (machine.out / "known").write_text("old")
        (machine.out / "link").symlink_to("real")

    write_old()
    machine.does(*arguments)
    new = contents(machine.out)
    wrong, reached = tried(machine, arguments, ERRORS, write_old, machine.out)
    assert wrong == []
    assert reached >= {"open", "write", "close", "fsync", "rename"}
    for fault in faults(("write", "rename", "fsync", "close", "stat")):
        write_old()
        with injected(fault, machine.out):
            machine.does(*arguments)
        assert (machine.out / "link").is_symlink(), str(fault)
        assert all(content in {b"old", new[name]} for name, content in contents(machine.out).items()), str(fault)


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        (("summary", "."), ("open", "stat", "list")),
        (("annotate", "."), ("open", "read", "stat", "list")),
        (("compare", ".", "."), ("open", "list")),
    ],
    ids=lambda value: value[0],
)
def test_commands_that_only_read(machine: Machine, command: tuple[str, ...], kinds: tuple[str, ...]) -> None:
    wrong, reached = tried(machine, command, kinds)
    assert wrong == []
    assert reached == set(kinds)


def test_merging(machine: Machine) -> None:
    side_file = f"{machine.trace.name}.device_events.json"
    merged = ("merge-device-events", machine.trace.name, side_file, "-o", "../out/merged.json.gz")
    kinds = ("open", "read", "write", "close", "rename", "stat", "unlink")
    wrong, reached = tried(machine, (*merged, "--force"), kinds)
    assert wrong == []
    assert reached == set(kinds)


def test_merging_overwrites_nothing_unasked(machine: Machine) -> None:
    side_file = f"{machine.trace.name}.device_events.json"
    (machine.out / "merged.json").write_text("old")
    for fault in faults(("stat", "open", "read")):
        with injected(fault, machine.folder):
            done = machine.does("merge-device-events", machine.trace.name, side_file, "-o", "../out/merged.json")
        assert (done.code, contents(machine.out)) == (2, {"merged.json": b"old"}), str(fault)


def test_clearing_the_cache(machine: Machine) -> None:
    def keep() -> None:
        machine.forget()
        machine.does(*CHECK)

    kinds = ("list", "unlink")
    for command in (("cache", "clear"), ("cache", "info")):
        for fault in faults(kinds if "clear" in command else ("list",)):
            keep()
            with injected(fault, machine.cache):
                done = machine.does(*command)
            assert (done.code == 2) == fault.is_reached, f"{fault}: {done}"
            assert machine.does(*CHECK).code == 0


def test_this_package_s_own_code_need_not_be_seen(machine: Machine) -> None:
    machine.forget()
    usual = machine.does(*CHECK)
    for kind in ("list", "stat"):
        machine.forget()
        cache_module.code_state.cache_clear()
        fault = Fault(kind, 1, ERRORS[kind][0], lasts=True)
        with injected(fault, PACKAGE):
            assert machine.does(*CHECK) == usual
        assert fault.is_reached
    cache_module.code_state.cache_clear()


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is full")
@pytest.mark.parametrize("errors", [FULL, None])
def test_output_that_cannot_be_written(machine: Machine, errors: Path | None) -> None:
    """Not the code of findings that are there, nor Python's own words."""
    with FULL.open("wb") as full, (errors or machine.out / "said").open("wb") as said:
        done = subprocess.run(
            [sys.executable, "-c", "from tb_tidy_plugin.cli.main import script; script()", "rules", "--isolated"],
            stdout=full, stderr=said, check=False, env=same_imports(),
        )  # fmt: skip
    assert done.returncode == 2
    if errors is None:
        said_text = (machine.out / "said").read_text()
        error = "The output could not be written: No space left on device."
        assert said_text == f"tb-tidy: {error}\nFree disk space, or write elsewhere.\n"


def test_a_trace_that_shrinks_while_it_is_merged_is_not_written(machine: Machine) -> None:
    """Else it would come out without what was to be added."""
    end = event_list_of(machine.trace).end
    machine.trace.write_text('{"traceEvents": []}')
    with pytest.raises(TidyError, match="The trace changed while it was read"):
        write_merged(machine.trace, [{"ph": "X"}], end, machine.out / "merged.json")
    assert contents(machine.out) == {}
