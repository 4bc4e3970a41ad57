"""Two recordings against each other, through the command line."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sample_runs.record import story
from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.dev.generate import ROOT
from tests.support.step_recordings import recording

UNTIDY, TIDY = ROOT / "sample_runs" / "image_classifier_untidy", ROOT / "sample_runs" / "image_classifier_tidy"


def compare(*arguments: str | Path) -> Result:
    return CliRunner().invoke(commands, ["compare", *map(str, arguments)])


def as_json(*arguments: str | Path) -> Any:  # noqa: ANN401 - any JSON
    result = compare(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return recording(tmp_path / "base", 1000), recording(tmp_path / "candidate", 200)


def test_the_sample_runs_tell_a_true_story() -> None:
    answer = as_json(UNTIDY, TIDY)
    assert answer["schema"] == 1
    assert answer["verdict"] == "faster"
    assert answer["step_ratio"]["value"] == pytest.approx(29.3 / 45.5, rel=0.01)
    assert {each["state"] for each in answer["findings"]} == {"gone"}
    assert {each["rule"] for each in answer["findings"]} >= {"dataloader-num-workers-zero", "optimizer-single-tensor"}
    report = json.loads(CliRunner().invoke(commands, ["check", "--format", "json", str(UNTIDY)]).output)
    assert answer["predicted_ns"] == report["runs"][0]["profiles"][0]["joint_saving"]["expected_ns"]
    assert answer["predicted_ns"] < sum(each["predicted_ns"] for each in answer["findings"]), "some share time"
    assert (
        "predicted 15.6 ms per step (less than the sum, since some findings share time)" in compare(UNTIDY, TIDY).output
    )
    assert sum(each["realised_ns"] for each in answer["findings"]) == pytest.approx(answer["realised_ns"], abs=5)


def test_findings_name_files_as_the_repository_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `check` does: those of the side that has them, whichever it is."""
    monkeypatch.chdir(ROOT)
    for sides in ((UNTIDY, TIDY), (TIDY, UNTIDY)):
        named = {place["file"] for each in as_json(*sides)["findings"] for place in each["places"]}
        assert named == {"sample_runs/image_classifier_untidy/train.py"}


@pytest.mark.parametrize("job", ["image_classifier", "decoder_training_gpu"])
def test_the_untidy_sample_run_is_older_than_the_tidy_one(job: str) -> None:
    """The page takes the older run for the one before the change; the times are in the names of the traces."""
    untidy, tidy = (
        int(trace.name.split(".")[1])
        for kind in ("untidy", "tidy")
        for trace in (ROOT / "sample_runs" / f"{job}_{kind}").glob("*.pt.trace.json.gz")
    )
    assert untidy < tidy
    assert story([f"{job}_tidy", "text_generation_eval", f"{job}_untidy"])[:2] == [f"{job}_untidy", f"{job}_tidy"]


@pytest.mark.parametrize("rank", ["rank0", "rank1"])
def test_a_finding_names_the_recording_that_has_it(rank: str, tmp_path: Path) -> None:
    for worker, run in {"rank0": TIDY, "rank1": TIDY, rank: UNTIDY}.items():
        [trace] = run.glob("*.pt.trace.json.gz")
        (tmp_path / f"{worker}.7.pt.trace.json.gz").write_bytes(trace.read_bytes())
    gone, new = as_json(tmp_path, TIDY)["findings"], as_json(TIDY, tmp_path)["findings"]
    assert {(each["state"], each["worker"], each["span"]) for each in gone} == {("gone", rank, "7")}
    assert {(each["state"], each["worker"], each["span"]) for each in new} == {("new", rank, "7")}


@pytest.mark.parametrize("untidy", ["monday", "tuesday"])
def test_a_finding_of_several_runs_names_the_run_that_has_it(untidy: str, tmp_path: Path) -> None:
    """As its run is called in the side's list; a side of one run need not be told."""
    for name in ("monday", "tuesday"):
        shutil.copytree(UNTIDY if name == untidy else TIDY, tmp_path / name)
    gone, new = as_json(tmp_path, TIDY), as_json(TIDY, tmp_path)
    assert gone["base"]["runs"] == ["monday", "tuesday"]
    assert {each["run"] for each in gone["findings"]} == {untidy}
    assert {each["run"] for each in new["findings"]} == {untidy}
    assert f"costs most in run {untidy}" in " ".join(compare(tmp_path, TIDY).output.split())
    assert f"costs most in run `{untidy}`" in compare(TIDY, tmp_path, "--format", "markdown").output
    assert "costs most in run" not in compare(UNTIDY, TIDY).output


