"""Files that would take all memory or all time: refused, or read within bounds that are written down."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.configuration.checks import WantedRules, job_of
from tb_tidy_plugin.configuration.files import Configuration, read_configuration
from tb_tidy_plugin.configuration.limits import LIMITS, limits_in
from tb_tidy_plugin.system.allowance import ScaledBound
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.limits import FREE_BYTES, LONGEST_EVENT_NAME, Limits, held_to
from tb_tidy_plugin.words.errors import ConfigurationError, TraceError
from tests.support.recordings import ROOT
from tests.support.written import event, kineto_text, write

ONE = kineto_text([event("aten::mm", 0, 1)])
MB = 10**6


def bomb(path: Path, megabytes: int) -> Path:
    """A gz whose text is one event for each MB and then spaces, which shrink a thousandfold."""
    with gzip.open(path, "wb", 9) as file:
        file.write(b'{"traceEvents":[')
        for at in range(megabytes):
            file.write(json.dumps(event("aten::mm", at, 1)).encode() + b"," + b" " * MB)
        file.write(json.dumps(event("aten::mm", megabytes, 1)).encode() + b"]}")
    return path


class TestText:
    def test_gz_that_inflates_beyond_all_recordings_is_refused(self, tmp_path: Path) -> None:
        path = bomb(tmp_path / "w.pt.trace.json.gz", FREE_BYTES // MB + 8)
        with pytest.raises(TraceError, match="more than 300 times its size, the limit `max-inflation`") as caught:
            read_trace(path)
        assert "--max-inflation" in caught.value.advice

    def test_little_text_is_read_however_much_it_shrank(self, tmp_path: Path) -> None:
        assert len(read_trace(bomb(tmp_path / "w.pt.trace.json.gz", 20))) == 21

    def test_the_limit_can_be_raised(self, tmp_path: Path) -> None:
        path = bomb(tmp_path / "w.pt.trace.json.gz", FREE_BYTES // MB + 8)
        assert len(read_trace(path, limits=Limits(inflation=2000))) == FREE_BYTES // MB + 9

    @pytest.mark.parametrize("name", ["w.pt.trace.json", "w.pt.trace.json.gz"])
    def test_more_text_than_is_allowed_is_refused_packed_or_not(self, tmp_path: Path, name: str) -> None:
        path = write(tmp_path / name, ONE + " " * 2 * MB)
        with pytest.raises(TraceError, match=r"more than 0\.001 GB of text, the limit `max-text-gb`"):
            read_trace(path, limits=Limits(text_bytes=MB))

    def test_each_member_of_a_gz_counts(self, tmp_path: Path) -> None:
        path = tmp_path / "w.pt.trace.json.gz"
        path.write_bytes(gzip.compress(ONE.encode()) + gzip.compress(b" " * 1000) * 3)
        with pytest.raises(TraceError, match="max-text-gb"):
            read_trace(path, limits=Limits(text_bytes=len(ONE) + 2500))

    @pytest.mark.parametrize("blank", [" ", "\n", "\t\r\n "])
    def test_a_list_of_blanks_is_refused_for_its_size(self, tmp_path: Path, blank: str) -> None:
        """It was said not to end, and to have to be recorded again."""
        path = tmp_path / "w.pt.trace.json.gz"
        path.write_bytes(gzip.compress(b'{"traceEvents":[' + blank.encode() * (80 * MB // len(blank)) + b"]}"))
        with pytest.raises(TraceError, match="`max-inflation`"):
            read_trace(path)

    def test_blanks_before_an_event_are_not_a_part_of_it(self, tmp_path: Path) -> None:
        events = (" " * 5 * MB).join(["", json.dumps(event("a", 0, 1)) + ",", json.dumps(event("b", 2, 1))])
        table = read_trace(write(tmp_path / "w.pt.trace.json", f'{{"traceEvents":[{events}{" " * 5 * MB}]}}'))
        assert ([table.names[name] for name in table.name], table.partial) == (["a", "b"], None)

    def test_an_event_that_does_not_end_is_said(self, tmp_path: Path) -> None:
        events = f"{json.dumps(event('a', 0, 1))},{json.dumps(event('b', 2, 1, args={'x': 'y' * 20 * MB}))}"
        table = read_trace(write(tmp_path / "w.pt.trace.json", f'{{"traceEvents":[{events}]}}'))
        assert [table.names[name] for name in table.name] == ["a"]
        assert table.partial == "No event ends within 4 MiB"

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "w.pt.trace.json")
        with pytest.raises(TraceError, match="a pipe or a device"):
            read_trace(tmp_path / "w.pt.trace.json")


class TestConfigured:
    def test_by_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "tb-tidy.toml").write_text("[limits]\nmax-text-gb = 2\nmax-inflation = 50\n")
        job = job_of(read_configuration(tmp_path / "tb-tidy.toml"))
        assert job.limits == Limits(text_bytes=2 * 10**9, inflation=50)

    def test_the_command_line_goes_before_it(self, tmp_path: Path) -> None:
        (tmp_path / "tb-tidy.toml").write_text("[limits]\nmax-text-gb = 2\nmax-inflation = 50\n")
        wanted = WantedRules(limits={"max-text-gb": 3})
        job = job_of(read_configuration(tmp_path / "tb-tidy.toml"), wanted)
        assert job.limits == Limits(text_bytes=3 * 10**9, inflation=50)

    def test_what_an_analysis_may_take_is_one_number_for_all_traces(self, tmp_path: Path) -> None:
        file = tmp_path / "tb-tidy.toml"
        file.write_text("[limits]\nmax-processor-s = 5\nmax-wall-s = 60\nmax-memory-gb = 0.5\n")
        expected = Limits(processor_s=ScaledBound(5), wall_s=ScaledBound(60), memory_bytes=ScaledBound(5e8))
        assert limits_in(file) == job_of(read_configuration(file)).limits == expected
        assert limits_in(None) == Limits()

    @pytest.mark.parametrize(
        ("key", "value"),
        [("max-text-mb", 1), ("max-text-gb", 0), ("max-inflation", float("nan")), ("max-text-gb", 10**400)],
    )
    def test_what_is_no_limit_is_said(self, key: str, value: float) -> None:
        with pytest.raises(ConfigurationError, match=key):
            job_of(Configuration(), WantedRules(limits={key: value}))

    @pytest.mark.parametrize("command", ["check", "annotate", "summary"])
    def test_by_the_flag(self, tmp_path: Path, command: str) -> None:
        write(tmp_path / "w.pt.trace.json", ONE)
        done = CliRunner().invoke(commands, [command, str(tmp_path), "--isolated", "--max-text-gb", "1e-8"])
        assert done.exit_code == 2
        assert "the limit `max-text-gb`" in " ".join(done.output.split())

    @pytest.mark.parametrize("command", ["annotate", "bench", "check", "compare", "summary"])
    def test_each_key_is_a_flag_of_each_command_that_reads_traces(self, command: str) -> None:
        shown = CliRunner().invoke(commands, [command, "--help"]).output
        assert [key for key in LIMITS if f"--{key} " not in shown] == []


def test_a_name_is_kept_as_far_as_any_real_one_goes(tmp_path: Path) -> None:
    names = ["a" * LONGEST_EVENT_NAME, "b" * (LONGEST_EVENT_NAME + 1), "c" * MB]
    path = write(tmp_path / "w.json", kineto_text([event(name, at, 1) for at, name in enumerate(names)]))
    read = read_trace(path).names
    assert [len(name) for name in read if len(name) > 10] == [LONGEST_EVENT_NAME] * 3
    assert [name for name in read if name.endswith("…")] == [f"{each[: LONGEST_EVENT_NAME - 1]}…" for each in names[1:]]


def test_metadata_beyond_all_bounds_is_unknown(tmp_path: Path) -> None:
    footer = json.dumps({"distributedInfo": {"rank": 1 << 70, "backend": "x" * MB}})[1:-1]
    metadata = read_trace(write(tmp_path / "w.json", kineto_text([event("a", 0, 1)], footer))).metadata
    assert (metadata.rank, metadata.backend) == (None, None)


HELD = """
import sys, threading, time
from pathlib import Path
from tb_tidy_plugin.system.allowance import enforce
from tb_tidy_plugin.trace.limits import MEMORY_BYTES, PROCESSOR_S, WALL_S, ScaledBound, Limits, held_to
enforce(raising=True)
"""


def held(code: str, *arguments: str | Path) -> str:
    """The last line of what a process complains of that runs `code`."""
    command = [sys.executable, "-c", HELD + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return "".join(done.stderr.splitlines()[-1:])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit less")
class TestAllowance:
    """What an analysis may take, held by the system."""

    def test_recordings_are_far_from_it(self) -> None:
        """A quarter of it is enough."""
        code = """
