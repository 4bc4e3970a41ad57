"""What a configuration given to TensorBoard does to the analyses of profiles, with the package's own worker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tb_tidy_plugin.plugin.analysis import WORKER
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.plugin.timeline_worker import LanesQuestion
from tb_tidy_plugin.plugin.timelines import Timelines
from tb_tidy_plugin.words.errors import TraceError
from tests.support.logdirs import trace
from tests.support.profiles import LIMIT_S, RUN, finished, started, states
from tests.support.user_rule import write_rule
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("always_looks_again")

RULES = 'select = ["user"]\nrules = ["checks/slow_multiplication.py"]\n'


class TestConfiguration:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        write_rule(tmp_path / "checks")
        path = tmp_path / "tb-tidy.toml"
        path.write_text(RULES)
        return path

    def findings(self, profiles: Profiles) -> list[str]:
        [profile] = profiles.report("run").report.profiles
        return [finding.rule for finding in profile.findings]

    def test_its_rules_are_checked(self, path: Path, file: Path) -> None:
        trace(path, operators=9)
        profiles = started(path.parents[1], WORKER, configuration=file)
        assert finished(profiles).state == "done"
        assert self.findings(profiles) == ["slow-multiplication"]

    def test_one_in_the_logdir_is_not_read(self, path: Path) -> None:
        for folder in (path.parent, path.parents[1]):
            (folder / "tb-tidy.toml").write_text("=")
        assert finished(started(path.parents[1], WORKER)).state == "done"

    def test_a_broken_one_is_said_and_a_mended_one_is_used(self, path: Path, file: Path) -> None:
        trace(path, operators=9)
        file.write_text('rules = ["checks/gone.py"]')
        profiles = started(path.parents[1], WORKER, configuration=file)
        broken = finished(profiles)
        assert (broken.state, profiles.report("run").report.profiles) == ("error", [])
        assert broken.problem is not None
        assert broken.problem.error == f"There is no file `{file.parent / 'checks/gone.py'}`, which `rules` names."
        assert broken.problem.advice == "Check the path in `rules`."
        file.write_text(RULES)
        until(lambda: states(profiles)["run"].version > broken.version)
        mended = finished(profiles)
        assert (mended.state, self.findings(profiles)) == ("done", ["slow-multiplication"])

    def test_its_limits_hold_for_reports_and_timelines(self, path: Path, file: Path) -> None:
        profiles = started(path.parents[1], WORKER, configuration=file)
        assert finished(profiles).state == "done"
        file.write_text("[limits]\nmax-text-gb = 1e-8\n")
        with pytest.raises(TraceError, match="the limit `max-text-gb`"):
            Timelines(profiles).answer(RUN, LanesQuestion(), LIMIT_S)
        refused = finished(started(path.parents[1], WORKER, configuration=file))
        assert (refused.state, refused.problem and "--torchtidy_config" in refused.problem.advice) == ("error", True)

    def test_a_rule_that_cannot_be_imported_is_told_with_its_line(self, path: Path, file: Path) -> None:
        (file.parent / "checks" / "slow_multiplication.py").write_text("import sys\nsys.exit('enough')\n")
        broken = finished(started(path.parents[1], WORKER, configuration=file))
        assert broken.problem is not None
        assert "line 2 of" in broken.problem.error
        assert "SystemExit: enough" in broken.problem.error

    def test_a_path_that_is_no_text(self, path: Path, tmp_path: Path) -> None:
        file = tmp_path / os.fsdecode(b"caf\xe9.toml")
        file.write_text("=")
        broken = finished(started(path.parents[1], WORKER, configuration=file))
        assert broken.problem is not None
        assert "caf\ufffd.toml` is not valid TOML" in broken.problem.error
