"""What is fuzzed: each kind of file that somebody else may have written, and what is done with one.

A harness takes the file's bytes through all that we do with such a file. It answers where they were used, raises
`TidyError` where they were refused in words, and whatever else it raises is a fault.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import cast

import msgspec

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.lines import line_costs, operator_places
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.benchmarks import store
from tb_tidy_plugin.compare.baseline import baseline_of, new_findings, read_baseline
from tb_tidy_plugin.configuration.checks import job_of
from tb_tidy_plugin.configuration.files import OWN_FILE, PROJECT_FILE, read_configuration
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import MuteChange, Mutes
from tb_tidy_plugin.plugin.mutes import NAME as MUTES
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.json import to_json
from tb_tidy_plugin.report.model import Report
from tb_tidy_plugin.rulekit import Benchmark
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.files import ENCODINGS, encoding_of, lines_of
from tb_tidy_plugin.sources.lookup import sources_of
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace import cached_columns
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.cache import Cache
from tb_tidy_plugin.trace.external import infer_activity
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.merge import device_events, event_list_of, samples_during, write_merged
from tb_tidy_plugin.trace.reader import read_blocks
from tb_tidy_plugin.trace.side_file import read_device_events
from tb_tidy_plugin.words.errors import TidyError
from tests.fuzz import members
from tests.fuzz.languages import CONFIGURATIONS, PYTHON, TOML
from tests.fuzz.mutations import Change, mutated
from tests.fuzz.mutations import seeds as traces
from tests.fuzz.pipeline import UnsoundError, check, check_file
from tests.fuzz.program import FILE, SOURCE, everything, recording, write_program
from tests.support.measurements import A100, measurement
from tests.support.whole_run import capture_document, device_document, trace_text, write_run

Take = Callable[[bytes], int]
"""Takes a text through everything; how many bytes there were to be worked on."""


@dataclass(frozen=True)
class Harness:
    """One kind of file.

    Attributes:
        seeds: some to begin with.
        change: breaks one.
        prepare: makes what takes one, which writes into the folder that it is given.
        about: modules whose lines tell whether a text is a new one, by the ends of their paths.
    """

    seeds: Callable[[], Sequence[bytes]]
    change: Change
    prepare: Callable[[Path], Take]
    about: tuple[str, ...]


class Pieces:
    """A file on a store that hands out few bytes at a time."""

    def __init__(self, content: bytes, most: int) -> None:
        self._left, self._most = content, most

    def open(self, mode: str = "rb") -> Pieces:
        """Itself."""
        return self

    def read(self, size: int) -> bytes:
        """The next bytes."""
        size = min(size, self._most)
        piece, self._left = self._left[:size], self._left[size:]
        return piece

    def __enter__(self) -> Pieces:  # noqa: PYI034 - Self is of Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        """Nothing to close."""


def _trace(folder: Path) -> Take:
    def take(text: bytes) -> int:
        report = check(text, folder)
        if not report.runs:
            raise TidyError(report.problems[0].error, report.problems[0].advice)
        return len(text)

    return take


def _trace_seeds() -> list[bytes]:
    return [*traces(recorded=False), trace_text().encode(), recording(), everything(1), everything(2)]


def _gz(folder: Path) -> Take:
    def take(packed: bytes) -> int:
        most = random.Random(packed[-4:]).choice((1 << 20, 64, 7))
        place = cast("Callable[[], Path]", partial(Pieces, packed, most))
        wanted = members.inflated(packed) if packed.startswith(members.MAGIC) else packed
        text = b"".join(read_blocks(place()))
        if wanted is not None and text != wanted:
            raise UnsoundError(f"{len(text)} bytes of text, and {len(wanted)} by zlib")
        if packed[-3:] < b"@":  # a quarter of them: what the text holds is another harness's
            read_trace(place())
        return len(text)

    return take


def _beside(suffix: str, then: Callable[[Path], object], folder: Path) -> Take:
    trace = write_run(folder / "run")
    file = trace.with_name(trace.name + suffix)

    def take(text: bytes) -> int:
        file.write_bytes(text)
        notes = read_with_side_files(trace).metadata.notes
        if refused := [note for note in notes if f"`{file.name}` is not used" in note]:
            raise TidyError(refused[0], "")
        check_file(trace)
        then(trace)
        return len(text)

    return take


def _merged(trace: Path) -> None:
    """Merges the side file into the trace, which then is read as one."""
    table, place = read_trace(trace), event_list_of(trace)
    given = read_device_events(trace.with_name(f"{trace.name}.device_events.json"))
    activity = infer_activity(table, given, "side file")
    memory = samples_during(table, activity, given.memory, place.base_ns)
    out = trace.parents[1] / "merged.json"
    write_merged(trace, device_events(table, activity, memory, place.base_ns), place.end, out)
    if len(read_trace(out)) < len(table):
        raise UnsoundError("the merged trace lost events")


def _columns(folder: Path) -> Take:
    """An entry whose content was changed, and whose head fits it; keys are those that reading asks for."""
    trace, cache = write_run(folder / "run"), Cache(folder / "cache")
    cached_columns.WORTH_KEEPING = 0
    key = cached_columns.columns_key(trace)
    assert key is not None

    def take(content: bytes) -> int:
        cache.keep(cached_columns.COLUMNS, key, [content])
        if cached_columns.load_columns(cache, key) is None:
            raise TidyError("The entry is passed over.", "")
        report = analyze_path(trace, Job(cache=Cache(folder / "cache")))
        if any(outcome.status == "failed" for outcome in report.runs[0].profiles[0].outcomes):
            raise UnsoundError("a rule failed")
        return len(content)

    return take


def _columns_seeds() -> list[bytes]:
    return list(_entries("columns").values())


def _entries(kind: str) -> dict[str, bytes]:
    """The contents of entries that our own code writes, by their keys; of no folder."""
    with tempfile.TemporaryDirectory() as name:
        trace, cache = write_run(Path(name, "run")), Cache(Path(name, "cache"))
        cached_columns.WORTH_KEEPING = 0
        analyze_path(trace, Job(cache=cache))
        keys = [entry.path.stem.partition("-")[2] for entry in cache.entries() if entry.kind == kind]
        return {key: bytes(cache.load(kind, key) or b"").replace(name.encode(), b"/tmp") for key in keys}


def _report_seeds() -> list[bytes]:
    """Without the states of sources, which no other folder has."""
    return [re.sub(rb'"sources":\{[^}]*\}', b'"sources":{}', content) for content in _entries("report").values()]


def _report(folder: Path) -> Take:
    """An entry with a whole report. It is this user's own: what it says is shown, as long as it has the form of one."""
    trace, cache = write_run(folder / "run"), Cache(folder / "cache")
    job = Job(cache=cache)
    usual = analyze_path(trace, job)
    (key,) = [entry.path.stem.partition("-")[2] for entry in cache.entries() if entry.kind == "report"]

    def take(content: bytes) -> int:
        cache.keep("report", key, [content])
        found = analyze_path(trace, job)
        if found == usual:
            raise TidyError("The entry is passed over.", "")
        if decode(to_json(found), Report) != found:
            raise UnsoundError("the report is another one after it was read back")
        return len(content)

    return take


