"""Captures and replays that are made event by event: pieces, node ids, buckets, donors, files beside the trace."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.profile.graphs import replay as replay_module
from tb_tidy_plugin.profile.graphs.replay import with_replayed
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.cache import Cache
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.files import TraceFile
from tests.ledger.traces import Made
from tests.support.replays import inputs_of, module_of, operator_name

LAYER = [("aten::mm", "gemm_a"), ("aten::add_", "add"), ("aten::mm", "gemm_b"), ("aten::relu", "relu")]
KERNELS = [kernel for _, kernel in LAYER]
ids = count(1000)


def capture(made: Made, start: float, launches: Sequence[tuple[str, str]] = LAYER, prefix: str = "layer") -> Made:
    """A capture of `(operator, kernel)` in order; CUDA's launches have no name."""
    made.call("hipStreamBeginCapture", start, start + 1)
    for at, (operator, kernel) in enumerate(launches):
        here = start + 10 + 10 * at
        made.frame(f"nn.Module: {prefix}_{at}", here, here + 9)
        made.frame(f"model.py({at + 1}): {prefix}", here + 1, here + 8)
        shapes: dict[str, Any] = {"Input Dims": [[at + 1, 8]]}
        made.operator(operator, here + 2, here + 7, **shapes)
        if kernel:
            made.call("hipLaunchKernel", here + 3, here + 4, kernel=kernel)
        else:
            made.call("cudaLaunchKernel", here + 3, here + 4)
    end = start + 20 + 10 * len(launches)
    return made.call("hipStreamEndCapture", end, end + 1)


def replay(made: Made, start: float, kernels: Sequence[str] = KERNELS, nodes: Sequence[int] = ()) -> Made:
    """One launch of a graph, whose kernels take 10 µs each; `nodes` are the ids of their nodes."""
    number = next(ids)
    made.call("hipGraphLaunch", start, start + 50, correlation=number)
    for at, kernel in enumerate(kernels):
        node: dict[str, Any] = {"graph node id": nodes[at]} if nodes else {}
        begin = start + 60 + 10 * at
        made.add("kernel", kernel, begin, begin + 10, 7, 0, device=0, stream=7, correlation=number, **node)
    return made


def replayed(made: Made) -> list[tuple[str, str, str | None, int, str | None]]:
    """Of each kernel: name, operator, module, the first dimension of its input, and how they are known."""
    found: list[tuple[str, str, str | None, int, str | None]] = []
    profile = written(made)
    table, known = profile.table, profile.replayed
    rows = sorted((row for row in range(profile.tree.size, len(table)) if known.known_by(row)), key=profile.start_ns)
    for row in rows:
        dims = inputs_of(profile, row).dims
        first = dims[0][0] if dims and isinstance(dims[0], tuple) else 0
        found.append(
            (
                profile.name(row),
                operator_name(profile, row) or "",
                module_of(profile, row),
                int(str(first)),
                known.known_by(row),
            )
        )
    return found


def written(made: Made) -> Profile:
    return made.profile(with_replayed)


def test_a_capture_in_the_same_file() -> None:
    made = replay(capture(Made(), 0), 500)
    assert replayed(made) == [
        (kernel, operator, f"layer_{at}", at + 1, "exact") for at, (operator, kernel) in enumerate(LAYER)
    ]
    profile = written(made)
    assert profile.metadata.notes == ()
    kernels = profile.matching("^gemm_b$", Category.KERNEL)
    [row] = kernels.tolist()
    assert "hipGraphLaunch" in profile.table.names[profile.table.name[profile.launch[row]]]
    inserted = profile.replayed.inserted
    assert inserted.sum() == 3 * len(LAYER)  # module, function, operator
    assert profile.table.duration_ns[inserted].max() < 100


def test_pieces_of_equal_kernels_are_taken_in_their_order() -> None:
    made = capture(capture(Made(), 0, prefix="first"), 200, prefix="second")
    made.mark("step[DECODE bs=4]", 490, 900)
    replay(replay(made, 500), 700)
    assert [module for _, _, module, _, _ in replayed(made)] == [
        *(f"first_{at}" for at in range(4)),
        *(f"second_{at}" for at in range(4)),
    ]


