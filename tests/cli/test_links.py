"""Links in the folders that commands take: passed over and said, or followed with `--follow-links`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tb_tidy_plugin.cli.doctor import doctor
from tb_tidy_plugin.cli.examined import of_logdir
from tb_tidy_plugin.cli.main import COMMANDS, commands
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.trace import files
from tb_tidy_plugin.words.errors import NotFoundError
from tests.cli.test_cli import tidy
from tests.support.logdirs import trace

WITHOUT_TRACES = {"cache", "explain", "merge-device-events", "record", "rules", "skill"}
LONG = {"doctor", "mcp", "serve"}  # they start servers; looked at apart
ANSWERING = {"ask"}  # its errors are answers


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A logdir with a run of its own and a link to one elsewhere."""
    files.log_once.cache_clear()
    trace(tmp_path / "logs" / "own" / "w.pt.trace.json")
    trace(tmp_path / "elsewhere" / "w.pt.trace.json")
    (tmp_path / "logs" / "linked").symlink_to(tmp_path / "elsewhere")
    return tmp_path / "logs"


def runs(output: str) -> list[str]:
    return [run["run"] for run in json.loads(output)["runs"]]


class TestCheck:
    def test_says_what_it_passes_over_beside_the_report(self, logs: Path) -> None:
        done = tidy("check", logs, "--format", "json", "--isolated")
        assert (done.returncode, runs(done.stdout)) == (0, ["own"])
        links = f"Skipped links that lead out of `{logs}`: `{logs / 'linked'}`."
        advice = "`--follow-links` follows them, if you trust everything there."
        assert done.stderr == f"tb-tidy: {links} {advice}\n"

    def test_follows_them(self, logs: Path) -> None:
        done = tidy("check", logs, "--format", "json", "--isolated", "--follow-links")
        assert (done.returncode, done.stderr, runs(done.stdout)) == (0, "", ["linked", "own"])

    def test_follows_those_it_is_given(self, logs: Path, tmp_path: Path) -> None:
        file = tmp_path / "mine.json"
        file.symlink_to(logs / "own" / "w.pt.trace.json")
        for given in (file, logs / "linked"):
            done = CliRunner().invoke(commands, ["check", str(given), "--format", "json", "--isolated"])
            assert len(runs(done.stdout)) == 1, done.output


@pytest.mark.parametrize("command", sorted({*COMMANDS} - WITHOUT_TRACES - LONG - ANSWERING))
def test_every_command_that_takes_a_folder_can_follow_them(command: str, logs: Path) -> None:
    """Without the link's run there is nothing to be read, compared or measured."""
    (base,) = (logs / "own").iterdir()
    base = base.rename(base.with_name("w.part"))  # a trace only where it is named
    arguments = {
        "compare": [str(base), str(logs)],
        "bench": [str(logs), "--finding", "none"],
        "verify": ["--before", str(logs), "--promise", str(logs), "--", "no-such-program"],
    }
    given = ["--isolated", *arguments.get(command, [str(logs)])]
    refused = CliRunner().invoke(commands, [command, *given]).exception
    assert isinstance(refused, NotFoundError)
    assert "no trace" in refused.error
    assert "Skipped links" in refused.error
    followed = CliRunner().invoke(commands, [command, "--follow-links", *given]).exception
    assert "no trace" not in str(followed)


def test_a_question_too(logs: Path) -> None:
    given = ["ask", '{"question": "runs"}', "--isolated", "--path", str(logs)]
    (logs / "own" / "w.pt.trace.json").rename(logs / "w.part")
    refused = json.loads(CliRunner().invoke(commands, given).output)
    assert "Skipped links" in refused["error"]
    followed = json.loads(CliRunner().invoke(commands, [*given, "--follow-links"]).output)
    assert [row[1] for row in followed["rows"]] == ["«linked»"]


def test_the_doctor_too(logs: Path) -> None:
    assert "traces 1, runs 1," in of_logdir(logs).text
    assert "traces 2, runs 2," in of_logdir(logs, follow_links=True).text
    assert "follow_links" in {parameter.name for parameter in doctor.params}


@pytest.mark.parametrize(("options", "follows"), [([], False), (["--follow-links"], True)])
def test_the_server_too(logs: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], follows: bool) -> None:
    asked = []

    def stopped(*arguments: object, **named: object) -> Logdir:
        asked.append(named["follow_links"])
        raise KeyboardInterrupt

    monkeypatch.setattr("tb_tidy_plugin.cli.serve.Logdir", stopped)
    CliRunner().invoke(commands, ["serve", "--no-open", *options, str(logs)])
    assert asked == [follows]