from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.trace.files import find_traces
[file] = find_traces(Path(sys.argv[1]))
quarters = [ScaledBound(*(part / 4 for part in each)) for each in (PROCESSOR_S, WALL_S, MEMORY_BYTES)]
with held_to(Limits(16e9, 300, *quarters)):
    read_file(file, Job()).report
"""
        assert held(code, ROOT / "sample_runs" / "image_classifier_untidy") == ""

    @pytest.mark.parametrize(
        ("own", "does", "error"),
        [
            ("processor_s=ScaledBound(1)", "while True: pass", "took more processor time than 1 s, the limit"),
            ("wall_s=ScaledBound(0.1)", "time.sleep(60)", "took longer than 0.1 s, the limit `max-wall-s`."),
            (
                "memory_bytes=ScaledBound(1e8)",
                "bytes(10**9)",
                "needs more memory than 100 MB, the limit `max-memory-gb`.",
            ),
            (
                "memory_bytes=ScaledBound(1e8, 0.5)",
                "while True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
                "needs more memory than 100 MB and 0.5 bytes for each byte of text, the limit `max-memory-gb`.",
            ),
        ],
    )
    def test_work_that_takes_more_is_said_with_what_raises_the_limit(self, own: str, does: str, error: str) -> None:
        said = held(f"with held_to(Limits({own}), 'timeline'):\n {does}")
        assert f"TraceError: The timeline {error}" in said
        assert "`[limits]` in the configuration, which TensorBoard takes by `--torchtidy_config`" in said

    def test_no_analysis_takes_all_that_the_machine_has_free(self, tmp_path: Path) -> None:
        """A text of 10 GB in a file of 33 MB was allowed 240 GB, on any machine."""
        (tmp_path / "meminfo").write_text("MemAvailable: 200000 kB\n", "ascii")
        code = """