def _entry(folder: Path) -> Take:
    """A file in the cache's folder, head and all."""
    cache = Cache(folder / "cache")
    cache.keep("report", "0" * 40, [b"content"])
    (entry,) = cache.entries()

    def take(file: bytes) -> int:
        entry.path.write_bytes(file)
        content = cache.load("report", "0" * 40)
        if content is None:
            raise TidyError("The entry is passed over.", "")
        if bytes(content) not in file:
            raise UnsoundError("other content than the file's")
        return len(file)

    return take


def _entry_seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as name:
        cache = Cache(Path(name, "cache"))
        for number, content in enumerate((b"", b"content", bytes(range(256)) * 4)):
            cache.keep("report", f"{number:040}", [content])
        return [entry.path.read_bytes() for entry in cache.entries()]


def _mutes(folder: Path) -> Take:
    mutes, file = MuteStore([Logdir(str(folder))]), folder / MUTES
    change = MuteChange(mute=Mutes(findings=["a1"], rules=["b"]), unmute=Mutes(findings=["c"], rules=[]))

    def take(text: bytes) -> int:
        file.write_bytes(text)
        before = mutes.answer().mutes
        after = mutes.change(change).mutes
        if set(after.findings) != {*before.findings, "a1"} - {"c"}:
            raise UnsoundError(f"{before.findings} became {after.findings}")
        return len(text)

    return take


def _measurements(folder: Path) -> Take:
    trace = folder / "w.pt.trace.json"
    file = store.beside(trace)
    assert isinstance(file, Path)
    one = measurement()
    pair = Benchmark(one.before, one.after, one.setup, of_events=True)

    def take(text: bytes) -> int:
        file.write_bytes(text)
        known = store.Measurements(trace, "cpu")
        known.of(one.rule, pair)
        store.save_beside(trace, [measurement(on=A100)])
        found, problem = store.read_beside(trace)
        if problem or measurement(on=A100) not in found:
            raise UnsoundError(f"what was saved is not found: {problem}")
        return len(text)

    return take


def _measurements_seeds() -> list[bytes]:
    saved = store.SavedMeasurements(version=1, measurements=[measurement(), measurement(on=A100, doubts=("Why.",))])
    return [msgspec.json.encode(saved), msgspec.json.format(msgspec.json.encode(saved), indent=1)]


def _configuration(folder: Path) -> Take:
    files = [folder / OWN_FILE, folder / PROJECT_FILE]

    def take(text: bytes) -> int:
        refused = []
        for file in files:
            file.write_bytes(text)
            try:
                job_of(read_configuration(file))
            except TidyError as problem:
                refused.append(problem)
        if len(refused) == len(files):
            raise refused[0]
        return len(text)

    return take