def test_a_run_against_itself_is_no_difference() -> None:
    answer = as_json(UNTIDY, UNTIDY)
    assert answer["verdict"] == "no_clear_difference"
    assert {each["state"] for each in answer["findings"]} == {"same"}
    assert (answer["predicted_ns"], answer["realised_ns"]) == (0, 0)
    assert answer["operators"] == []


def test_parts_and_operators_side_by_side(pair: tuple[Path, Path]) -> None:
    answer = as_json(*pair)
    assert [(each["name"], each["base_ns"], each["candidate_ns"]) for each in answer["operators"]] == [
        ("aten::mm", 1_000_000, 200_000)
    ]
    product = next(each for each in answer["ledger"]["entries"] if each["id"] == "cpu:matrix")
    assert (product["base_ns"], product["candidate_ns"]) == (1_000_000, 200_000)
    # Medians of six steps: 1000 µs, the operator, and 2.5 µs.
    assert (answer["base"]["median_ns"], answer["candidate"]["median_ns"]) == (2_002_500, 1_202_500)
    assert answer["realised_ns"] == 800_000


def test_json_has_the_keys_that_others_read(pair: tuple[Path, Path]) -> None:
    answer = as_json(UNTIDY, TIDY)
    assert {"schema", "verdict", "step_ratio", "findings"} <= answer.keys()
    assert answer["step_ratio"].keys() == {"value", "low", "high"}
    assert {"rule", "state", "predicted_ns", "realised_ns", "places"} <= answer["findings"][0].keys()


def test_steps_of_one_recording(tmp_path: Path) -> None:
    """The fifth step holds its operator twice."""
    side = recording(tmp_path / "run", 1000, slow_step=4)
    answer = as_json(side, "--steps", "1-3", "--with", "4")
    assert (answer["base"]["chosen"], answer["candidate"]["chosen"]) == ("1-3", "4")
    # The median of 2001, 2002 and 2003 µs against 3004 µs.
    assert answer["realised_ns"] == -1_002_000
    [row] = answer["operators"]
    assert (row["base_calls"], row["candidate_calls"], row["candidate_ns"]) == (1, 2, 2_000_000)


def test_steps_of_two_recordings(pair: tuple[Path, Path]) -> None:
    answer = as_json(*pair, "--steps", "0-2", "--with", "3-5")
    assert (answer["base"]["median_ns"], answer["candidate"]["median_ns"]) == (2_001_000, 1_204_000)


@pytest.mark.parametrize("arguments", [(), ("--steps", "1-3"), ("--with", "4")])
def test_one_recording_needs_two_ranges(pair: tuple[Path, Path], arguments: tuple[str, ...]) -> None:
    result = compare(pair[0], *arguments)
    assert result.exit_code == 2
    assert "--steps 3-7 --with 8-12" in result.output


def test_a_range_that_is_none_is_refused(pair: tuple[Path, Path]) -> None:
    result = compare(pair[0], "--steps", "x", "--with", "4")
    assert result.exit_code == 2
    assert "Write `3-7`" in result.output


def test_what_makes_numbers_doubtful_comes_first(tmp_path: Path) -> None:
    base, candidate = recording(tmp_path / "a", 100), recording(tmp_path / "b", 100, steps=3)
    assert as_json(base, candidate)["notes"] == ["Only 3 steps on one side: record more for a narrower interval."]
    shapes = as_json(UNTIDY, recording(tmp_path / "c", 100))["notes"]
    assert "Different recorded: stacks, shapes against none." in shapes