from functools import partial
from tb_tidy_plugin.system import allowance
allowance.free_bytes = partial(allowance.free_bytes, Path(sys.argv[1]), Path(sys.argv[1]))
with held_to(Limits(memory_bytes=ScaledBound(float(sys.argv[2])))):
    bytes(10**9)
"""
        said = held(code, tmp_path, "1e12")
        assert "The analysis needs more memory than 154 MB, its share of what this machine had free." in said
        assert "--jobs 1" in said
        assert "needs more memory than 100 MB, the limit `max-memory-gb`." in held(code, tmp_path, "1e8")

    @pytest.mark.parametrize("form", ["plain", "gz", "cached"])
    def test_who_reads_more_text_may_take_more(self, tmp_path: Path, form: str) -> None:
        text = kineto_text([event("aten::mm", at, 1) for at in range(40_000)])
        path = write(tmp_path / ("w.json.gz" if form == "gz" else "w.json"), text)
        code = """
import resource
from tb_tidy_plugin.trace import beside, cache, cached_columns
cached_columns.WORTH_KEEPING = 0
kept = cache.Cache(Path(sys.argv[1]).parent / "cache") if sys.argv[2] == "cached" else cache.NOWHERE
if kept.folder:
    beside.read_with_side_files(Path(sys.argv[1]), cache=kept)