def _source(folder: Path) -> Take:
    trace = write_program(folder / "run")
    (file,) = find_traces(trace)
    profile = Profile(read_with_side_files(trace))

    def take(text: bytes) -> int:
        (trace.parent / FILE).write_bytes(text)
        lines = lines_of(text.decode(ENCODINGS.get(encoding_of(text), "utf-8"), "replace"))
        json.dumps(lines)
        aligner = Aligner(profile, sources_of(file, ()))
        costs = line_costs(profile, aligner).lines
        operator_places(profile, aligner)
        if wrong := [cost for cost in costs if not 0 < cost.line <= max(len(lines), SOURCE.count(b"\n"))]:
            raise UnsoundError(f"a line that is not there: {wrong[0]}")
        return len(text)

    return take


def _baseline(folder: Path) -> Take:
    report = analyze_path(write_run(folder / "run"), Job())
    file = folder / "baseline.json"

    def take(text: bytes) -> int:
        file.write_bytes(text)
        new_findings(report, read_baseline(file))
        return len(text)

    return take


def _baseline_seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as name:
        return [msgspec.json.encode(baseline_of(analyze_path(write_run(Path(name, "run")), Job())))]


def _json(document: Mapping[str, object]) -> bytes:
    return json.dumps(document).encode()


def _nothing(_trace: Path) -> None:
    """All was done."""


def _capture_seeds() -> list[bytes]:
    whole = capture_document() | {
        "settings": {
            "versions": {"python": "3.11", "torch": "2.13.0", "cuda": "12.4", "cudnn": 90100, "cuda_driver": 12040},
            "devices": [{"kind": "cuda", "index": 0, "name": "NVIDIA A100"}],
            "threads": {"intra_op": 8, "inter_op": 8, "available_cores": 8},
            "numerics": {"float32_matmul_precision": "highest", "tf32_matmul": False, "anomaly_mode": True},
            "process": {"rank": 0, "world_size": 2, "backend": "nccl"},
            "optimizers": [
                {"kind": "AdamW", "foreach": False, "parameters": 4, "parameter_bytes": 64, "devices": ["cpu"]}
            ],
            "loaders": [{"dataset": "TensorDataset", "batch_size": 4, "num_workers": 0, "pin_memory": False}],
        },
        "tensors": {"start_ns": [10_000, 100_000], "name": [1, 2], "tensors": [[1, 2], [3]], "storages": [[1, 2], [3]]},
        "sources": [{"file": "train.py", "sha256": "0", "text": "def main():\n    pass\n"}],
    }
    return [_json(capture_document()), _json(whole), _json({"version": 1}), _json({"version": 2})]


def _device_seeds() -> list[bytes]:
    memory = [{"time_ns": 1000 * at, "bytes": 4096 * at} for at in range(3)]
    named = {"kind": "npu", "name": "Ascend", "index": 3}
    return [_json(device_document()), _json(device_document() | {"memory": memory, "device": named})]


def _columns_broken(content: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    """Mostly in the head, which is JSON and says where all else is; its length stays right."""
    end = 8 + int.from_bytes(content[:8], "little")
    if make.random() < 0.3 or end > len(content):
        return mutated(content, others, make)
    head = mutated(content[8:end], [other[8:] for other in others], make)
    if make.random() < 0.7:
        head = head[: end - 8].ljust(end - 8)
    return len(head).to_bytes(8, "little") + head + content[end:]


HARNESSES: Mapping[str, Harness] = MappingProxyType(
    {
        "trace": Harness(_trace_seeds, mutated, _trace, ("trace/", "profile/", "analysis/", "rules/", "estimate/")),
        "gz": Harness(
            lambda: members.files([trace_text().encode(), b"[]"]), members.broken, _gz,
            ("trace/reader.py", "trace/document.py"),
        ),
        "capture": Harness(
            _capture_seeds, mutated, partial(_beside, ".tidy.json.gz", _nothing),
            ("trace/capture_file.py", "trace/settings.py", "analysis/", "rules/"),
        ),
        "device": Harness(
            _device_seeds, mutated, partial(_beside, ".device_events.json", _merged),
            ("trace/external.py", "trace/side_file.py", "trace/merge.py"),
        ),
        "entry": Harness(_entry_seeds, mutated, _entry, ("trace/cache.py",)),
        "columns": Harness(_columns_seeds, _columns_broken, _columns, ("trace/cached_columns.py", "trace/columns.py")),
        "kept-report": Harness(_report_seeds, mutated, _report, ("analysis/remembered.py",)),
        "mutes": Harness(
            lambda: [b'{"findings":["a1","c"],"rules":["cat-in-loop"]}', b'{\n  "findings": [],\n  "rules": []\n}'],
            mutated, _mutes, ("plugin/mutes.py",),
        ),
        "measurements": Harness(_measurements_seeds, mutated, _measurements, ("benchmarks/store.py",)),
        "configuration": Harness(
            lambda: CONFIGURATIONS, partial(mutated, words=TOML), _configuration, ("configuration/",)
        ),
        "source": Harness(lambda: [SOURCE], partial(mutated, words=PYTHON), _source, ("sources/",)),
        "baseline": Harness(_baseline_seeds, mutated, _baseline, ("compare/baseline.py", "compare/findings.py")),
    }
)  # fmt: skip