def test_captures_that_fit_alike_are_not_used() -> None:
    made = replay(capture(capture(Made(), 0), 200), 500)
    assert replayed(made) == []
    assert written(made).metadata.notes == (
        "The graph capture in this file is not used: 2 captures fit 1 replay alike.",
    )


def test_the_name_of_a_replay_decides() -> None:
    made = Made().mark("tidy:capture#a-1", 0, 100).mark("tidy:capture#a-2", 200, 300)
    capture(capture(made, 1, prefix="first"), 201, prefix="second")
    replay(made.mark("tidy:replay#a-2", 490, 560), 500)
    assert [module for _, _, module, _, _ in replayed(made)] == [f"second_{at}" for at in range(4)]


def test_a_capture_for_another_batch_is_refused() -> None:
    def served(batch: int) -> Made:
        made = capture(Made().mark("capture_8_FULL", 0, 100), 1)
        return replay(made.mark(f"step[DECODE bs={batch}]", 490, 600), 500)

    assert len(replayed(served(8))) == len(replayed(served(5))) == 4
    for other in (4, 9):
        assert replayed(served(other)) == []
        [note] = written(served(other)).metadata.notes
        assert note.endswith(f"it was captured for a batch of 8, not of {other}.")


def test_of_several_buckets_the_smallest_that_holds_the_batch_is_taken() -> None:
    made = Made().mark("capture_16_FULL", 0, 100).mark("capture_8_FULL", 200, 300)
    capture(capture(made, 1, prefix="sixteen"), 201, prefix="eight")
    replay(made.mark("step[DECODE bs=8]", 490, 600), 500)
    assert {str(module)[:5] for _, _, module, _, _ in replayed(made)} == {"eight"}


UNNAMED = [(operator, "") for operator, _ in LAYER]
PRODUCTS = ["sm80_xmma_gemm", "vectorized_elementwise", "cutlass_gemm", "relu_kernel"]


def test_launches_without_names_are_paired_by_position_where_counts_and_kinds_agree() -> None:
    assert [operator for _, operator, *_ in replayed(replay(capture(Made(), 0, UNNAMED), 500, PRODUCTS))] == [
        operator for operator, _ in LAYER
    ]
    assert replayed(replay(capture(Made(), 0, UNNAMED), 500, PRODUCTS[:3])) == []
    assert replayed(replay(capture(Made(), 0, UNNAMED), 500, PRODUCTS[::-1])) == []


def test_ids_of_nodes_give_the_order() -> None:
    made = replay(capture(Made(), 0, UNNAMED), 500, [PRODUCTS[at] for at in (2, 0, 1, 3)], nodes=[12, 10, 11, 13])
    assert [(kernel, dim) for kernel, _, _, dim, _ in replayed(made)] == [
        ("cutlass_gemm", 3), ("sm80_xmma_gemm", 1), ("vectorized_elementwise", 2), ("relu_kernel", 4),
    ]  # fmt: skip


def test_an_eager_iteration_of_the_model_is_the_donor_where_no_capture_is() -> None:
    names = [f"k{letter}" for letter in "abcdefghi"]

    def served(eager: Sequence[str]) -> Made:
        made = Made().mark("step[EXTEND bs=1 toks=99]", 0, 490)
        for at, kernel in enumerate(eager):
            here = 10 + 20 * at
            made.frame(f"nn.Module: Layer_{at}", here, here + 9)
            made.operator("aten::mm" if "gemm" in kernel else "aten::op", here + 1, here + 8)
            made.kernel(kernel, here + 10, here + 15, launch=here + 2)
        return replay(made.mark("step[DECODE bs=1]", 500, 600), 510, [*names, "gemm_x"])

    found = replayed(served([*names, "gemm_prefill_64"]))
    assert [(operator, module, known) for _, operator, module, _, known in found][-2:] == [
        ("aten::op", "Layer_8", "donor"),
        ("aten::mm", "Layer_9", "donor"),
    ]
    assert len(found) == 10
    assert replayed(served([*names[:4], "gemm_prefill_64", *"vwxyz"])) == []