with held_to(Limits(memory_bytes=ScaledBound(1e9, 1000))):
    before = resource.getrlimit(resource.RLIMIT_DATA)[0]
    beside.read_with_side_files(Path(sys.argv[1]), cache=kept)
    raise SystemExit(str((resource.getrlimit(resource.RLIMIT_DATA)[0] - before) // 1000))
"""
        assert int(held(code, path, form)) == pytest.approx(len(text), rel=0.5)

    def test_other_errors_stay_what_they_are(self) -> None:
        assert held("with held_to(Limits()):\n raise RuntimeError('x')") == "RuntimeError: x"

    def test_nobody_is_told_of_a_limit_where_there_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            "tb_tidy_plugin.system.allowance._here.is_enforcing", False
        )  # a command that ran here set it
        with pytest.raises(MemoryError), held_to(Limits()):
            raise MemoryError


# The whole analysis, in a process of its own

ANALYSE = """
import re, resource, sys
from tb_tidy_plugin.plugin.analysis_worker import first_findings, result_of
from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.trace.files import find_traces
import msgspec
(file,) = find_traces(__import__("pathlib").Path(sys.argv[1]))
analysis = read_file(file, Job())
size = len(msgspec.json.encode(result_of(analysis, first_findings(analysis))))
failed = [each.rule for each in analysis.report.outcomes if each.status == "failed"]
peak_mb = int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) / 1000  # since the exec
processor_s = resource.getrusage(resource.RUSAGE_SELF).ru_utime
print(msgspec.json.encode([failed, len(analysis.profile.table), peak_mb, processor_s, size]).decode())
"""
BASE_MB, PER_TEXT = 160.0, 24.0  # docs/limits.md
MOST_S = 60.0


def many(events: Iterable[dict[str, Any]]) -> Callable[[], list[dict[str, Any]]]:
    return lambda: list(events)


def kernel(name: str, at: float, **args: object) -> dict[str, Any]:
    return event(name, at, 0.5, cat="kernel", args=args)


LARGE = {
    "50,000 names": many(event(f"aten::op{at}", at, 0.5) for at in range(50_000)),
    "50,000 frames with names of their own": many(
        event(f"f{at}.py({at}): g", at, 0.5, cat="python_function", args={"Python id": at}) for at in range(50_000)
    ),
    "names of 1 MB": many(event(chr(65 + at) * MB, at, 0.5) for at in range(20)),
    "calls 100,000 deep": many(event("aten::mm", at / 10, 20_000 - at / 10) for at in range(100_000)),
    "10,000 threads": many(event("aten::mm", at % 50, 0.5, tid=at // 2) for at in range(20_000)),
    "5,000 streams": many(kernel("k", at / 200, stream=at, device=0, correlation=at) for at in range(5_000)),
    "a million devices": many(kernel("k", at / 200, stream=7, device=at * 50) for at in range(20_000)),
    "one id for all": many(
        event("aten::mm", at, 5, args={"External id": 1, "correlation": 1, "Ev Idx": 1, "Sequence number": 1})
        for at in range(50_000)
    ),
    "frames that are each other's parents": many(
        event(f"a.py({at + 1}): f", at, 100 - 2 * at, cat="python_function",
              args={"Python id": at, "Python parent id": (at + 1) % 40}) for at in range(40)
    ),
    "memory at the edge of int64": many(
        {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": at, "args": {
            "Bytes": (1 << 62) * (-1) ** at, "Addr": at % 3, "Device Type": at % 5, "Device Id": at % 1000,
            "Total Allocated": 1 << 62, "Total Reserved": -5}} for at in range(20_000)
    ),
    "shapes without measure": many(
        event("aten::mm", at, 1, args={"Input Dims": [[1 << 62] * 2, [1 << 62, -5]], "Input type": ["float"] * 2})
        for at in range(2_000)
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory otherwise")
@pytest.mark.parametrize("case", LARGE)
def test_memory_and_time_are_bounded_by_the_size_of_the_text(tmp_path: Path, case: str) -> None:
    path = write(tmp_path / "w.1.pt.trace.json", json.dumps({"traceEvents": LARGE[case]()}))
    command = [sys.executable, "-c", ANALYSE, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    failed, events, peak_mb, processor_s, result_bytes = json.loads(done.stdout)
    text_mb = path.stat().st_size / MB
    assert failed == []
    assert events > 0
    assert peak_mb <= BASE_MB + PER_TEXT * text_mb
    assert processor_s <= MOST_S
    assert result_bytes <= 64 * MB
