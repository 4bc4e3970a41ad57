"""What an install ships, and what it does about the frontend when Node.js is there, missing or failing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import setup

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.slow

PARTS = ("_args.pxi", "_events.pxi", "_expected.pxi", "_interned.pxi", "_json.pxi")  # of `_scan.pyx`
SHIPPED = ("LICENSE", "CHANGELOG.md", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py")


def copy_of_the_checkout(folder: Path) -> Path:
    """The files a build reads, so that no test builds in the checkout itself."""
    for name in SHIPPED:
        shutil.copy(setup.ROOT / name, folder / name)
    unwanted = shutil.ignore_patterns("__pycache__", "*.so", "*.c", *setup.NOT_SOURCES)
    shutil.copytree(setup.PACKAGE, folder / "tb_tidy_plugin", ignore=unwanted)
    shutil.copytree(setup.FRONTEND, folder / "frontend", ignore=unwanted)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return copy_of_the_checkout(tmp_path)


@pytest.fixture(scope="module")
def built_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose `wheels/` holds the wheel that pip builds of it; nobody runs what is compiled."""
    checkout = copy_of_the_checkout(tmp_path_factory.mktemp("checkout"))
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", str(checkout / "wheels")]
    command = [sys.executable, "-m", "pip", "wheel", *options, "."]
    subprocess.run(command, cwd=checkout, env=os.environ | {"CFLAGS": "-O0"}, check=True)
    return checkout


@pytest.fixture(scope="module")
def wheel_files(built_checkout: Path) -> dict[str, str]:
    """Name and text of every file in the wheel."""
    [wheel] = (built_checkout / "wheels").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name).decode("latin-1") for name in archive.namelist()}


@pytest.fixture
def translated(checkout: Path, built_checkout: Path) -> Path:
    """A checkout with the C that Cython has made of its sources."""
    for made in (built_checkout / "tb_tidy_plugin").rglob("*.c"):
        shutil.copyfile(made, checkout / made.relative_to(built_checkout))
    return checkout


def run_setup(
    checkout: Path, *arguments: str, path: str = "", mode: str = "auto", extension: str = "skip"
) -> subprocess.CompletedProcess[str]:
    """`python setup.py`; where `path` is empty there is neither npm nor a compiler."""
    environment = os.environ | {"PATH": path, "TORCHTIDY_FRONTEND": mode, "TORCHTIDY_EXTENSION": extension}
    command = [sys.executable, "setup.py", *arguments]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def path_with_npm(folder: Path, script: str) -> str:
    """A PATH on which npm is `script`, run in the frontend's folder."""
    npm = folder / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(f'#!/bin/sh\necho "npm $*" >> ../npm-calls\n{script}\n')
    npm.chmod(0o755)
    return os.pathsep.join([str(npm.parent), os.defpath])


def npm_calls(checkout: Path) -> list[str]:
    calls = checkout / "npm-calls"
    return calls.read_text().splitlines() if calls.exists() else []


def make_stale(checkout: Path) -> None:
    (checkout / "frontend" / "src" / "new.ts").write_text("export {};\n")


def static(checkout: Path) -> Path:
    return checkout / setup.STATIC.relative_to(setup.ROOT)


def shipped_bundle(checkout: Path) -> str:
    return (checkout / "build" / "lib" / setup.BUNDLE.relative_to(setup.ROOT)).read_text("utf-8")


def test_the_committed_bundle_belongs_to_the_sources_beside_it() -> None:
    assert setup.is_current(), "run `npm run build` in frontend/ and commit what it writes"


def test_setup_and_stamp_script_compute_the_same_hash(tmp_path: Path) -> None:
    frontend = tmp_path / "frontend"
    for name in ("b.ts", "a/z.ts", "a-b.ts", "A.ts", ".hidden", *(f"src/{name}/in.js" for name in setup.NOT_SOURCES)):
        (frontend / name).parent.mkdir(parents=True, exist_ok=True)
        (frontend / name).write_bytes(b"one\r\ntwo\nthree\r\r\n")
    (frontend / "image.png").write_bytes(bytes(range(256)))
    shutil.copy(setup.FRONTEND / "stamp.mjs", frontend)
    static(tmp_path).mkdir(parents=True)
    subprocess.run(["node", "stamp.mjs"], cwd=frontend, check=True)
    assert (static(tmp_path) / ".stamp").read_text().strip() == setup.source_hash(frontend)


def test_setup_and_stamp_script_skip_the_same_names() -> None:
    script = (setup.FRONTEND / "stamp.mjs").read_text("utf-8")
    [skipped] = re.findall(r"SKIP = new Set\(\[(.*?)\]\)", script, re.DOTALL)
    assert set(re.findall(r"'(.+?)'", skipped)) == setup.NOT_SOURCES


