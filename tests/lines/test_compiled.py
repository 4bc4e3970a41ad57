"""The lines behind compiled kernels are right: on programs whose marks prove them, and which the capture cannot see."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.lines import line_costs
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.places import places_of
from tb_tidy_plugin.torchfacts.inductor import is_generated
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.compiled_code import CompiledCode
from tests.lines.compiled_truth import PROGRAMS, Kernel, kernels, moved, recorded, without_side_file

CHOSEN = ("custom", "broken", "equal", "equal again", "joined", "in_loop", "of_two_sizes")
"""Programs of few kernels, as a compiler takes its time for each; `python -m tests.lines` judges all."""

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@dataclass(frozen=True)
class Recordings:
    """Made by three processes; the second found what the first had compiled in Inductor's cache."""

    cold: Path
    moved: Path
    programs_moved: Path
    plain: Path
    cache: Path
    notes: tuple[dict[Path, int], dict[Path, int]]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    folder = tmp_path_factory.mktemp("compiled")
    cache, programs = folder / "cache", moved(folder / "programs")
    cold = recorded(PROGRAMS, folder / "cold", cache, CHOSEN)
    notes = noted(cache)
    again = recorded(programs, folder / "moved", cache, CHOSEN)
    return Recordings(cold, again, programs, without_side_file(cold, folder / "plain"), cache, (notes, noted(cache)))


def noted(cache: Path) -> dict[Path, int]:
    """When each file of the capture in Inductor's cache was written, in ns."""
    return {path: path.stat().st_mtime_ns for path in (cache / "torchtidy").iterdir()}


def wrong(found: list[Kernel]) -> list[tuple[object, ...]]:
    return [(each.name, each.is_backward, each.true, each.place) for each in found if each.verdict != "exact"]


def line_of(programs: Path, code: str, file: str = "programs.py") -> int:
    lines = (programs / file).read_text(encoding="utf-8").splitlines()
    (number,) = (at for at, line in enumerate(lines, 1) if code in line)
    return number


def profile_of(trace: Path) -> Profile:
    return Profile(read_with_side_files(trace))


def compiled_in(trace: Path) -> CompiledCode:
    code = profile_of(trace).metadata.captured.compiled
    assert code is not None
    return code


class TestLines:
    def test_both_passes_of_all_programs(self, recordings: Recordings) -> None:
        found = kernels(recordings.cold, PROGRAMS, recordings.cache)
        assert wrong(found) == []
        assert [sum(each.is_backward is of for each in found) for of in (False, True)] == [12, 16]

    def test_of_a_warm_cache_after_the_source_was_moved(self, recordings: Recordings) -> None:
        before, found = (
            kernels(trace, programs, recordings.cache)
            for trace, programs in (
                (recordings.cold, PROGRAMS), (recordings.moved, recordings.programs_moved),
            )
        )  # fmt: skip
        assert wrong(found) == []
        assert [each.name for each in found] == [each.name for each in before]
        assert all(one.true.isdisjoint(other.true) for one, other in zip(before, found, strict=True))
        assert recordings.notes[0] == recordings.notes[1], "nothing was generated a second time"

    def test_equal_functions_share_a_graph_and_have_their_own_lines(self, recordings: Recordings) -> None:
        regions = {region.function: region for region in compiled_in(recordings.cold).regions}
        one, another = regions["one"], regions["another"]
        assert [graph.key for graph in one.graphs] == [graph.key for graph in another.graphs]
        lines = [
            {line for _, line in each.shown}
            for each in kernels(recordings.cold, PROGRAMS, recordings.cache)
            if each.name.startswith("graph_") and "cos_mul_sin" in each.name and not each.is_backward
        ]
        first = line_of(PROGRAMS, "def one(")
        second = line_of(PROGRAMS, "def another(")
        assert lines == [{first + 1, first + 2}, {second + 1, second + 2}]

    def test_of_a_compiled_optimizer_it_is_the_line_that_calls_it(self, recordings: Recordings) -> None:
        profile, source = profile_of(recordings.cold), (PROGRAMS / "programs.py").read_text(encoding="utf-8")
        (row,) = profile.matching("cpp_fused_.*addcdiv", Category.OPERATOR).tolist()
        place = Aligner(profile, lambda _: source.splitlines()).place_of(row)
        assert place is not None
        assert (place.function, place.line) == ("step", line_of(PROGRAMS, "# the compiled optimizer"))

    def test_a_line_s_cost_says_that_it_is_shared(self, recordings: Recordings) -> None:
        profile = profile_of(recordings.cold)
        costs = {cost.line: cost for cost in line_costs(profile, Aligner(profile, lambda _: None)).lines}
        assert costs[line_of(PROGRAMS, "y = x @ w  # 41x43")].shared == 2
        assert costs[line_of(PROGRAMS, "y = x @ w  # 23x29")].shared == 1


