"""The ledgers of both sides, entry by entry: sums against what was drawn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.cli.printed import as_lines
from tb_tidy_plugin.compare.compare import NOT_ACCOUNTED, Asked, compared
from tb_tidy_plugin.compare.entries import paired_name, shared_out
from tb_tidy_plugin.compare.model import Comparison, EntryChange
from tb_tidy_plugin.compare.reading import asked_for
from tb_tidy_plugin.compare.recording import StepRange, numbers_of
from tb_tidy_plugin.ledger.model import Function, Owner
from tb_tidy_plugin.render.comparison import comparison_document
from tb_tidy_plugin.render.markdown import to_markdown
from tb_tidy_plugin.render.terminal import to_text
from tb_tidy_plugin.report.left_out import AboutRun
from tb_tidy_plugin.report.model import Finding, Outcome, Status
from tb_tidy_plugin.system.decoders import convert
from tb_tidy_plugin.words.causes import Cause, Kind
from tests.support.recordings import shared
from tests.support.written import event, kineto_text, write


@dataclass(frozen=True)
class Vendor:
    """A device, and what its kernels are called."""

    name: str
    matrix: str
    pointwise: str


NVIDIA = Vendor(
    "NVIDIA H100 80GB HBM3", "sm90_xmma_gemm_bf16bf16_tn", "vectorized_elementwise_kernel<4, CUDAFunctor_add>"
)
AMD = Vendor("AMD Instinct MI300X", "Cijk_Alik_Bljk_BBS_BH_MT128x128x64", "elementwise_kernel_manual_unroll<512, add>")
STEPS = 3


def recording(folder: Path, vendor: Vendor, matrix_us: Sequence[int], add_us: int, worker: str = "w") -> Path:
    """Steps of a product and an addition, back to back on the device; launches were queued long before."""
    events, end = [], 1000
    for step, product_us in enumerate(matrix_us):
        begin, correlation = end, 10 * step
        for at, (operator, kernel, time_us) in enumerate(
            (("aten::mm", vendor.matrix, product_us), ("aten::add", vendor.pointwise, add_us)), correlation + 1
        ):
            events += [
                event(operator, begin + 4 * (at - correlation), 3, args={"External id": at}),
                event(
                    "cudaLaunchKernel", begin + 4 * (at - correlation) + 1, 1, cat="cuda_runtime",
                    args={"correlation": at, "External id": at},
                ),
                event(
                    kernel, end + 20 if operator == "aten::mm" else end, time_us, cat="kernel", pid=0, tid=7,
                    args={"correlation": at, "External id": at, "device": 0, "stream": 7},
                ),
            ]  # fmt: skip
            end += time_us + (20 if operator == "aten::mm" else 0)
        events.append(event(f"ProfilerStep#{step}", begin, end - begin, cat="user_annotation"))
    folder.mkdir(exist_ok=True)
    devices = f'"deviceProperties": [{{"id": 0, "name": "{vendor.name}"}}]'
    write(folder / f"{worker}.7.pt.trace.json", kineto_text(events, devices))
    return folder


def entry(comparison: Comparison, name: str) -> EntryChange:
    assert comparison.ledger is not None
    return next(each for each in comparison.ledger.entries if each.id == name)


def sums(comparison: Comparison) -> tuple[int, int]:
    assert comparison.ledger is not None
    entries = comparison.ledger.entries
    return sum(each.base_ns for each in entries), sum(each.candidate_ns for each in entries)


@pytest.fixture
def vendors(tmp_path: Path) -> Comparison:
    base = recording(tmp_path / "h100", NVIDIA, (300, 400, 501), 100)
    candidate = recording(tmp_path / "mi300", AMD, (200, 200, 200), 150)
    return compared(asked_for(base, Job(())), asked_for(candidate, Job(())))


class TestPairs:
    def test_matrix_with_matrix_across_vendors(self, vendors: Comparison) -> None:
        """1201 µs of products in three steps: 400.3 µs on average."""
        matrix = entry(vendors, "compute:matrix")
        assert (matrix.cause, matrix.kind) == (Cause.COMPUTE, Kind.MATRIX)
        assert matrix.base_ns in {400_333, 400_334}
        assert matrix.candidate_ns == 200_000
        [owner] = matrix.owners
        assert (owner.name, owner.base_ns, owner.candidate_ns) == ("aten::mm", 400_333, 200_000)
        pointwise = entry(vendors, "compute:pointwise")
        assert (pointwise.base_ns, pointwise.candidate_ns) == (100_000, 150_000)

    def test_entries_add_up_to_the_steps_and_differences_to_the_difference(self, vendors: Comparison) -> None:
        ledger = vendors.ledger
        assert ledger is not None
        # (320 + 420 + 521 + 3 · 100) µs and 3 · (220 + 150) µs, by three
        assert (ledger.base_step_ns, ledger.candidate_step_ns) == (520_333, 370_000)
        assert sums(vendors) == (520_333, 370_000)
        assert (vendors.base.median_ns, vendors.candidate.median_ns) == (520_000, 370_000)
        assert (vendors.base.host_median_ns, vendors.candidate.host_median_ns) == (520_000, 370_000)

    def test_the_largest_difference_comes_first(self, vendors: Comparison) -> None:
        assert vendors.ledger is not None
        assert [each.id for each in vendors.ledger.entries][:2] == ["compute:matrix", "compute:pointwise"]

    def test_some_steps_against_others(self, tmp_path: Path) -> None:
        side = asked_for(recording(tmp_path / "a", NVIDIA, (300, 400, 501), 100), Job(()))
        comparison = compared(replace(side, steps=StepRange(0, 0)), replace(side, steps=StepRange(2, 2)))
        matrix = entry(comparison, "compute:matrix")
        assert (matrix.base_ns, matrix.candidate_ns) == (300_000, 501_000)
        assert sums(comparison) == (420_000, 621_000)

    def test_all_ranks_together(self, tmp_path: Path) -> None:
        recording(tmp_path / "a", NVIDIA, (300,) * STEPS, 100)
        two = asked_for(recording(tmp_path / "a", NVIDIA, (500,) * STEPS, 100, worker="v"), Job(()))
        comparison = compared(two, two)
        assert entry(comparison, "compute:matrix").base_ns == 400_000
        assert sums(comparison) == (520_000, 520_000)

    def test_chosen_steps_that_the_ledger_marks_otherwise_are_not_compared_by_entry(self, tmp_path: Path) -> None:
        side = asked_for(recording(tmp_path / "a", NVIDIA, (300,) * STEPS, 100), Job(()))
        [one] = side.recordings
        units = [msgspec.structs.replace(each, name=f"step {at}") for at, each in enumerate(one.report.ledger.steps)]
        ledger = msgspec.structs.replace(one.report.ledger, steps=units)
        other = msgspec.structs.replace(one, report=msgspec.structs.replace(one.report, ledger=ledger))
        number = numbers_of(one)[1]
        chosen = replace(side, recordings=[other], steps=StepRange(number, number))
        comparison = compared(chosen, side)
        assert comparison.ledger is None
        assert NOT_ACCOUNTED in comparison.notes
        assert "Choose no steps to compare it." in as_lines(to_text(comparison_document(comparison, "text")))

    def test_it_is_shown(self, vendors: Comparison) -> None:
        text = as_lines(to_text(comparison_document(vendors, "text")))
        assert "aten::mm: 400 µs → 200 µs" in text
        for shown in (text, to_markdown(comparison_document(vendors, "markdown"))):
            words = re.sub("[| ]+", " ", shown)
            assert "mean step 520 µs 370 µs −150 µs" in words

    @pytest.mark.parametrize(
        "pair",
        [("v100_2021_resnet50_workers0", "v100_2021_resnet50_workers4"), ("h100_vit_pipeline", "mi300_bert_pipeline")],
    )
    def test_real_pairs_add_up(self, pair: tuple[str, str]) -> None:
        one, other = (asked_for(shared(f"traces/{name}"), Job(())) for name in pair)
        comparison = compared(one, other)
        assert comparison.ledger is not None
        assert sums(comparison) == (comparison.ledger.base_step_ns, comparison.ledger.candidate_step_ns)
        shown = as_lines(to_text(comparison_document(comparison, "text")))
        means = (comparison.ledger.base_step_ns, comparison.ledger.candidate_step_ns)
        for side, known, mean_ns in zip((one, other), (comparison.base, comparison.candidate), means, strict=True):
            [report] = [each.report for each in side.recordings]
            warm_up = {step.name for step in report.steps.items if step.oddity == "warmup"}
            lengths = [step.end_ns - step.start_ns for step in report.ledger.steps]
            assert mean_ns == sum(lengths) // len(lengths)
            assert (known.steps, known.warming_up, known.median_ns) == (len(lengths), len(warm_up), median(lengths))
            assert (f", {len(warm_up)} of them warm-up" in " ".join(shown.split())) == bool(warm_up)


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 10**15), min_size=1), st.integers(1, 10_000))
def test_whole_nanoseconds_add_up(totals: dict[str, int], steps: int) -> None:
    means = shared_out(totals, steps)
    assert sum(means.values()) == sum(totals.values()) // steps
    assert all(abs(means[key] - total / steps) <= 1 for key, total in totals.items())


def test_owners_have_no_vendors_names() -> None:
    zoom = Function(function="zoom", file="/usr/lib/scipy/ndimage/_interpolation.py", line=739)
    assert paired_name(Owner(operator="aten::mm", kernel="ampere_sgemm", known_by="operator")) == "aten::mm"
    assert paired_name(Owner(kernel="ampere_sgemm", known_by="kernel-name")) == "ampere_sgemm"
    assert paired_name(Owner(library=zoom, operator="aten::to", known_by="stack")) == "_interpolation.py: zoom"
    assert paired_name(Owner()) == ""


class TestGone:
    """A finding of the baseline is gone only where its rule could be checked on the candidate."""

    @pytest.fixture
    def sides(self, tmp_path: Path) -> tuple[Asked, Asked]:
        side = asked_for(recording(tmp_path / "a", NVIDIA, (300,) * STEPS, 100), Job())
        [one] = side.recordings
        finding = convert(
            {
                "id": "a", "rule": "cat-in-loop", "category": "memory", "severity": "high", "confidence": "high",
                "message": "m", "fix": "f", "matches": 1, "matches_per_step": 1.0, "places": [], "cost_ns": 1000,
                "share": 0.1, "details": [],
                "saving": {"expected_ns": 900, "low_ns": 0, "high_ns": 1000, "speedup": None, "basis": ["bound"]},
            },
            Finding,
        )  # fmt: skip
        with_finding = msgspec.structs.replace(one, report=msgspec.structs.replace(one.report, findings=[finding]))
        return replace(side, recordings=[with_finding]), side

    @pytest.mark.parametrize(
        ("status", "state", "predicted_ns"),
        [("clean", "gone", 900), ("not_checked", "not_checked", 0), ("failed", "not_checked", 0)],
    )
    def test_by_the_outcome_of_its_rule(
        self, sides: tuple[Asked, Asked], status: Status, state: str, predicted_ns: int
    ) -> None:
        base, candidate = sides
        [one] = candidate.recordings
        outcomes = [Outcome(rule="cat-in-loop", status=status, reason=None)]
        after = msgspec.structs.replace(one, report=msgspec.structs.replace(one.report, outcomes=outcomes))
        comparison = compared(base, replace(candidate, recordings=[after]))
        [change] = comparison.findings
        assert (change.state, comparison.predicted_ns) == (state, predicted_ns)

    def test_of_several_ranks_it_needs_several_ranks(self, sides: tuple[Asked, Asked]) -> None:
        base, candidate = sides
        [one] = base.recordings
        straggler = msgspec.structs.replace(one.report.findings[0], rule="collective-straggler", ranks=[1])
        checked = AboutRun(outcomes=[Outcome(rule="collective-straggler", status="clean")])
        found = AboutRun(outcomes=[Outcome(rule="collective-straggler", status="found")], findings=[straggler])
        comparison = compared(replace(base, recordings=candidate.recordings, of_runs=[found]), candidate)
        assert [change.state for change in comparison.findings] == ["not_checked"]
        two = [
            msgspec.structs.replace(each, report=msgspec.structs.replace(each.report, rank=rank))
            for rank in range(2)
            for each in candidate.recordings
        ]
        after = replace(candidate, recordings=two, of_runs=[checked])
        comparison = compared(replace(base, recordings=two, of_runs=[found]), after)
        assert [change.state for change in comparison.findings] == ["gone"]

    def test_of_several_ranks_it_must_have_been_checked(self, sides: tuple[Asked, Asked]) -> None:
        """Ranks that share too few steps show no straggler."""
        base, candidate = sides
        [one] = base.recordings
        straggler = msgspec.structs.replace(one.report.findings[0], rule="collective-straggler", ranks=[1])
        before = replace(base, recordings=candidate.recordings, of_runs=[AboutRun(findings=[straggler])])
        few = Outcome(rule="collective-straggler", status="not_checked", reason="Too few steps.")
        comparison = compared(before, replace(candidate, of_runs=[AboutRun(outcomes=[few])]))
        [change] = comparison.findings
        assert (change.state, change.reason) == ("not_checked", "Not checked on the candidate: Too few steps.")
