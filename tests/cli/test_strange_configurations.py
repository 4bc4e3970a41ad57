"""Every command beside every configuration that must not be trusted: none runs what it names.

The commands are those of the command line itself, so a new one is covered as soon as it is there. The tests can fail:
each of these configurations does run when `--config` names it, and each command that takes rules runs trusted ones.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from importlib.util import find_spec
from pathlib import Path
from socketserver import BaseServer

import click
import pytest

from tb_tidy_plugin.cli import examined
from tb_tidy_plugin.cli.main import commands, main
from tb_tidy_plugin.cli.places import PLACE
from tb_tidy_plugin.configuration import user_rules
from tests.support.logdirs import trace
from tests.support.owners import Owners
from tests.support.user_rule import forget_user_rules, write_rule

RULE, RULES = "slow_multiplication.py", 'rules = ["checks/slow_multiplication.py"]\n'
ENTRY_POINT, MODULE = "rule-of-a-package", "rule_of_a_package"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="files have no owner and no bits here")


def leaves(group: click.Group, *before: str) -> Iterator[tuple[str, click.Command]]:
    """All commands, also those of groups in it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, *before, name)
        else:
            yield " ".join((*before, name)), command


COMMANDS = dict(leaves(commands))
NAMED_ONLY = {"serve"}  # looks for no configuration
CONFIGURED = [
    name
    for name, command in COMMANDS.items()
    if name not in NAMED_ONLY and any(each.name == "config" for each in command.params)
]
RULED = [name for name in CONFIGURED if name != "annotate"]  # which takes limits only