def test_a_change_of_line_ends_is_no_change_of_the_sources(tmp_path: Path) -> None:
    (tmp_path / "a.ts").write_bytes(b"one\ntwo\n")
    unix = setup.source_hash(tmp_path)
    (tmp_path / "a.ts").write_bytes(b"one\r\ntwo\r\n")
    assert setup.source_hash(tmp_path) == unix


def test_the_wheel_has_every_module_but_the_developers_own(wheel_files: dict[str, str]) -> None:
    modules = {path.relative_to(setup.ROOT).as_posix() for path in setup.PACKAGE.rglob("*.py")}
    expected = {name for name in modules if not name.startswith("tb_tidy_plugin/dev/")}
    assert {name for name in wheel_files if name.endswith(".py")} == expected


def test_the_wheel_has_the_whole_bundle_and_its_stamp(wheel_files: dict[str, str]) -> None:
    folder = setup.STATIC.relative_to(setup.ROOT).as_posix()
    bundle = {path.relative_to(setup.ROOT).as_posix() for path in setup.STATIC.rglob("*") if path.is_file()}
    assert {f"{folder}/index.js", f"{folder}/.stamp"} <= bundle
    assert {name for name in wheel_files if name.startswith(folder)} == bundle


def test_the_wheel_has_the_style_of_the_page_that_is_exported(wheel_files: dict[str, str]) -> None:
    assert "tb_tidy_plugin/render/page.css" in wheel_files


def test_the_wheel_has_the_licences_of_the_packages_in_the_page(wheel_files: dict[str, str]) -> None:
    """Of those that the page depends on, and of those that these bring along, in the versions that are bundled."""
    notices = setup.NOTICES.read_text("utf-8")
    locked = json.loads((setup.FRONTEND / "package-lock.json").read_text("utf-8"))["packages"]
    shipped = [name for name in locked if name and not locked[name].get("dev")]
    named = re.findall(r"^(\S+) (\S+) \((.+)\)$", notices, re.MULTILINE)
    versions = {name: (locked[f"node_modules/{name}"]["version"], locked[f"node_modules/{name}"]["license"])
                for name, _, _ in named}  # fmt: skip
    assert {name: (version, licence) for name, version, licence in named} == versions
    assert {f"node_modules/{name}" for name, _, _ in named} == {*shipped}
    assert notices.count("Copyright (c)") >= len(named)
    copies = [text for name, text in wheel_files.items() if name.endswith("THIRD_PARTY_NOTICES.txt")]
    assert [text.encode("latin-1").decode() for text in copies] == [notices] * 2, "with the page, and in the metadata"


def test_no_tool_is_a_dependency_of_the_page() -> None:
    asked = json.loads((setup.FRONTEND / "package.json").read_text("utf-8"))
    assert "vite" in asked["devDependencies"]
    sources = "".join(path.read_text("utf-8") for path in (setup.FRONTEND / "src").rglob("*.ts*"))
    assert [name for name in asked["dependencies"] if f"from '{name}" not in sources] == []


def test_without_the_licences_of_what_is_in_the_page_the_build_stops(checkout: Path) -> None:
    (static(checkout) / setup.NOTICES.name).unlink()
    done = run_setup(checkout, "build_py")
    assert (done.returncode, "THIRD_PARTY_NOTICES.txt" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/me/mine.git", "https://github.com/me/mine"),
        ("https://user:secret@example.org/group/sub/mine", "https://example.org/group/sub/mine"),
        ("git@github.com:me/mine.git", "https://github.com/me/mine"),
        ("ssh://git@example.org/me/mine.git/", "https://example.org/me/mine"),
        ("/srv/git/mine.git", ""),
        ("../mine", ""),
        ("file:///srv/git/mine.git", ""),
    ],
)
def test_the_address_of_the_repository_is_that_of_where_the_clone_comes_from(remote: str, address: str) -> None:
    assert setup.public_address(remote) == address


def test_pictures_and_links_of_the_description_work_outside_of_the_repository() -> None:
    readme = (setup.ROOT / "README.md").read_text("utf-8")
    shown = setup.with_addresses(readme, "https://example.org/me/mine", "v1")
    targets = re.findall(r"\]\(([^)\s]+)", shown)
    assert "https://example.org/me/mine/raw/v1/docs/screens/findings-light.png" in targets
    assert "https://example.org/me/mine/blob/v1/docs/install.md" in targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    assert setup.with_addresses(readme, "", "v1") == readme


