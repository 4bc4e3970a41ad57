"""The kit without a GPU: a whole run on the CPU, what ends or breaks it, and archives that no run has written."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import tarfile
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.rulekit.testing.drawn import draw_into
from tests.accuracy.corpus import CORPUS
from tests.accuracy.page import percent
from tests.accuracy.statements import OF_RULES
from tests.gpu_proof import __main__ as kit
from tests.gpu_proof import archive, machine, pieces
from tests.gpu_proof.__main__ import DONE, MISSING, NOT_DONE, main
from tests.gpu_proof.archive import ArchiveError, pack, unpack
from tests.gpu_proof.corpus import pairs
from tests.gpu_proof.pieces import Piece, Plan, run
from tests.gpu_proof.report import PAGE, page, take_samples
from tests.gpu_proof.state import Machine, Result, State
from tests.gpu_proof.worker import Results, WorkerError, difference, started
from tests.support.recordings import ROOT

HERE = Machine(device="cpu", name="a | card", torch="2.13", python="3.12", cores=2)
TRACE = {"host_name": "workstation", "traceName": "old", "traceEvents": []}


def quiet(line: str) -> None:
    """Takes a line of progress."""


def no_clocks() -> str:
    return "1980 MHz"


def counted(made: list[str], name: str, error: BaseException | None = None) -> Piece:
    """A piece that writes its name down, and a file that it is interrupted over where there is an error."""

    def make(folder: Path, until: float) -> Result:
        made.append(name)
        assert not list(folder.iterdir()), "what an interrupted piece left is gone"
        (folder / "half").touch()
        if error is not None:
            raise error
        return Result(slow=[0.2], fixed=[0.1], difference=0.0, tolerance=0.1)

    return Piece(name, make)


class TestRun:
    def test_what_is_done_is_not_done_again(self, tmp_path: Path) -> None:
        made: list[str] = []
        state, chosen = State(tmp_path), [counted(made, "pair/a/small"), counted(made, "pair/b/small")]
        assert run(state, chosen, 60, no_clocks, quiet)
        assert run(state, chosen, 60, no_clocks, quiet)
        assert made == ["pair/a/small", "pair/b/small"]
        result = state.result("pair/a/small")
        assert result is not None
        assert result.clocks == ["1980 MHz", "1980 MHz"]
        assert result.is_equal

    def test_an_interrupted_piece_runs_again(self, tmp_path: Path) -> None:
        made: list[str] = []
        with pytest.raises(KeyboardInterrupt):
            run(State(tmp_path), [counted(made, "pair/a/small", KeyboardInterrupt())], 60, no_clocks, quiet)
        assert (tmp_path / "pair/a/small/half").exists()
        assert run(State(tmp_path), [counted(made, "pair/a/small")], 60, no_clocks, quiet)
        assert made == ["pair/a/small"] * 2

    def test_a_piece_that_breaks_is_a_result_and_the_others_run(self, tmp_path: Path) -> None:
        made: list[str] = []
        chosen = [counted(made, "pair/a/small", WorkerError("a broke: out of memory")), counted(made, "pair/b/small")]
        assert run(State(tmp_path), chosen, 60, no_clocks, quiet)
        result = State(tmp_path).result("pair/a/small")
        assert result is not None
        assert result.error == "a broke: out of memory"
        assert State(tmp_path).result("pair/b/small") is not None

    def test_a_piece_that_the_end_of_the_time_cuts_off_is_not_done(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pieces, "LEAST_LEFT_S", 0.01)

        def make(folder: Path, until: float) -> Result:
            time.sleep(max(until - time.monotonic(), 0) + 0.01)
            raise WorkerError("it did not answer in time")

        assert not run(State(tmp_path), [Piece("pair/a/small", make)], 0.05, no_clocks, quiet)
        assert State(tmp_path).result("pair/a/small") is None

    def test_no_piece_begins_without_time_for_it(self, tmp_path: Path) -> None:
        made: list[str] = []
        assert not run(State(tmp_path), [counted(made, "pair/a/small")], 1, no_clocks, quiet)
        assert not made

    def test_every_pair_size_rule_and_sample_is_a_piece_and_the_middle_size_goes_first(self) -> None:
        names = [piece.name for piece in pieces.pieces(Plan("cuda", ["small", "middle", "large"]))]
        kinds = [name.partition("/")[0] if name.count("/") == 1 else name.rpartition("/")[2] for name in names]
        assert [kind for kind, _ in itertools.groupby(kinds)] == ["middle", "benchmark", "sample", "small", "large"]
        assert len(set(names)) == len(names)
        assert sum(name.startswith("pair/") for name in names) == 3 * len(pairs())
        assert {f"benchmark/{pieces.name_of(each)}" for each in OF_RULES} < set(names)
        assert "sample/decoder_training_gpu_tidy" in names


@pytest.mark.slow
@pytest.mark.torch
def test_the_rehearsal_goes_from_programs_to_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pairs with all that is done on a GPU; the second call finds everything done."""
    monkeypatch.setattr(machine, "clocks", no_clocks)
    options = [
        "--device", "cpu", "--sizes", "tiny", "--turns", "2", "--turn-seconds", "0.01", "--state", f"{tmp_path}/state",
        "--out", f"{tmp_path}/out", "--only", "pair/hidden_copies/*", "pair/zero_grad_fill/*",
    ]  # fmt: skip
    assert main(options) == DONE
    results = sorted((tmp_path / "state").rglob("result.json"))
    before = [path.stat().st_mtime_ns for path in results]
    assert len(results) == 2
    assert main(options) == DONE
    assert [path.stat().st_mtime_ns for path in results] == before
    whole = [*options, "--report", f"{tmp_path}/out/archive", "--page", f"{tmp_path}/page.md"]
    assert main(whole) == MISSING
    whole[-3] = f"{tmp_path}/out/gpu-proof.tar"
    assert main(whole) == DONE
    text = (tmp_path / "page.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `zero_grad_fill`, tiny")]
    assert len(rows) == 2, "a prediction and a cause"
    assert "of 1 | 0 |" in next(line for line in text.splitlines() if line.startswith("| `zero-grad-memset`"))
    assert "the middle of 4 readings: 1980 MHz" in text