class TestRunsAndRanks:
    """The steps of several runs of a folder count together, and runs are not called ranks."""

    def logdir(self, folder: Path, runs: int, *, ranks: int = 1) -> Path:
        for run in range(runs):
            for rank in range(ranks):
                recording(folder / f"run_{run}", 100, worker=f"rank{rank}" if ranks > 1 else "w")
        return folder

    @pytest.mark.parametrize("form", ["text", "markdown", "json"])
    def test_runs_are_pooled_aloud(self, form: str, tmp_path: Path) -> None:
        """Seven runs of six steps against one of twelve."""
        base, candidate = self.logdir(tmp_path / "a", 7), recording(tmp_path / "b" / "one", 100, steps=12)
        output = " ".join(compare(base, candidate, "--format", form).output.replace("\\", "").split())
        assert "Different ranks" not in output
        assert re.search(
            r"The steps of 7 runs count together on the baseline: .*run_0.*run_1.*run_2.* and 4 more\.", output
        )
        assert "on the candidate" not in output
        if form == "text":
            assert "(7 runs, 7 profiles, 42 steps, " in output
            assert "(1 profile, 12 steps, " in output

    def test_the_same_runs_on_both_sides_need_one_sentence(self, tmp_path: Path) -> None:
        base, candidate = (self.logdir(tmp_path / side, 2) for side in ("a", "b"))
        [note] = as_json(base, candidate)["notes"]
        assert note == (
            "The steps of 2 runs count together on both sides: `run_0` and `run_1`. "
            "If these are not recordings of one program, compare one run with one run."
        )

    def test_ranks_of_one_run_are_ranks(self, tmp_path: Path) -> None:
        base, candidate = self.logdir(tmp_path / "a", 1, ranks=4), self.logdir(tmp_path / "b", 1, ranks=2)
        answer = as_json(base, candidate)
        assert [(answer[side]["ranks"], len(answer[side]["runs"])) for side in ("base", "candidate")] == [
            (4, 1),
            (2, 1),
        ]
        assert [note for note in answer["notes"] if "rank" in note or "runs" in note] == [
            "Different ranks: 4 against 2."
        ]
        assert "(4 ranks, 4 profiles, 24 steps, " in " ".join(compare(base, candidate).output.split())

    def test_runs_of_several_ranks_are_both(self, tmp_path: Path) -> None:
        base, candidate = self.logdir(tmp_path / "a", 3, ranks=2), self.logdir(tmp_path / "b", 1, ranks=2)
        answer = as_json(base, candidate)
        assert (answer["base"]["ranks"], len(answer["base"]["runs"]), answer["base"]["profiles"]) == (2, 3, 6)
        assert not [note for note in answer["notes"] if note.startswith("Different")]
        assert "(3 runs of up to 2 ranks, 6 profiles, " in " ".join(compare(base, candidate).output.split())

    def test_recordings_that_state_no_rank_are_not_ranks(self, tmp_path: Path) -> None:
        for name in ("monday", "tuesday", "wednesday"):
            recording(tmp_path / "a", 100, worker=name)
        answer = as_json(tmp_path / "a", recording(tmp_path / "b", 100))
        assert (answer["base"]["ranks"], answer["base"]["profiles"]) == (1, 3)
        assert not [note for note in answer["notes"] if note.startswith("Different")]


@pytest.mark.parametrize(("limit", "code"), [("regression", 1), ("regression:60%", 1), ("regression:70%", 0)])
def test_fail_on_a_regression_beyond_what_is_allowed(pair: tuple[Path, Path], limit: str, code: int) -> None:
    """The step takes 1.665 times as long."""
    faster, slower = pair[1], pair[0]
    assert compare(faster, slower, "--fail-on", limit).exit_code == code
    assert compare(slower, faster, "--fail-on", limit).exit_code == 0


@pytest.mark.parametrize("limit", ["regression:x%", "slower", "regression:-1%"])
def test_a_limit_that_makes_no_sense_is_refused(pair: tuple[Path, Path], limit: str) -> None:
    assert compare(*pair, "--fail-on", limit).exit_code == 2


def test_a_side_that_cannot_be_read_is_said(pair: tuple[Path, Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "w.pt.trace.json").write_text("{")
    result = compare(pair[0], broken)
    assert result.exit_code == 2
    assert "nothing in" in result.output


def test_text_and_markdown_hold_the_verdict_and_the_promise() -> None:
    text, markdown = compare(UNTIDY, TIDY).output, compare(UNTIDY, TIDY, "--format", "markdown").output
    for output in (text, markdown):
        assert "Faster" in output
        assert "realised" in output
        assert "dataloader-num-workers-zero" in output
    assert markdown.startswith("### Faster: step time ×0.6")


def test_names_from_a_trace_are_no_markup(tmp_path: Path) -> None:
    base = recording(tmp_path / "a", 1000, name="<b>|@all\x1b[31m")
    candidate = recording(tmp_path / "b", 10, name="<b>|@all\x1b[31m")
    assert "\x1b" not in compare(base, candidate).output
