"""The handler writes torch's own trace and a side file, and nothing that goes wrong with the latter reaches the job."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.capture import live_tree, own_files, settings, tidy_trace_handler
from tb_tidy_plugin.capture.live_tree import walk
from tb_tidy_plugin.capture.own_files import OwnFiles
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace import capture_file
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.columns import TensorIds
from tb_tidy_plugin.trace.files import find_traces
from tests.support.captured_job import (
    FILE,
    SECRET,
    document_of,
    line_of,
    record,
    side_file_of,
    source,
    traces_in,
)
from tests.support.recordings import ROOT

if TYPE_CHECKING:
    import torch

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    record(tidy_trace_handler(str(folder), "worker"))
    (trace,) = traces_in(folder)
    return trace


def test_the_reader_takes_as_much_as_the_capture_keeps() -> None:
    """Reader and writer import nothing of each other: the writer runs in a training job."""
    assert live_tree.MAX_ENTRIES <= capture_file.MAX_ROWS
    assert own_files.MAX_SOURCE_BYTES <= capture_file.MAX_SOURCE_CHARACTERS


class TestTrace:
    @pytest.mark.parametrize("use_gzip", [False, True])
    def test_its_name_is_the_one_torch_gives(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use_gzip: bool
    ) -> None:
        import torch

        names = {}
        with monkeypatch.context() as patch:
            patch.setattr(time, "time_ns", lambda: 1_700_000_000_000_000_000)
            for kind in (torch.profiler.tensorboard_trace_handler, tidy_trace_handler):
                folder = tmp_path / kind.__name__
                record(kind(str(folder), None, use_gzip))
                names[kind] = {path.name for path in folder.iterdir() if "tidy" not in path.name}
        assert names[torch.profiler.tensorboard_trace_handler] == names[tidy_trace_handler]
        assert len(names[tidy_trace_handler]) == 1

    @pytest.mark.parametrize("use_gzip", [False, True])
    def test_its_bytes_are_those_torch_wrote(self, tmp_path: Path, use_gzip: bool) -> None:
        """The profiler saves a recording once only, so torch's bytes are taken where torch has just written them."""
        written = {}
        handle = tidy_trace_handler(str(tmp_path), use_gzip=use_gzip)

        def noting(prof: torch.profiler.profile) -> None:
            export = prof.export_chrome_trace

            def export_and_note(path: str, use_python_export: bool = False) -> None:
                export(path, use_python_export)
                written[path] = Path(path).read_bytes()

            prof.export_chrome_trace = export_and_note  # type: ignore[method-assign]
            handle(prof)

        record(noting)
        (trace,) = traces_in(tmp_path)
        assert written == {str(trace): trace.read_bytes()}

    def test_what_torch_raises_is_raised(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(RuntimeError, match="Can't create directory"):
            record(tidy_trace_handler(str(tmp_path / "file" / "folder")))


class TestLines:
    @pytest.mark.parametrize(
        ("operator", "code"),
        [
            ("aten::tanh", "scaled = torch.tanh(inputs)"),
            ("aten::linear", "logits = self.model(scaled) + 1"),
            ("aten::cross_entropy_loss", "loss = torch.nn.functional.cross_entropy("),
            ("autograd::engine::evaluate_function: AddmmBackward0", "loss.backward()"),
        ],
    )
    def test_calls_are_on_their_line(self, recorded: Path, operator: str, code: str) -> None:
        analysis = read_file(find_traces(recorded)[0], Job())
        for row in analysis.profile.named(operator).tolist():
            place = analysis.aligner.place_of(row)
            assert place is not None
            assert (place.file, place.line, place.precision) == (FILE, line_of(code), "exact")

    def test_operators_between_them_are_aligned(self, recorded: Path) -> None:
        """`+` leaves no call; the source to align it with is in the side file alone."""
        analysis = read_file(find_traces(recorded)[0], Job())
        profile = analysis.profile
        sums = [
            row
            for row in profile.named("aten::add").tolist()
            if profile.name(profile.parent(row) or 0).endswith("step")
        ]
        places = [analysis.aligner.place_of(row) for row in sums]
        wanted = (line_of("logits = self.model(scaled) + 1"), "aligned")
        assert places
        assert {(place.line, place.precision) for place in places if place} == {wanted}

    def test_only_calls_of_own_files_are_kept(self, recorded: Path, tmp_path: Path) -> None:
        """Torch after 2.13 writes the lines of all calls into the trace; this is about those of the side file."""
        document = json.loads(recorded.read_bytes())
        for event in document["traceEvents"]:
            event.get("args", {}).pop("CallFrom", None)
        trace = tmp_path / recorded.name
        trace.write_text(json.dumps(document))
        shutil.copy(side_file_of(recorded), side_file_of(trace))
        calls = document_of(trace)["calls"]
        profile = Profile(read_with_side_files(trace))
        rows = [row for row in range(profile.tree.size) if profile.table.called_from[row] >= 0]
        assert len(rows) == len(calls["line"]) > 0
        callers = {profile.name(next(at for at in profile.ancestors(row) if "(" in profile.name(at))) for row in rows}
        assert all(caller.startswith("tests/") for caller in callers), callers

    def test_without_stacks_there_are_none(self, tmp_path: Path) -> None:
        record(tidy_trace_handler(str(tmp_path)), with_stack=False)
        (trace,) = traces_in(tmp_path)
        assert document_of(trace)["calls"] == {"start_ns": [], "name": [], "line": []}
        assert document_of(trace)["sources"] == []

    def test_the_walk_ends_in_time_and_says_so(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(live_tree, "CLOCK_EVERY", 1)
            patch.setattr(live_tree, "MAX_ENTRIES", 3)
            record(tidy_trace_handler(str(tmp_path)))
        (trace,) = traces_in(tmp_path)
        assert document_of(trace)["complete"] is False
        assert len(document_of(trace)["calls"]["line"]) == 4
        assert "ended early" in " ".join(read_with_side_files(trace).metadata.notes)

    def test_no_time_at_all(self) -> None:
        class Endless:
            tag = None
            children = ()

        def forever() -> Iterator[Any]:
            while True:
                yield Endless()

        assert walk(forever(), OwnFiles(), tensors=False, budget_s=0).complete is False


class TestSources:
    def test_own_files_are_kept_with_their_hash(self, recorded: Path) -> None:
        import hashlib

        kept = {entry["file"]: entry for entry in document_of(recorded)["sources"]}
        assert kept[FILE]["text"] == source()
        assert kept[FILE]["sha256"] == hashlib.sha256(source().encode()).hexdigest()

    def test_libraries_and_this_package_are_not(self, recorded: Path) -> None:
        names = {entry["file"] for entry in document_of(recorded)["sources"]}
        assert all(name.startswith("tests/") for name in names), names

    def test_they_can_be_left_out(self, tmp_path: Path) -> None:
        record(tidy_trace_handler(str(tmp_path), sources=False))
        (trace,) = traces_in(tmp_path)
        assert "sources" not in document_of(trace)
        assert SECRET not in gzip.decompress(side_file_of(trace).read_bytes()).decode()

    def test_a_file_that_changed_while_the_job_ran_is_left_out(self, tmp_path: Path) -> None:
        module = tmp_path / "changing.py"
        module.write_text("x = 1\n")
        own = OwnFiles()
        assert [entry["text"] for entry in own_files.own_sources([str(module)], own, time.time() + 1)] == ["x = 1\n"]
        os.utime(module, (time.time() + 60,) * 2)
        assert list(own_files.own_sources([str(module)], own, time.time() + 1)) == []

    def test_large_files_are_left_out_and_the_rest_kept(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        names = []
        for number, size in enumerate([600_000, 1, 300, 300]):
            names.append(str(tmp_path / f"file{number}.py"))
            Path(names[-1]).write_text("#" * size)
        with monkeypatch.context() as patch:
            patch.setattr(own_files, "MAX_TOTAL_BYTES", 400)
            kept = own_files.own_sources(names, OwnFiles(), time.time() + 1)
            assert [Path(entry["file"]).name for entry in kept] == ["file1.py", "file2.py"]

    @pytest.mark.parametrize(
        "frame", ["<built-in method relu>", "nn.Module: Net_0", "<string>(1): f", "gone.py(3): f", ""]
    )
    def test_frames_of_no_file_of_the_users(self, frame: str) -> None:
        assert OwnFiles().named_in(frame) is None

    def test_frames_of_libraries(self) -> None:
        own = OwnFiles()
        assert own.named_in("torch/nn/functional.py(3): relu") is None
        assert own.named_in(f"{json.__file__}(3): loads") is None
        assert own.named_in("tb_tidy_plugin/capture/handler.py(3): handle") is None
        assert own.named_in(f"{FILE}(3): step") == FILE

    def test_cells_of_a_notebook(self, tmp_path: Path) -> None:
        import linecache

        name = str(tmp_path / "ipykernel_77" / "123.py")
        linecache.cache[name] = (6, None, ["x = 1\n"], name)
        try:
            own = OwnFiles()
            assert own.named_in(f"{name}(1): f") == name
            assert [entry["text"] for entry in own_files.own_sources([name], own, time.time())] == ["x = 1\n"]
        finally:
            del linecache.cache[name]


class TestSettings:
    def test_they_are_those_of_the_job(self, recorded: Path) -> None:
        import torch

        found = Profile(read_with_side_files(recorded)).settings
        assert (found.versions.torch, found.versions.cuda) == (torch.__version__, torch.version.cuda)
        assert found.threads.intra_op == torch.get_num_threads()
        assert found.threads.available_cores == len(os.sched_getaffinity(0))
        assert found.processor.capability == torch.backends.cpu.get_cpu_capability()
        assert found.processor.bfloat16 is (
            torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()  # noqa: SLF001 - torch's answer
        )
        assert (found.numerics.float32_matmul_precision, found.numerics.tf32_matmul) == ("highest", False)
        assert found.process.rank is None
        optimizer = found.optimizer("AdamW")
        assert optimizer is not None
        assert (optimizer.foreach, optimizer.fused, optimizer.parameters) == (False, None, 4)
        assert optimizer.parameter_bytes == 4 * (8 * 8 + 8 + 8 * 4 + 4)
        assert optimizer.devices == ("cpu",)
        loader = next(each for each in found.loaders if each.dataset == "TensorDataset")
        assert (loader.batch_size, loader.num_workers, loader.prefetch_factor) == (4, 0, None)

    def test_nothing_but_what_is_listed(self, recorded: Path) -> None:
        found = document_of(recorded)
        assert set(found) == {"version", "settings", "complete", "calls", "sources"}
        assert set(found["settings"]) <= {
            "versions", "devices", "threads", "processor", "numerics", "process", "optimizers", "loaders",
        }  # fmt: skip
        optimizer = next(each for each in found["settings"]["optimizers"] if each["kind"] == "AdamW")
        assert set(optimizer) == {
            "kind", "foreach", "fused", "capturable", "differentiable", "parameters", "parameter_bytes", "devices",
        }  # fmt: skip

    def test_switches_that_were_set(self) -> None:
        program = (
            "import torch, warnings, json\n"
            "warnings.simplefilter('error')\n"
            "from tb_tidy_plugin.capture.settings import settings\n"
            "{change}\n"
            "print(json.dumps(settings()['numerics']))\n"
        )

        def numerics(change: str) -> dict[str, Any]:
            command = [sys.executable, "-c", program.replace("{change}", change)]
            answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
            found: dict[str, Any] = json.loads(answer.stdout)
            return found

        assert numerics("torch.set_float32_matmul_precision('high')")["tf32_matmul"] is True
        new = numerics("torch.backends.cuda.matmul.fp32_precision = 'tf32'")
        assert (new["tf32_matmul"], new["float32_matmul_precision"]) == (True, None)

    def test_optimizers_whose_groups_differ(self) -> None:
        import torch

        layer = torch.nn.Linear(2, 2)
        groups = [{"params": [layer.weight], "foreach": False}, {"params": [layer.bias], "foreach": True}]
        optimizer = torch.optim.SGD(groups, lr=SecretFloat(0.1))
        answer = settings.settings()["optimizers"]
        assert isinstance(answer, list)
        found = next(each for each in answer if each["parameters"] == len(groups) and each["kind"] == "SGD")
        assert optimizer.defaults["lr"] == 0.1
        assert (found["foreach"], found["fused"]) == (None, None)
        assert SECRET not in json.dumps(answer)


class SecretFloat(float):
    """A learning rate whose text is nobody's business."""

    def __repr__(self) -> str:
        return SECRET

    __str__ = __repr__


class TestTensors:
    def test_one_tensor_can_be_followed(self, tmp_path: Path) -> None:
        record(tidy_trace_handler(str(tmp_path), tensors=True), profile_memory=True)
        (trace,) = traces_in(tmp_path)
        profile = Profile(read_with_side_files(trace))
        (addmm, *_) = profile.named("aten::addmm").tolist()
        relus = profile.named("aten::relu", "aten::clamp_min").tolist()
        numbers = profile.table.file_order

        def tensors_of(row: int) -> TensorIds:
            return profile.metadata.captured.tensors[int(numbers[row])]

        weights = {tensors_of(row).tensors[1:2] for row in profile.named("aten::linear").tolist()}
        assert len(weights) == 2, "two layers, in each of two steps the same weights"
        assert tensors_of(addmm).storages
        assert all(tensors_of(row).tensors[0] for row in relus)

    def test_without_shapes_there_are_none(self, tmp_path: Path) -> None:
        record(tidy_trace_handler(str(tmp_path), tensors=True), record_shapes=False)
        (trace,) = traces_in(tmp_path)
        assert document_of(trace)["tensors"]["tensors"] == []


class TestSecrets:
    def test_none_of_environment_command_line_and_host_is_in_the_file(self, tmp_path: Path) -> None:
        script = tmp_path / "job.py"
        script.write_text(
            "import sys\n"
            "from tests.support.captured_job import record\n"
            "from tb_tidy_plugin.capture import tidy_trace_handler\n"
            "record(tidy_trace_handler(sys.argv[1], 'worker', sources=False))\n"
        )
        environment = os.environ | {"API_TOKEN": "env-secret-77", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(script), str(tmp_path / "run"), "--password=argv-secret-77"]
        subprocess.run(command, check=True, capture_output=True, env=environment, cwd=tmp_path)
        (trace,) = traces_in(tmp_path / "run")
        text = gzip.decompress(side_file_of(trace).read_bytes()).decode()
        for secret in ("env-secret", "argv-secret", "API_TOKEN", os.uname().nodename + '"', str(tmp_path), SECRET):
            assert secret not in text


class TestRanks:
    def test_each_has_its_own(self, tmp_path: Path) -> None:
        script = tmp_path / "job.py"
        script.write_text(
            "import sys, torch.distributed as dist\n"
            "from tests.support.captured_job import record\n"
            "from tb_tidy_plugin.capture import tidy_trace_handler\n"
            "rank = int(sys.argv[1])\n"
            "dist.init_process_group('gloo', init_method=f'file://{sys.argv[2]}', rank=rank, world_size=2)\n"
            "record(tidy_trace_handler(sys.argv[3], f'rank{rank}'))\n"
            "dist.destroy_process_group()\n"
        )
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(script)]
        places = [str(tmp_path / "meeting"), str(tmp_path / "run")]
        jobs = [
            subprocess.Popen([*command, str(rank), *places], env=environment, stderr=subprocess.DEVNULL)
            for rank in range(2)
        ]
        assert [job.wait() for job in jobs] == [0, 0]
        processes = [Profile(read_with_side_files(trace)).settings.process for trace in traces_in(tmp_path / "run")]
        assert [(each.rank, each.world_size, each.backend) for each in processes] == [(0, 2, "gloo"), (1, 2, "gloo")]