def test_a_short_launch_takes_no_events_that_do_not_fit_into_it() -> None:
    made = capture(Made(), 0)
    made.call("hipGraphLaunch", 500, 500.02, correlation=999)
    for at, kernel in enumerate(KERNELS):
        made.add("kernel", kernel, 510 + 10 * at, 520 + 10 * at, 7, 0, device=0, stream=7, correlation=999)
    assert replayed(made) == []
    assert written(made).metadata.notes == ("1 replay of graphs without operators, for lack of room for their events.",)


def test_more_events_than_there_is_room_for_are_operators_and_modules_only(monkeypatch: pytest.MonkeyPatch) -> None:
    made = replay(capture(Made(), 0), 500)
    monkeypatch.setattr(replay_module, "MOST_INSERTED", 2 * len(LAYER))
    assert written(made).replayed.inserted.sum() == 2 * len(LAYER)
    assert len(replayed(made)) == len(LAYER)


# Files


def folder_with(tmp_path: Path, name: str = "any.json") -> Path:
    """A folder with a run that replays, and a file with the capture."""
    replay(Made().operator("aten::empty", 0, 5), 500).written(tmp_path)
    (tmp_path / "inner").mkdir()
    capture(Made(), 0).written(tmp_path / "inner").rename(tmp_path / name)
    return tmp_path / "made.pt.trace.json"


def operators_in(trace: Path, job: Job | None = None) -> set[str]:
    profile = read_file(TraceFile("run", "worker", "", trace), job or Job()).profile
    rows = range(profile.tree.size, len(profile.table))
    return {name for row in rows if (name := operator_name(profile, row))}


ALL = {operator for operator, _ in LAYER}


def test_a_capture_beside_the_trace_is_found_by_its_content(tmp_path: Path) -> None:
    assert operators_in(folder_with(tmp_path)) == ALL


def test_a_link_is_not_followed_and_another_folder_not_looked_into(tmp_path: Path) -> None:
    trace = folder_with(tmp_path)
    (tmp_path / "any.json").rename(tmp_path / "inner" / "any.json")
    (tmp_path / "link.json").symlink_to(tmp_path / "inner" / "any.json")
    assert operators_in(trace) == set()
    assert operators_in(trace, Job(graph_captures=(tmp_path / "inner" / "any.json",))) == ALL


def test_a_capture_is_found_where_servers_store_it(tmp_path: Path) -> None:
    """`capture_torch_profiler` of vLLM and SGLang's capture traces write to a folder beside the traces."""
    trace = folder_with(tmp_path)
    (tmp_path / "inner").rename(tmp_path / "capture_traces")
    (tmp_path / "any.json").rename(tmp_path / "capture_traces" / "bs_4_rank0.json")
    assert operators_in(trace) == ALL
    (tmp_path / "capture_traces").rename(tmp_path / "elsewhere")
    (tmp_path / "capture_traces").symlink_to(tmp_path / "elsewhere")
    assert operators_in(trace) == set(), "a link is not followed"


@pytest.mark.parametrize(("run", "expected"), [("1785501977.9713538", ALL), ("run", set())])
def test_our_capture_is_found_beside_the_runs_of_sglang(run: str, expected: set[str], tmp_path: Path) -> None:
    """`sglang.profiler` makes a folder for each run, named after the time, in the folder that the server knows."""
    (tmp_path / run).mkdir()
    trace = folder_with(tmp_path / run, "graph-a-1.tidy_graph.json.gz")
    document = json.loads(trace.read_text())
    document["traceEvents"] += Made().mark("tidy:replay#a-1", 490, 600).events
    trace.write_text(json.dumps(document))
    (trace.parent / "graph-a-1.tidy_graph.json.gz").rename(tmp_path / "graph-a-1.tidy_graph.json.gz")
    assert operators_in(trace) == expected