class TestWithoutSideFile:
    def test_no_line_is_shown_as_exact(self, recordings: Recordings) -> None:
        found = kernels(recordings.plain, PROGRAMS, recordings.cache)
        assert {each.verdict for each in found} == {"function"}
        assert len(found) == len(kernels(recordings.cold, PROGRAMS, recordings.cache))

    def test_no_generated_file_is_a_place(self, recordings: Recordings) -> None:
        for trace in (recordings.cold, recordings.plain):
            frames = places_of(profile_of(trace)).frames
            assert "programs.py" in {frame.file for frame in frames}
            assert [frame for frame in frames if is_generated(frame.file)] == []


class TestWithCache:
    def test_lines_are_true_and_shown_as_worked_out(self, recordings: Recordings) -> None:
        found = kernels(recordings.plain, PROGRAMS, recordings.cache, reads_cache=True)
        shown = [each for each in found if each.verdict != "function"]
        assert {each.verdict for each in shown} == {"exact"}
        assert {each.place.precision for each in shown if each.place} == {"aligned"}
        assert [sum(each.is_backward is of for each in shown) for of in (False, True)] == [9, 12]

    def test_after_the_source_was_moved_there_is_none(self, recordings: Recordings, tmp_path: Path) -> None:
        plain = without_side_file(recordings.moved, tmp_path / "plain")
        found = kernels(plain, recordings.programs_moved, recordings.cache, reads_cache=True)
        assert {each.verdict for each in found} == {"function"}


class TestSideFile:
    def test_breaks_with_their_lines_and_reasons(self, recordings: Recordings) -> None:
        for trace, programs in (
            (recordings.cold, PROGRAMS), (recordings.moved, recordings.programs_moved),
        ):  # fmt: skip
            found = {each.line: each.reason for each in compiled_in(trace).breaks if each.file == "programs.py"}
            asked, printed = (line_of(programs, code) for code in ("graph_break()", 'print(end="")'))
            assert set(found) == {asked, printed}
            assert "User-inserted" in found[asked]
            assert "`print`" in found[printed]

    def test_recompilations_with_their_reason(self, recordings: Recordings) -> None:
        (found,) = compiled_in(recordings.cold).recompiles
        assert (found.function, found.line) == ("of_two_sizes", line_of(PROGRAMS, "def of_two_sizes("))
        assert found.reason.endswith("tensor 'x' size mismatch at index 0. expected 6, actual 9")

    def test_sources_are_the_user_s_own(self, recordings: Recordings) -> None:
        files = {source.file for source in profile_of(recordings.cold).metadata.captured.sources}
        assert files == {"programs.py", "tests/lines/compiled_recording.py"}

    def test_no_name_of_a_file_has_a_folder_of_this_machine(self, recordings: Recordings) -> None:
        code = compiled_in(recordings.cold)
        files = {frame.file for stack in code.stacks for frame in stack} | {each.file for each in code.breaks}
        assert {"programs.py", "torch/optim/adam.py"} <= files
        assert [file for file in files if Path(file).is_absolute()] == []
