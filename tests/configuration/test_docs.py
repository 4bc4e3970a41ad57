"""The examples in the documentation are run, so that they stay true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tb_tidy_plugin.configuration.checks import job_of
from tb_tidy_plugin.configuration.files import KEYS, ConfigurationSettings, read_configuration
from tests.support.recordings import ROOT
from tests.support.written import event, kineto_text, write

FILE = re.compile(r"^`(?P<name>[\w./-]+)`:\n\n(?P<fence>`{3,})\w+\n(?P<text>.*?)^(?P=fence)$", re.DOTALL | re.MULTILINE)
TOML = re.compile(r"^```toml\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)

EXAMPLES = TOML.findall((ROOT / "docs" / "configuration.md").read_text(encoding="utf-8"))


class TestConfigurationPage:
    @pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.splitlines()[0])
    def test_each_example_is_accepted(self, example: str, tmp_path: Path) -> None:
        path = tmp_path / ("pyproject.toml" if "[tool.tb-tidy]" in example else "tb-tidy.toml")
        path.write_text(example, encoding="utf-8")
        configuration = read_configuration(path)
        assert configuration.settings != ConfigurationSettings()
        if not configuration.settings.rules:
            assert job_of(configuration).rules

    def test_each_key_has_one(self) -> None:
        keys = re.findall(
            r"^### `(.+)`$", (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8"), re.MULTILINE
        )
        assert sorted(keys) == sorted(KEYS)
        assert all(any(key in example for example in EXAMPLES) for key in keys)


class TestRulesOfYourOwn:
    """The worked example of CONTRIBUTING.md, from its text to a finding."""

    @pytest.fixture
    def project(self, tmp_path: Path) -> Path:
        section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Rules of your own\n")[1]
        files = {match["name"]: match["text"] for match in FILE.finditer(section)}
        assert sorted(files) == ["checks/permutation_in_step.py", "checks/test_permutation_in_step.py", "tb-tidy.toml"]
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path

    def run(self, project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", *arguments],
            cwd=project, capture_output=True, text=True, timeout=600, check=False,
            env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip

    def tidy(self, project: Path, *arguments: str) -> str:
        done = self.run(project, "-c", "from tb_tidy_plugin.cli.main import script; script()", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def test_its_test_passes_and_can_fail(self, project: Path) -> None:
        done = self.run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "checks")
        assert "3 passed" in done.stdout, done.stdout
        rule = project / "checks" / "permutation_in_step.py"
        rule.write_text(rule.read_text().replace("~profile.inside", "profile.inside"))
        assert "1 failed" in self.run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "checks").stdout

    def test_it_is_listed_and_explained(self, project: Path) -> None:
        listed = self.tidy(project, "rules")
        assert re.search(r"MY1 +permutation-in-step +user +- +Permutation of a whole data set in a step", listed)
        page = self.tidy(project, "explain", "MY1")
        assert "drawn one number after the other" in page
        assert "min-call-ns = 200000: a permutation of 10,000 numbers" in page

    def test_it_is_checked_with_the_configured_threshold(self, project: Path) -> None:
        step = event("ProfilerStep#1", 0, 10_000, cat="user_annotation")
        calls = [
            event("aten::randperm", 1000, 700),
            event("aten::randperm", 1001, 690),
            event("aten::randperm", 3000, 300),
        ]
        (project / "run").mkdir()
        write(project / "run" / "w.1.pt.trace.json", kineto_text([step, *calls]))
        text = self.tidy(project, "check", "run", "--select", "MY1")
        assert "`torch.randperm` takes 700 µs in a step" in text
        assert "Reported for 500 µs or more" in " ".join(text.split())
        assert "1×" in text, "the call of 300 µs is shorter than the configured threshold"