def test_a_run_that_is_killed_has_packed_what_was_done_a_minute_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    made: list[str] = []
    chosen = [counted(made, "pair/a/small"), counted(made, "pair/b/small", KeyboardInterrupt())]
    monkeypatch.setattr(pieces, "pieces", lambda plan: chosen)
    monkeypatch.setattr(kit, "PACKED_EVERY_S", 0.0)
    options = ["--device", "cpu", "--state", f"{tmp_path}/state", "--out", f"{tmp_path}/out"]
    with pytest.raises(KeyboardInterrupt):
        main(options)
    unpack(tmp_path / "out" / archive.NAME, tmp_path / "back")
    assert State(tmp_path / "back").result("pair/a/small") is not None
    made.clear()
    chosen[1] = counted(made, "pair/b/small")
    assert main([*options, "--state", f"{tmp_path}/fresh", "--resume", f"{tmp_path}/out"]) == DONE
    assert made == ["pair/b/small"], "on a fresh machine it goes on from there"


@pytest.mark.torch
def test_a_process_that_begins_by_itself_computes_the_same_and_one_that_breaks_says_so(tmp_path: Path) -> None:
    (pair,) = (each for each in pairs() if each.name == "full_vocabulary_sort")
    until = time.monotonic() + 120
    results = []
    for start in ("forkserver", "spawn"):
        with started(pair, "slow", tmp_path, "cpu", "tiny", start) as worker:
            results.append(worker.ask(Results(), until))
    assert difference(*results) == 0
    broken = replace(pair, sizes={"tiny": None})
    with (
        started(broken, "slow", tmp_path, "cpu", "tiny") as worker,
        pytest.raises(WorkerError, match=r"(?s)full_vocabulary_sort/slow.py broke:.*TypeError"),
    ):
        worker.ask(Results(), until)


def test_the_page_takes_no_rehearsal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = PAGE.read_text("utf-8")
    State(tmp_path / "state").made_on(HERE)
    pack(tmp_path / "state", tmp_path)
    assert main(["--report", f"{tmp_path}/{archive.NAME}"]) == MISSING
    assert "rehearsal" in capsys.readouterr().err
    assert PAGE.read_text("utf-8") == before


def test_a_run_is_of_one_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    State(tmp_path).made_on(HERE)
    assert main(["--device", "cpu", "--state", f"{tmp_path}", "--out", f"{tmp_path}/out", "--only", "none"]) == MISSING
    assert "is of a | card" in capsys.readouterr().err