@pytest.mark.parametrize(("run", "expected"), [("1785501977.9713538", ALL), ("run", set())])
def test_sglangs_captures_are_found_beside_its_runs(run: str, expected: set[str], tmp_path: Path) -> None:
    (tmp_path / run).mkdir()
    trace = folder_with(tmp_path / run)
    (tmp_path / "graph_capture_profile").mkdir()
    (trace.parent / "any.json").rename(tmp_path / "graph_capture_profile" / "decode_bs_4_rank0.json")
    assert operators_in(trace) == expected


def test_no_file_is_read_because_the_trace_names_it(tmp_path: Path) -> None:
    trace = folder_with(tmp_path)
    (tmp_path / "any.json").rename(tmp_path / "inner" / "graph-x.tidy_graph.json.gz")
    document = json.loads(trace.read_text())
    name = "tidy:replay#../inner/graph-x"
    document["traceEvents"] += Made().mark(name, 490, 600).mark("tidy:replay#inner/x", 490, 600).events
    trace.write_text(json.dumps(document))
    assert operators_in(trace) == set()


def test_a_named_capture_is_read_only_where_its_replay_is_recorded(tmp_path: Path) -> None:
    trace = folder_with(tmp_path, "graph-a-1.tidy_graph.json.gz")
    assert operators_in(trace) == set()
    document = json.loads(trace.read_text())
    document["traceEvents"] += Made().mark("tidy:replay#a-1", 490, 600).events
    trace.write_text(json.dumps(document))
    assert operators_in(trace) == ALL


def test_a_capture_that_cannot_be_read_is_noted(tmp_path: Path) -> None:
    trace = folder_with(tmp_path)
    (tmp_path / "any.json").write_text('{"schemaVersion": 1, "traceEvents": [], "x": "StreamBeginCapture"}')
    notes = read_file(TraceFile("run", "worker", "", trace), Job()).profile.metadata.notes
    assert [note for note in notes if note.startswith("The graph capture `any.json` is not used.")]


def test_an_answer_that_was_kept_is_not_given_once_a_capture_lies_beside_the_trace(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    trace = folder_with(tmp_path / "run")
    hidden = tmp_path / "any.json"
    (trace.parent / "any.json").rename(hidden)
    job = Job(cache=Cache(tmp_path / "cache"))

    def attributed() -> list[str | None]:
        report = analyze_path(trace, job).runs[0].profiles[0]
        assert report.serving is not None
        assert report.serving.graphs is not None
        return [each.known_by for each in report.serving.graphs.attribution]

    assert attributed() == attributed() == [None]
    hidden.rename(trace.parent / "any.json")
    assert attributed() == ["exact"]
    (trace.parent / "any.json").unlink()
    assert attributed() == [None]


def test_the_option_names_a_capture_and_the_terminal_says_what_it_explains(tmp_path: Path) -> None:
    trace = folder_with(tmp_path)
    capture_file = tmp_path / "inner" / "any.json"
    (tmp_path / "any.json").rename(capture_file)
    asked = ["check", "--no-cache", str(trace)]
    plain = CliRunner().invoke(commands, asked).output
    assert "graphs: 1 launch, 4 kernels, 40 µs: no operator is known" in plain
    shown = CliRunner().invoke(commands, [*asked, "--graph-capture", str(capture_file)]).output
    assert "graphs: 1 launch, 4 kernels: 100 % of their time has an operator (exact 100 %); capture:" in shown
    events = [re.search(r"(\d+) events over", output) for output in (plain, shown)]
    assert [found and found[1] for found in events] == ["6", "6"]


@pytest.mark.parametrize("command", ["summary", "compare", "annotate", "bench"])
def test_every_command_that_analyses_has_the_option(command: str) -> None:
    assert "--graph-capture" in CliRunner().invoke(commands, [command, "--help"]).output