def test_the_metadata_has_the_links_of_the_project(checkout: Path) -> None:
    environment = os.environ | {"TORCHTIDY_REPOSITORY": "https://example.org/me/mine/", "TORCHTIDY_EXTENSION": "skip"}
    subprocess.run([sys.executable, "setup.py", "-q", "egg_info"], cwd=checkout, env=environment, check=True)
    metadata = (checkout / "tb_tidy_plugin.egg-info" / "PKG-INFO").read_text("utf-8")
    links = dict(re.findall(r"^Project-URL: (\w+), (\S+)$", metadata, re.MULTILINE))
    assert links["Source"] == "https://example.org/me/mine"
    assert {*links} == {"Source", "Documentation", "Changelog", "Issues"}
    assert "https://example.org/me/mine/raw/v" in metadata


def test_the_wheel_has_the_skill_file(wheel_files: dict[str, str]) -> None:
    assert "tb_tidy_plugin/ask/skill.md" in wheel_files


def test_the_wheel_has_nothing_beside_the_package_and_its_metadata(wheel_files: dict[str, str]) -> None:
    tops = {name.split("/")[0] for name in wheel_files}
    [metadata] = (name for name in tops if name.endswith(".dist-info"))
    assert tops == {"tb_tidy_plugin", metadata}


def test_the_wheel_names_the_command_and_the_plugin(wheel_files: dict[str, str]) -> None:
    [text] = (text for name, text in wheel_files.items() if name.endswith("entry_points.txt"))
    assert "tb-tidy = tb_tidy_plugin.cli.main:script" in text
    assert "torchtidy = tb_tidy_plugin.plugin.loader:Loader" in text
    assert "torchtidy = tb_tidy_plugin.budgets.pytest_plugin" in text
    assert "torchtidy_graphs = tb_tidy_plugin.capture.graphs:install" in text


def test_the_wheel_does_not_ask_for_torch_unless_benchmarks_are_wanted(wheel_files: dict[str, str]) -> None:
    [text] = (text for name, text in wheel_files.items() if name.endswith("METADATA"))
    torch = [line for line in text.splitlines() if line.startswith("Requires-Dist: torch")]
    assert torch == ['Requires-Dist: torch; extra == "bench"']


def test_a_source_distribution_installs_without_npm(checkout: Path) -> None:
    (checkout / "frontend" / "node_modules").mkdir()
    (checkout / "frontend" / "node_modules" / "in.js").touch()
    (checkout / "tests" / "support").mkdir(parents=True)
    for name in ("test_names.py", "conftest.py", "support/drawn.py"):
        (checkout / "tests" / name).touch()
    assert run_setup(checkout, "--quiet", "sdist", "--formats=zip").returncode == 0
    [archive] = (checkout / "dist").iterdir()
    shutil.unpack_archive(archive, checkout / "unpacked")
    [unpacked] = (checkout / "unpacked").iterdir()
    assert not (unpacked / "frontend" / "node_modules").exists()
    assert not (unpacked / "tests").exists(), "a part of the tests cannot run"
    sources = {path.name for path in (unpacked / "tb_tidy_plugin").rglob("*.p[yx][xi]")}
    compiled = {f"{name}.{end}" for name in ("_nest", "_scan", "_walk") for end in ("pyx", "pyi")}
    assert sources == {*PARTS, *compiled}, "what is compiled is there"
    done = run_setup(unpacked, "build_py")
    assert (done.returncode, "WARNING" in done.stderr) == (0, False)


def test_a_current_bundle_is_shipped_without_asking_npm(checkout: Path) -> None:
    done = run_setup(checkout, "build_py", path=path_with_npm(checkout, "exit 1"))
    assert (done.returncode, npm_calls(checkout)) == (0, [])


def test_a_stale_bundle_is_rebuilt(checkout: Path) -> None:
    make_stale(checkout)
    path = path_with_npm(checkout, "echo rebuilt > ../tb_tidy_plugin/plugin/static/index.js")
    assert run_setup(checkout, "build_py", path=path).returncode == 0
    assert npm_calls(checkout) == ["npm ci --no-audit --no-fund", "npm run build"]
    assert shipped_bundle(checkout) == "rebuilt\n"


def test_a_current_bundle_is_rebuilt_on_request(checkout: Path) -> None:
    run_setup(checkout, "build_py", path=path_with_npm(checkout, ""), mode="build")
    assert "npm run build" in npm_calls(checkout)


def test_a_stale_bundle_is_shipped_as_it_is_on_request(checkout: Path) -> None:
    make_stale(checkout)
    done = run_setup(checkout, "build_py", path=path_with_npm(checkout, ""), mode="skip")
    assert (done.returncode, npm_calls(checkout)) == (0, [])