@dataclass(frozen=True)
class Scene:
    """A folder to be in, and what to look at there.

    Attributes:
        base: this user's own folder, with a home folder and a run in it.
        marker: written by whatever runs.
    """

    base: Path
    owners: Owners
    marker: Path

    @property
    def run(self) -> Path:
        return self.base / "logdir" / "run"

    @property
    def trace(self) -> Path:
        return self.run / "w.1.pt.trace.json"

    @property
    def home(self) -> Path:
        return self.base / "home"

    def rule(self, folder: Path, name: str = RULE) -> Path:
        """Writes a rule that leaves its mark when it is imported."""
        imports = "from collections.abc import Iterator\n"
        marks = f"import pathlib; pathlib.Path({str(self.marker)!r}).touch()\n"
        return write_rule(folder, name, (imports, imports + marks))

    def project(self, at: str = "project", *, rule: bool = True) -> Path:
        """A repository with a configuration that names a rule in it, all of it this user's own."""
        folder = self.base / at
        (folder / ".git").mkdir(parents=True)
        (folder / "src").mkdir()
        (folder / "tb-tidy.toml").write_text(RULES)
        if rule:
            self.rule(folder / "checks")
        return folder


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    scene = Scene(tmp_path / "base", Owners(monkeypatch), tmp_path / "ran")
    trace(scene.trace)
    scene.home.mkdir()
    monkeypatch.setenv("HOME", str(scene.home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(examined, "PLUGINS", "")  # what TensorBoard sees takes seconds, and is not asked here
    yield scene
    forget()


def forget() -> None:
    """Lets the next command load rules as if none had before."""
    forget_user_rules()
    sys.modules.pop(MODULE, None)


@dataclass(frozen=True)
class Look:
    """Where a command is started, what it analyses, and the configuration beside it.

    Attributes:
        found: whether that configuration is read at all; if not, nothing is said.
        options: given to those commands that have them.
    """

    folder: Path
    place: Path | str
    configuration: Path
    found: bool = True
    options: tuple[str, ...] = ()


def beside(scene: Scene, folder: Path) -> Look:
    return Look(folder, scene.run, folder / "tb-tidy.toml")


STRANGE: dict[str, Callable[[Scene], Look]] = {}
COMES_WITH_THE_RUN: set[str] = set()
"""Those of `STRANGE` that are so only for commands that look at runs."""


def strange(make: Callable[[Scene], Look]) -> Callable[[Scene], Look]:
    STRANGE[make.__name__.replace("_", " ")] = make
    return make


def strange_in_the_run(make: Callable[[Scene], Look]) -> Callable[[Scene], Look]:
    COMES_WITH_THE_RUN.add(make.__name__.replace("_", " "))
    return strange(make)


# Somebody else's


@strange
def the_file_is_another_users(scene: Scene) -> Look:
    folder = scene.project()
    scene.owners.give_away(folder / "tb-tidy.toml")
    return beside(scene, folder)


@strange
def the_pyproject_is_another_users(scene: Scene) -> Look:
    folder = scene.project()
    (folder / "tb-tidy.toml").unlink()
    (folder / "pyproject.toml").write_text(f"[tool.tb-tidy]\n{RULES}")
    scene.owners.give_away(folder / "pyproject.toml")
    return Look(folder, scene.run, folder / "pyproject.toml")


@strange
def all_of_it_is_another_users(scene: Scene) -> Look:
    folder = scene.project()
    for path in (folder, *folder.rglob("*")):
        scene.owners.give_away(path)
    return beside(scene, folder)


@strange
def its_folder_is_another_users(scene: Scene) -> Look:
    folder = scene.project()
    scene.owners.give_away(folder)
    return beside(scene, folder)


@strange
def a_folder_above_is_another_users(scene: Scene) -> Look:
    folder = scene.project("shared/deep/project")
    scene.owners.give_away(scene.base / "shared")
    return beside(scene, folder)


@strange
def the_rule_is_another_users(scene: Scene) -> Look:
    folder = scene.project()
    scene.owners.give_away(folder / "checks" / RULE)
    return beside(scene, folder)


@strange
def the_rules_folder_is_another_users(scene: Scene) -> Look:
    folder = scene.project()
    scene.owners.give_away(folder / "checks")
    return beside(scene, folder)


@strange
def it_names_an_entry_point_and_is_another_users(scene: Scene) -> Look:
    folder = scene.project()
    (folder / "tb-tidy.toml").write_text(f'rules = ["{ENTRY_POINT}"]\n')
    scene.owners.give_away(folder / "tb-tidy.toml")
    return beside(scene, folder)


@strange
def only_the_second_rule_is_another_users(scene: Scene) -> Look:
    folder = scene.project()
    (folder / "tb-tidy.toml").write_text('rules = ["checks/slow_multiplication.py", "checks/other.py"]\n')
    scene.owners.give_away(scene.rule(folder / "checks", "other.py"))
    return beside(scene, folder)


# Writable by others


@strange
def all_may_write_the_file(scene: Scene) -> Look:
    folder = scene.project()
    (folder / "tb-tidy.toml").chmod(0o646)
    return beside(scene, folder)


@strange
def a_group_may_write_the_file(scene: Scene) -> Look:
    folder = scene.project()
    scene.owners.share(folder / "tb-tidy.toml")
    return beside(scene, folder)


@strange
def all_may_write_its_folder(scene: Scene) -> Look:
    folder = scene.project()
    folder.chmod(0o757)
    return beside(scene, folder)


@strange
def its_folder_is_like_tmp(scene: Scene) -> Look:
    folder = scene.project()
    folder.chmod(0o1777)
    return beside(scene, folder)


@strange
def all_may_write_a_folder_above(scene: Scene) -> Look:
    folder = scene.project("shared/deep/project")
    (scene.base / "shared").chmod(0o777)
    return beside(scene, folder)


@strange
def all_may_write_the_rule(scene: Scene) -> Look:
    folder = scene.project()
    (folder / "checks" / RULE).chmod(0o666)
    return beside(scene, folder)


@strange
def all_may_write_the_rules_folder(scene: Scene) -> Look:
    folder = scene.project()
    (folder / "checks").chmod(0o1777)
    return beside(scene, folder)


# Further up than anybody looks


@strange
def above_the_repository(scene: Scene) -> Look:
    above = scene.project()
    (above / "nested" / ".git").mkdir(parents=True)
    return Look(above / "nested", scene.run, above / "tb-tidy.toml", found=False)


@strange
def above_a_worktree(scene: Scene) -> Look:
    above = scene.project()
    (above / "nested" / "src").mkdir(parents=True)
    (above / "nested" / ".git").write_text("gitdir: ../.git/worktrees/nested\n")
    return Look(above / "nested" / "src", scene.run, above / "tb-tidy.toml", found=False)


@strange
def above_the_home_folder(scene: Scene) -> Look:
    (scene.base / "tb-tidy.toml").write_text(RULES)
    scene.rule(scene.base / "checks")
    (scene.home / "work").mkdir()
    return Look(scene.home / "work", scene.run, scene.base / "tb-tidy.toml", found=False)


@strange
def in_a_shared_folder_above_that_holds_no_repository(scene: Scene) -> Look:
    shared = scene.project("shared")
    (shared / ".git").rmdir()
    shared.chmod(0o1777)
    for path in shared.rglob("*"):
        scene.owners.give_away(path)
    (shared / "mine").mkdir()
    return Look(shared / "mine", scene.run, shared / "tb-tidy.toml", found=False)


@strange
def in_a_shared_folder_above_that_somebody_made_a_repository(scene: Scene) -> Look:
    shared = scene.project("shared")
    shared.chmod(0o1777)
    for path in shared.rglob("*"):
        scene.owners.give_away(path)
    (shared / "mine").mkdir()
    return Look(shared / "mine", scene.run, shared / "tb-tidy.toml")


# In what is analysed


@strange_in_the_run
def in_the_folder_that_is_analysed(scene: Scene) -> Look:
    run = scene.project("download")
    trace(run / "w.1.pt.trace.json")
    return Look(run, ".", run / "tb-tidy.toml")


@strange_in_the_run
def in_the_project_that_is_analysed(scene: Scene) -> Look:
    folder = scene.project()
    trace(folder / "runs" / "run" / "w.1.pt.trace.json")
    return Look(folder / "src", folder, folder / "tb-tidy.toml")


@strange_in_the_run
def below_the_folder_that_is_analysed(scene: Scene) -> Look:
    folder = scene.project("logdir/run/code")
    return Look(folder, scene.base / "logdir", folder / "tb-tidy.toml")


@strange_in_the_run
def beside_the_trace_that_is_analysed(scene: Scene) -> Look:
    run = scene.project("download")
    return Look(run, trace(run / "w.1.pt.trace.json").name, run / "tb-tidy.toml")


@strange_in_the_run
def in_the_folder_that_an_address_names(scene: Scene) -> Look:
    run = scene.project("download")
    trace(run / "w.1.pt.trace.json")
    return Look(run, run.as_uri(), run / "tb-tidy.toml")


@strange_in_the_run
def in_a_run_that_a_link_leads_to(scene: Scene) -> Look:
    run = scene.project("download")
    trace(run / "w.1.pt.trace.json")
    (scene.base / "mine").mkdir()
    (scene.base / "mine" / "latest").symlink_to(run)
    return Look(run, scene.base / "mine", run / "tb-tidy.toml", options=("--follow-links",))


@strange_in_the_run
def beside_a_trace_that_a_link_leads_to(scene: Scene) -> Look:
    run = scene.project("download")
    (scene.base / "mine").mkdir()
    (scene.base / "mine" / "w.1.pt.trace.json").symlink_to(trace(run / "w.1.pt.trace.json"))
    return Look(run, scene.base / "mine", run / "tb-tidy.toml", options=("--follow-links",))


@strange_in_the_run
def beside_a_link_to_the_trace_that_is_analysed(scene: Scene) -> Look:
    run = scene.project("download")
    (run / "w.1.pt.trace.json").symlink_to(scene.trace)
    return Look(run, run / "w.1.pt.trace.json", run / "tb-tidy.toml")


@strange_in_the_run
def the_rule_is_in_the_folder_that_is_analysed(scene: Scene) -> Look:
    folder = scene.project(rule=False)
    (folder / "tb-tidy.toml").write_text(f'rules = ["../logdir/run/{RULE}"]\n')
    scene.rule(scene.run)
    return beside(scene, folder)


# By links


@strange_in_the_run
def a_link_into_the_folder_that_is_analysed(scene: Scene) -> Look:
    folder = scene.project()
    (folder / "tb-tidy.toml").rename(scene.run / "harmless.toml")
    (folder / "tb-tidy.toml").symlink_to("../logdir/run/harmless.toml")
    return beside(scene, folder)


@strange_in_the_run
def a_link_out_of_the_folder_that_is_analysed(scene: Scene) -> Look:
    scene.rule(scene.run / "checks")
    (scene.run / "tb-tidy.toml").symlink_to(scene.project() / "tb-tidy.toml")
    return beside(scene, scene.run)


@strange
def a_link_of_another_user(scene: Scene) -> Look:
    folder, other = scene.project(), scene.base / "other.toml"
    (folder / "tb-tidy.toml").rename(other)
    (folder / "tb-tidy.toml").symlink_to(other)
    scene.owners.give_away(folder / "tb-tidy.toml")
    return beside(scene, folder)


@strange
def a_link_to_a_file_of_another_user(scene: Scene) -> Look:
    folder, other = scene.project(), scene.base / "other.toml"
    (folder / "tb-tidy.toml").rename(other)
    (folder / "tb-tidy.toml").symlink_to(other)
    scene.owners.give_away(other)
    return beside(scene, folder)


@strange
def a_rule_by_way_of_a_folder_that_all_may_write(scene: Scene) -> Look:
    folder, shared = scene.project(), scene.base / "shared"
    (folder / "checks").rename(scene.base / "checks")
    shared.mkdir()
    (shared / "way").symlink_to(scene.base / "checks")
    shared.chmod(0o1777)
    (folder / "checks").symlink_to("../shared/way")
    return beside(scene, folder)


def entry_points_of(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that brings a rule."""
    scene.rule(scene.base / "installed", f"{MODULE}.py")
    monkeypatch.syspath_prepend(str(scene.base / "installed"))
    point = EntryPoint(ENTRY_POINT, f"{MODULE}:SlowMultiplication", user_rules.ENTRY_POINTS)
    monkeypatch.setattr(user_rules, "entry_points", lambda group: EntryPoints([point]).select(group=group))


def run(scene: Scene, name: str, look: Look, monkeypatch: pytest.MonkeyPatch, *options: str | Path) -> None:
    """Runs a command as a shell would, with arguments for all that it has."""
    given: list[str] = []
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Argument) and parameter.type is PLACE:
            given.append(str(look.place))
        elif isinstance(parameter, click.Argument) and parameter.required:
            given.append(str(scene.trace) if isinstance(parameter.type, click.Path) else "TT302")
        elif parameter.type is PLACE:
            given += [parameter.opts[0], str(look.place)]
        elif parameter.required:
            given += [parameter.opts[0], "written.json"]
        else:
            given += [option for option in look.options if option in parameter.opts]
    monkeypatch.chdir(look.folder)
    monkeypatch.setattr(BaseServer, "serve_forever", lambda *_, **__: None)
    if find_spec("mcp"):
        monkeypatch.setattr("tb_tidy_plugin.ask.server.serve_over_stdio", lambda _: None)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr(sys, "argv", ["tb-tidy", *name.split(), *given, *map(str, options)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in {0, 1, 2, 130}


@pytest.mark.parametrize("kind", STRANGE)
def test_no_command_runs_what_a_strange_configuration_names(
    scene: Scene, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry_points_of(scene, monkeypatch)
    look = STRANGE[kind](scene)
    for name, command in COMMANDS.items():
        if kind in COMES_WITH_THE_RUN and not any(parameter.type is PLACE for parameter in command.params):
            continue  # which looks at no run
        run(scene, name, look, monkeypatch)
        assert not scene.marker.exists(), name
        said = [line for line in capsys.readouterr().err.splitlines() if "not used" in line]
        assert len(said) == (name in CONFIGURED and look.found), name
        for line in said:
            assert line.startswith(f"tb-tidy: `rules` in `{look.configuration}` is not used: ")
            assert "--config " in line


@pytest.mark.parametrize("kind", STRANGE)
def test_it_does_run_when_it_is_named(scene: Scene, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry_points_of(scene, monkeypatch)
    look = STRANGE[kind](scene)
    run(scene, "rules", look, monkeypatch, "--config", look.configuration)
    assert scene.marker.exists()


TRUSTED: dict[str, Callable[[Scene], Look]] = {}


def trusted(make: Callable[[Scene], Look]) -> Callable[[Scene], Look]:
    TRUSTED[make.__name__.replace("_", " ")] = make
    return make


@trusted
def in_the_current_folder(scene: Scene) -> Look:
    return beside(scene, scene.project())


@trusted
def above_in_the_same_repository(scene: Scene) -> Look:
    folder = scene.project()
    return Look(folder / "src", scene.run, folder / "tb-tidy.toml")


@trusted
def in_a_home_folder_whose_own_place_is_shared(scene: Scene) -> Look:
    (scene.project("home") / ".git").rmdir()
    scene.base.chmod(0o777)
    return Look(scene.home / "src", scene.run, scene.home / "tb-tidy.toml")


@trusted
def below_a_folder_like_tmp(scene: Scene) -> Look:
    folder = scene.project("shared/project")
    (scene.base / "shared").chmod(0o1777)
    return beside(scene, folder)


@trusted
def links_of_ones_own(scene: Scene) -> Look:
    folder = scene.project()
    (folder / "tb-tidy.toml").rename(scene.base / "mine.toml")
    (folder / "tb-tidy.toml").symlink_to("src/../../mine.toml")
    (folder / "checks").rename(scene.base / "checks")
    (folder / "checks").symlink_to(scene.base / "checks")
    return beside(scene, folder)


@trusted
def an_entry_point(scene: Scene) -> Look:
    folder = scene.project()
    (folder / "tb-tidy.toml").write_text(f'rules = ["{ENTRY_POINT}"]\n')
    return beside(scene, folder)


@trusted
def a_project_around_its_runs(scene: Scene) -> Look:
    folder = scene.project()
    trace(folder / "runs" / "x" / "w.1.pt.trace.json")
    return Look(folder, "runs/x", folder / "tb-tidy.toml")


@trusted
def beside_a_run_that_a_link_leads_to_which_is_not_followed(scene: Scene) -> Look:
    folder = scene.project()
    trace(folder / "w.1.pt.trace.json")
    (scene.run / "elsewhere").symlink_to(folder)
    return beside(scene, folder)


@pytest.mark.parametrize("kind", TRUSTED)
def test_each_command_that_takes_rules_runs_those_that_can_be_trusted(
    scene: Scene, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry_points_of(scene, monkeypatch)
    look = TRUSTED[kind](scene)
    for name in COMMANDS:
        forget()
        run(scene, name, look, monkeypatch)
        assert scene.marker.exists() == (name in RULED), name
        assert "not used" not in capsys.readouterr().err, name
        scene.marker.unlink(missing_ok=True)


def test_there_are_commands_and_strange_configurations() -> None:
    """Should they no longer be found, everything above would pass."""
    assert {"bench", "cache clear", "check", "doctor"} <= set(COMMANDS)
    assert len(RULED) >= 6
    assert len(STRANGE) >= 24
