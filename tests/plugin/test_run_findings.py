"""Findings about several ranks: who counts, when they are worked out again, and that they outlive what is given up."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tb_tidy_plugin.plugin import profiles as module
from tb_tidy_plugin.plugin.analysis import WORKER, AnalysisSettings
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.profiles import KEPT_BYTES, Profiles
from tb_tidy_plugin.plugin.run_findings import RunFindings, RunPart
from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.words.errors import ConfigurationError
from tests.support.drawn_runs import draw_run
from tests.support.recorded_ranks import record
from tests.support.waiting import until

FIRST, LATE = Key("run", "host_0", "10"), Key("run", "host_1", "11")
STRAGGLER = "collective-straggler"


@pytest.fixture(autouse=True)
def _always_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRESH_S", 0.0)
    monkeypatch.setattr(module, "LOOK_PATIENCE_S", 60.0)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two ranks, of which the second comes 7 ms late to every all_reduce."""
    record(tmp_path / "logs" / "run", 0, comes_us=1000)
    record(tmp_path / "logs" / "run", 1, comes_us=8000)
    return tmp_path / "logs"


def started(logs: Path, kept_bytes: int = KEPT_BYTES, configuration: Path | None = None) -> Profiles:
    profiles = Profiles([Logdir(str(logs))], WORKER, kept_bytes, AnalysisSettings(configuration))
    profiles.start()
    until(lambda: not profiles.scanning)
    return profiles


def finish(profiles: Profiles, key: Key) -> None:
    *_, last = profiles.progress(key)
    assert last.state == "done", last.problem


def found_about(profiles: Profiles) -> list[tuple[str, list[int]]]:
    report = profiles.report(*FIRST).report
    assert [profile.worker for profile in report.profiles] in ([], ["host_0"]), "only what was asked for"
    return [(finding.rule, finding.ranks) for finding in report.findings]


def test_a_rank_alone_says_nothing_of_the_run(logs: Path) -> None:
    profiles = started(logs)
    finish(profiles, FIRST)
    answer = profiles.report(*FIRST)
    assert (answer.ranks, answer.report.outcomes, answer.report.findings) == ([0], [], [])
    assert answer.pending == 1


def test_each_profile_of_a_run_comes_with_what_all_that_are_done_show(logs: Path) -> None:
    profiles = started(logs)
    finish(profiles, FIRST)
    assert found_about(profiles) == []
    finish(profiles, LATE)
    assert (STRAGGLER, [1]) in found_about(profiles)
    answer = profiles.report(*FIRST)
    assert (answer.ranks, answer.pending) == ([0, 1], 0)
    assert STRAGGLER in {outcome.rule for outcome in answer.report.outcomes if outcome.status == "found"}


def test_one_rank_is_looked_at_without_the_others_unless_all_are_asked_for(logs: Path) -> None:
    profiles = started(logs)
    finish(profiles, FIRST)
    late = {profile.worker: profile for profile in profiles.runs().runs[0].profiles}["host_1"]
    assert late.state == "queued"
    profiles.report(*FIRST, every_rank=True)
    until(lambda: profiles.report(*FIRST).ranks == [0, 1])
    assert (STRAGGLER, [1]) in found_about(profiles)


def test_a_trace_that_cannot_be_read_is_not_waited_for(logs: Path) -> None:
    (logs / "run" / "host_2.12.pt.trace.json").touch()
    profiles = started(logs)
    assert profiles.report(*FIRST, every_rank=True).pending == 3
    until(lambda: profiles.report(*FIRST).pending == 0)
    assert profiles.report(*FIRST).ranks == [0, 1]


def test_what_was_given_up_for_want_of_memory_still_counts_and_is_not_asked_for_again(logs: Path) -> None:
    profiles = started(logs, kept_bytes=0)
    finish(profiles, LATE)
    finish(profiles, FIRST)
    answer = profiles.report(*FIRST, every_rank=True)
    assert answer.ranks == [0, 1]
    late = {profile.worker: profile for profile in profiles.runs().runs[0].profiles}["host_1"]
    assert late.state == "queued", "given up, and not wanted"


def test_a_rank_that_was_recorded_anew_counts_only_when_it_is_done_again(logs: Path) -> None:
    profiles = started(logs)
    finish(profiles, FIRST)
    finish(profiles, LATE)
    record(logs / "run", 1, comes_us=1000)
    assert found_about(profiles) == []
    assert profiles.report(*FIRST).ranks == [0]
    finish(profiles, LATE)
    assert profiles.report(*FIRST).ranks == [0, 1]
    assert STRAGGLER not in {rule for rule, _ in found_about(profiles)}


def test_the_configuration_chooses_among_rules_of_runs_too(logs: Path, tmp_path: Path) -> None:
    file = tmp_path / "tb-tidy.toml"
    file.write_text(f'ignore = ["{STRAGGLER}"]\n')
    profiles = started(logs, configuration=file)
    finish(profiles, FIRST)
    finish(profiles, LATE)
    answer = profiles.report(*FIRST)
    assert answer.ranks == [0, 1]
    assert STRAGGLER not in {outcome.rule for outcome in answer.report.outcomes}


class TestTheAnswer:
    """By hand-made summaries, without a logdir."""

    def parts(self, *late_us: int, version: int = 1) -> dict[Key, RunPart]:
        ranks = draw_run(*[late_us] * 6).ranks
        return {
            Key("run", rank.worker, ""): RunPart(version, msgspec.Raw(msgspec.json.encode([rank]))) for rank in ranks
        }

    def test_is_the_same_as_long_as_its_parts_are(self) -> None:
        findings, parts = RunFindings(None), self.parts(0, 3000, 0)
        assert findings.about("run", parts)[0] is findings.about("run", dict(parts))[0]
        assert findings.about("run", parts)[1] == [0, 1, 2]

    def test_is_worked_out_anew_when_a_part_is_another_version(self) -> None:
        findings = RunFindings(None)
        (late,) = findings.about("run", self.parts(0, 3000, 0))[0].findings
        assert late.ranks == [1]
        assert findings.about("run", self.parts(0, 0, 0, version=2))[0].findings == []

    def test_names_the_fault_of_a_configuration_that_broke_meanwhile(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError):
            RunFindings(tmp_path / "gone.toml").about("run", self.parts(0, 3000, 0))

    def test_asks_for_no_configuration_where_there_is_nothing_to_check(self, tmp_path: Path) -> None:
        assert RunFindings(tmp_path / "gone.toml").about("run", {})[0].outcomes == []