def test_without_npm_a_stale_bundle_is_shipped_with_a_warning(checkout: Path) -> None:
    make_stale(checkout)
    done = run_setup(checkout, "build_py")
    assert done.returncode == 0
    assert "WARNING: the frontend was not built: npm is not on PATH" in done.stderr
    assert shipped_bundle(checkout) == setup.BUNDLE.read_text("utf-8")


def test_without_npm_and_bundle_the_build_stops_and_says_what_to_install(checkout: Path) -> None:
    shutil.rmtree(static(checkout))
    done = run_setup(checkout, "build_py")
    assert done.returncode == 1
    assert "there is no built frontend. Install Node.js >= 20.19 with npm" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_failed_build_leaves_the_old_bundle_to_ship(checkout: Path) -> None:
    make_stale(checkout)
    done = run_setup(checkout, "build_py", path=path_with_npm(checkout, "exit 1"))
    assert done.returncode == 0
    assert "WARNING: the frontend was not built" in done.stderr


def test_a_failed_build_that_emptied_the_folder_stops_the_install(checkout: Path) -> None:
    make_stale(checkout)
    path = path_with_npm(checkout, "rm -r ../tb_tidy_plugin/plugin/static; exit 1")
    done = run_setup(checkout, "build_py", path=path)
    assert done.returncode == 1
    assert "there is no built frontend" in done.stderr


def test_an_unknown_mode_stops_the_build(checkout: Path) -> None:
    done = run_setup(checkout, "build_py", mode="sometimes")
    assert (done.returncode, "TORCHTIDY_FRONTEND=sometimes is not one of" in done.stderr) == (1, True)


def built(checkout: Path) -> list[str]:
    """Names of what a build compiled."""
    return sorted(path.name.partition(".")[0] for path in (checkout / "build").rglob("*") if path.suffix == ".so")


def test_the_wheel_has_what_is_compiled_and_says_for_which_platform(wheel_files: dict[str, str]) -> None:
    compiled = {name.partition(".")[0] for name in wheel_files if name.endswith((".so", ".pyd"))}
    assert compiled == {f"tb_tidy_plugin/{name}" for name in ("trace/_scan", "profile/_nest", "estimate/_walk")}
    [text] = (text for name, text in wheel_files.items() if name.endswith("WHEEL"))
    assert "Root-Is-Purelib: false" in text


def test_without_a_compiler_the_build_goes_on(translated: Path) -> None:
    done = run_setup(translated, "build", extension="auto")
    assert (done.returncode, built(translated)) == (0, [])


def test_without_a_compiler_the_build_stops_where_one_is_required(translated: Path) -> None:
    done = run_setup(translated, "build", extension="require")
    assert (done.returncode, built(translated)) == (1, [])


def test_a_wheel_for_every_platform_on_request(checkout: Path) -> None:
    assert run_setup(checkout, "build", path=os.environ["PATH"], extension="skip").returncode == 0
    assert built(checkout) == []


def test_releases_have_a_wheel_for_each_python_that_setup_names() -> None:
    wheels = tomllib.loads((setup.ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["cibuildwheel"]
    supported = re.findall(
        r'"Programming Language :: Python :: 3\.(\d+)"', (setup.ROOT / "setup.py").read_text("utf-8")
    )
    assert wheels["build"].split() == [f"cp3{minor}-*" for minor in supported]
    modes = wheels["environment"]
    assert modes["TORCHTIDY_EXTENSION"] in setup.EXTENSION_MODES
    assert modes["TORCHTIDY_FRONTEND"] in setup.MODES


def test_an_unknown_mode_of_the_extension_stops_the_build(checkout: Path) -> None:
    done = run_setup(checkout, "build_py", extension="sometimes")
    assert (done.returncode, "TORCHTIDY_EXTENSION=sometimes is not one of" in done.stderr) == (1, True)


@pytest.mark.parametrize("environment", [".venv-demo", ".venv"])
def test_make_installs_again_once_a_source_of_what_is_compiled_has_changed(checkout: Path, environment: str) -> None:
    shutil.copy(setup.ROOT / "Makefile", checkout)
    pip, installed = f"{environment}/bin/pip", f"{environment}/.installed"
    for name in ("tests/requirements.txt", "tests/constraints.txt", pip, installed):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).touch()
    asked = ["make", "--question", installed]
    assert subprocess.run(asked, cwd=checkout, check=False).returncode == 0
    (checkout / "tb_tidy_plugin" / "trace" / PARTS[0]).touch()
    assert subprocess.run(asked, cwd=checkout, check=False).returncode == 1