def test_a_run_goes_on_from_an_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is in the archive is there before the machine is compared."""
    pytest.importorskip("torch")
    filled(tmp_path / "state")
    (path,) = pack(tmp_path / "state", tmp_path / "out")
    options = ["--device", "cpu", "--state", f"{tmp_path}/fresh", "--out", f"{tmp_path}/out", "--only", "none"]
    assert main([*options, "--resume", f"{tmp_path}/absent.tar"]) == MISSING
    assert "absent.tar" in capsys.readouterr().err
    assert main([*options, "--resume", str(path)]) == MISSING
    assert "is of a | card" in capsys.readouterr().err
    assert State(tmp_path / "fresh").result("pair/a/small") == Result(error="none")


def test_the_end_of_the_time_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    options = ["--device", "cpu", "--minutes", "0", "--state", f"{tmp_path}/state", "--out", f"{tmp_path}/out"]
    assert main(options) == NOT_DONE
    assert "call again" in capsys.readouterr().err


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(machine, "NEEDED", ("numpy", "no-such-package"))
    assert main(["--device", "cpu"]) == MISSING
    assert "Missing here: no-such-package." in capsys.readouterr().err


def test_wheels_of_what_is_not_here_are_installed_without_an_index(tmp_path: Path) -> None:
    (tmp_path / "numpy-1.0-py3-none-any.whl").write_bytes(b"not a wheel, and not needed")
    with zipfile.ZipFile(tmp_path / "absent_package-1.0-py3-none-any.whl", "w") as wheel:
        information = "absent_package-1.0.dist-info"
        wheel.writestr("absent_package.py", "")
        wheel.writestr(f"{information}/METADATA", "Metadata-Version: 2.1\nName: absent-package\nVersion: 1.0\n")
        wheel.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{information}/RECORD", "")
    assert machine.install(tmp_path, tmp_path / "site") == ""
    assert (tmp_path / "site" / "absent_package.py").exists()
    (tmp_path / "broken_package-1.0-py3-none-any.whl").write_bytes(b"not a wheel")
    assert "broken_package" in machine.install(tmp_path, tmp_path / "site")


class TestPage:
    def test_the_page_without_an_archive_names_every_pair(self) -> None:
        text = page(None)
        assert "Nothing has been measured" in text
        assert all(f"| `{pair.name}` |" in text for pair in pairs())

    def test_the_committed_page_has_the_programs_that_are_there(self) -> None:
        programs = page(None).partition("## Programs")[2]
        assert PAGE.read_text("utf-8").partition("## Programs")[2] == programs, "run `make gpu-proof-report`"

    def test_figures_are_those_of_the_recordings_and_times(self, tmp_path: Path) -> None:
        """Recordings drawn for the corpus: the rule finds its pattern in the slow one, nothing in the fixed one."""
        state = State(tmp_path)
        state.made_on(HERE)
        folder = state.begin("pair/pageable_copy/middle")
        for kind in ("slow", "fixed"):
            (folder / kind).mkdir()
            draw_into(folder / kind, (CORPUS / "pageable-h2d-copy" / f"{kind}.txt").read_text("utf-8"))
        result = Result(slow=[0.2, 0.3, 0.2], fixed=[0.1, 0.1, 0.2], difference=0.0, tolerance=0.1)
        state.end("pair/pageable_copy/middle", result)
        (profile,) = analyze_path(folder / "slow", Job()).runs[0].profiles
        (saving,) = (each.saving for each in profile.findings if each.rule == "pageable-h2d-copy")
        assert saving is not None
        assert profile.step_ns is not None
        left = 1 - saving.expected_ns / profile.step_ns
        text = page(state)
        row = next(line for line in text.splitlines() if line.startswith("| `pageable_copy`, middle")).split(" | ")
        assert row[2:4] == ["2.00", "1.00 to 3.00"]
        errors = sorted((left * 2 - 1, left * 3 - 1, left - 1))
        assert row[6] == f"{100 * errors[1]:+.0f} %"
        assert "| `pageable-h2d-copy` | 1 of 1 | 0 | 100 % | 100 % | 0 |" in text
        assert f"the median error is {percent(abs(errors[1]))} (aim: ≤ 5 %)" in text
        assert f"By size: middle {percent(abs(errors[1]))} of 1." in text

    def test_results_that_differ_count_for_nothing(self, tmp_path: Path) -> None:
        state = State(tmp_path)
        state.made_on(HERE)
        state.begin("pair/one_stream/large")
        state.end("pair/one_stream/large", Result(slow=[0.2], fixed=[0.1], difference=0.5, tolerance=0.1))
        text = page(state)
        assert "- `one_stream`, large: results differ by 0.5" in text
        assert "- `one_stream`, small: was not run" in text
        assert "a \\| card" in text, "what an archive says is not markup"


class TestArchive:
    def test_it_comes_back_whole(self, tmp_path: Path) -> None:
        filled(tmp_path / "state")
        (path,) = pack(tmp_path / "state", tmp_path / "out")
        unpack(path, tmp_path / "back")
        assert State(tmp_path / "back").result("pair/a/small") == Result(error="none")
        assert not (tmp_path / "back" / "site").exists(), "what was installed stays"

    def test_parts_are_put_together(self, tmp_path: Path) -> None:
        filled(tmp_path / "state")
        parts = pack(tmp_path / "state", tmp_path / "out", part_bytes=4096)
        assert len(parts) > 1
        for given in (parts[0], tmp_path / "out"):
            unpack(given, tmp_path / "back")
            assert State(tmp_path / "back").machine == HERE

    def test_what_has_no_room_is_named(self, tmp_path: Path) -> None:
        filled(tmp_path / "state")
        (path,) = pack(tmp_path / "state", tmp_path / "out", most_bytes=60_000)
        assert path.stat().st_size <= 60_000
        unpack(path, tmp_path / "back")
        assert (tmp_path / "back" / archive.LEFT_OUT).read_text() == "pair/a/small/slow/x.pt.trace.json.gz"
        assert State(tmp_path / "back").result("pair/a/small") is not None

    @pytest.mark.parametrize("name", ["../result.json", "/tmp/result.json", "a/../../result.json", "run.sh"])
    def test_files_outside_and_other_files_are_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(ArchiveError):
            unpack(forged(tmp_path, lambda tar: tar.addfile(tarfile.TarInfo(name))), tmp_path / "back")
        assert not list(tmp_path.rglob("result.json"))

    def test_links_are_refused(self, tmp_path: Path) -> None:
        link = tarfile.TarInfo("result.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        with pytest.raises(ArchiveError, match="not a file of a run"):
            unpack(forged(tmp_path, lambda tar: tar.addfile(link)), tmp_path / "back")

    def test_what_is_too_large_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(archive, "MOST_FILE_BYTES", 10)
        large = tarfile.TarInfo("result.json")
        large.size = 11
        with pytest.raises(ArchiveError, match="larger than"):
            unpack(forged(tmp_path, lambda tar: tar.addfile(large, io.BytesIO(bytes(11)))), tmp_path / "back")
        monkeypatch.setattr(archive, "MOST_BYTES", 10)
        with pytest.raises(ArchiveError, match="larger than"):
            unpack(forged(tmp_path, lambda tar: None), tmp_path / "back")

    def test_another_file_is_no_archive(self, tmp_path: Path) -> None:
        (tmp_path / "other").write_bytes(b"text" * 1000)
        with pytest.raises(ArchiveError, match="is not an archive"):
            unpack(tmp_path / "other", tmp_path / "back")

    def test_a_forged_result_is_refused(self, tmp_path: Path) -> None:
        folder = State(tmp_path).begin("pair/one_stream/large")
        (folder / "result.json").write_text('{"slow": [-1]}')
        with pytest.raises(msgspec.ValidationError):
            State(tmp_path).result("pair/one_stream/large")


class TestSamples:
    def test_a_trace_takes_its_place_beside_the_script(self, tmp_path: Path) -> None:
        state = sampled(tmp_path / "state", TRACE)
        (taken,) = take_samples(state, tmp_path / "runs")
        assert json.loads(gzip.decompress(taken.read_bytes()))["host_name"] == "workstation"
        script = ROOT / "sample_runs/decoder_training_gpu_tidy/train.py"
        assert (taken.parent / "train.py").read_bytes() == script.read_bytes()

    def test_a_trace_of_a_pytorch_that_names_no_host(self, tmp_path: Path) -> None:
        state = sampled(tmp_path / "state", {name: TRACE[name] for name in ("traceName", "traceEvents")})
        (taken,) = take_samples(state, tmp_path / "runs")
        assert json.loads(gzip.decompress(taken.read_bytes())) == {"traceName": taken.name, "traceEvents": []}

    def test_a_trace_that_names_a_path_is_refused(self, tmp_path: Path) -> None:
        state = sampled(tmp_path / "state", {**TRACE, "where": "/home/me/x.py"})
        with pytest.raises(ValueError, match="absolute paths"):
            list(take_samples(state, tmp_path / "runs"))
        assert not (tmp_path / "runs").exists()


def filled(folder: Path) -> None:
    """A run of one piece with a trace, and what was installed for it."""
    state = State(folder)
    state.made_on(HERE)
    traces = state.begin("pair/a/small") / "slow"
    traces.mkdir()
    (traces / "x.pt.trace.json.gz").write_bytes(bytes(50_000))
    state.end("pair/a/small", Result(error="none"))
    (folder / "site").mkdir()
    (folder / "site" / "installed.py").touch()


def forged(folder: Path, fill: Callable[[tarfile.TarFile], object]) -> Path:
    """An archive with what `fill` adds to it."""
    with tarfile.open(folder / "forged.tar", "w") as tar:
        fill(tar)
    return folder / "forged.tar"


def sampled(folder: Path, trace: Mapping[str, object]) -> State:
    """A run with this trace of a sample."""
    state = State(folder)
    place = state.begin("sample/decoder_training_gpu_tidy")
    (place / "workstation.17.pt.trace.json.gz").write_bytes(gzip.compress(json.dumps(trace).encode()))
    return state
