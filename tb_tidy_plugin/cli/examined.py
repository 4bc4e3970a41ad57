"""The checks of `tb-tidy doctor`, each of which examines the installation itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from tb_tidy_plugin.system import child
from tb_tidy_plugin.system.compiled import DECODER, EXTENSIONS, is_stale
from tb_tidy_plugin.system.private import complaint_about_folder
from tb_tidy_plugin.torchfacts.aten_table import TORCH as NEWEST_TORCH
from tb_tidy_plugin.trace.cache import default_folder
from tb_tidy_plugin.trace.files import TraceFile, find_traces
from tb_tidy_plugin.trace.remote import AnyPath, size_of
from tb_tidy_plugin.words.errors import NotFoundError, unexpected
from tb_tidy_plugin.words.units import Bytes

_State: TypeAlias = Literal["fine", "optional", "wrong"]
"""State of a check; an `optional` part is missing, and nothing else depends on it."""

DISTRIBUTION = "tb-tidy-plugin"
PLUGIN = "torchtidy"
CHECKOUT = Path(__file__).resolve().parents[2]  # or the folder of all packages
PAGE = CHECKOUT / "tb_tidy_plugin" / "plugin" / "static" / "index.js"
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[^]]*\])?(?:>=(?P<least>[\d.]+))?\s*(?P<marker>;.*)?")
COMPILERS = ("cc", "gcc", "clang", "cl")
REBUILD = f"pip install --force-reinstall --no-deps --no-cache-dir {DISTRIBUTION}"
START_LIMIT_S = 120.0

TENSORBOARD = "tensorboard"
WITHOUT_TENSORBOARD = "no tab in TensorBoard; `tb-tidy serve` shows the same page"
"""TensorBoard is a requirement of the plugin, and the rest works in an installation without it (docs/serve.md)."""

OPTIONAL = {
    "isal": ("gz files are decompressed several times more slowly", "pip install isal"),
    "torch": ("no benchmarks, and no capture in a training script", f"pip install '{DISTRIBUTION}[bench]'"),
    "fsspec": (
        "no logdirs on stores such as s3://",
        f"pip install '{DISTRIBUTION}[remote]' and the store's own package",
    ),
    "libcst": ("no `tb-tidy fix`", f"pip install '{DISTRIBUTION}[fix]'"),
    "mcp": ("no `tb-tidy mcp`", f"pip install '{DISTRIBUTION}[mcp]'"),
    "distributed": ("no `--engine dask://…`", f"pip install '{DISTRIBUTION}[dask]'"),
    "ray": ("no `--engine ray://…`", f"pip install '{DISTRIBUTION}[ray]'"),
}
"""Effects of a missing package, and how to install it."""

PLUGINS = f"""
import sys
sys.path[:] = sys.argv[1:]
from tensorboard import default
loaders = [each for each in default.get_dynamic_plugins() if each.__module__ == "tb_tidy_plugin.plugin.loader"]
if loaders:
    import tb_tidy_plugin.plugin.plugin
print("{PLUGIN}" if loaders else "")
"""
"""Finds plugins as TensorBoard does at its start."""


SMALL_RECORDING = [
    event
    for number in range(3)
    for event in (
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1,
         "ts": 1000 * number, "dur": 990},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1000 * number + 10, "dur": 500,
         "args": {"External id": number + 1, "Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::item", "pid": 1, "tid": 1, "ts": 1000 * number + 600, "dur": 90},
    )
]  # fmt: skip
"""Events of three steps, as the profiler writes them."""


class Check(msgspec.Struct, frozen=True):
    """One question and its answer.

    Attributes:
        name: of a package, or of the checked part.
        text: one sentence, or name and version.
        advice: what to do, empty if there is nothing to do.
    """

    name: str
    state: _State
    text: str
    advice: str = ""


def of_package() -> Iterator[Check]:
    """Required and optional packages with versions, and compiled parts."""
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        text = f"{DISTRIBUTION} is importable but not installed."
        yield Check(
            DISTRIBUTION, "wrong", text, f"TensorBoard finds only installed plugins: pip install {DISTRIBUTION}"
        )
        requirements = []
    for requirement in requirements:
        found = REQUIREMENT.fullmatch(requirement)
        if found is None or found["marker"]:
            continue
        if found["name"] == TENSORBOARD and _version_of(TENSORBOARD) is None:
            text = f"{TENSORBOARD} is not installed: {WITHOUT_TENSORBOARD}."
            yield Check(TENSORBOARD, "optional", text, f"pip install '{TENSORBOARD}>={found['least']}'")
        else:
            yield of_requirement(found["name"], found["least"] or "0")
    for name, (adds, how) in OPTIONAL.items():
        version = _version_of(name)
        if version is not None and name == "torch":
            yield of_torch(version)
        elif version is not None:
            yield Check(name, "fine", f"{name} {version}")
        else:
            yield Check(name, "optional", f"{name} is not installed: {adds}.", how)
    yield of_decoder()


def of_requirement(name: str, least: str) -> Check:
    """Checks that a required package is installed, and new enough."""
    version = _version_of(name)
    if version is None:
        return Check(name, "wrong", f"{name} is not installed.", f"pip install '{name}>={least}'")
    if _numbers(version) < _numbers(least):
        text = f"{name} {version} is too old: {least} is the first version that works."
        return Check(name, "wrong", text, f"pip install --upgrade {name}")
    return Check(name, "fine", f"{name} {version}")


def of_torch(version: str) -> Check:
    """Says if torch is newer than the newest release that was tried."""
    if _numbers(version)[:2] <= _numbers(NEWEST_TORCH)[:2]:
        return Check("torch", "fine", f"torch {version}")
    text = f"torch {version} is newer than {NEWEST_TORCH}, the newest release that this version was tried with."
    return Check(
        "torch", "fine", text, "Operators that are new in it are unknown. If a report looks wrong, report that."
    )


def of_analysis() -> Check:
    """Checks that a recording can be analysed, whatever the versions of all packages."""
    name, text = "analysis", "A small recording can be analysed."
    advice = "Update all packages: `pip install --upgrade --upgrade-strategy eager tb-tidy-plugin`."
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "small.pt.trace.json")
        path.write_bytes(msgspec.json.encode({"traceEvents": SMALL_RECORDING}))
        try:
            from tb_tidy_plugin.analysis.job import Job
            from tb_tidy_plugin.analysis.paths import analyze_path

            report = analyze_path(path, Job())
        except Exception as problem:  # noqa: BLE001 - of whatever package
            return Check(
                name, "wrong", f"A small recording cannot be analysed. {unexpected(problem, name).error}", advice
            )
    profiles = [profile for run in report.runs for profile in run.profiles]
    errors = [each.error for each in report.problems]
    errors += [str(each.reason) for each in (profiles[0].outcomes if profiles else ()) if each.status == "failed"]
    if not errors and [each.events for each in profiles] != [len(SMALL_RECORDING)]:
        errors = [f"{sum(each.events for each in profiles)} of its {len(SMALL_RECORDING)} events were read."]
    if errors:
        return Check(name, "wrong", f"A small recording cannot be analysed. {errors[0]}", advice)
    return Check(name, "fine", text)


def of_decoder() -> Check:
    """Checks that the compiled decoder exists and can be loaded, and that all compiled parts are current."""
    name = "compiled decoder"
    if old := [each for each in EXTENSIONS if is_stale(each)]:
        text = f"Some compiled modules are older than their sources and not used, which is slower: {', '.join(old)}."
        return Check(name, "optional", text, f"Install the checkout again: run `pip install --editable {CHECKOUT}`.")
    if find_spec(DECODER) is None:
        text = "The compiled decoder is missing. Results are the same, but traces are read several times more slowly."
        if any(map(shutil.which, COMPILERS)):
            return Check(name, "optional", text, f"A C compiler is installed now: run `{REBUILD}`.")
        return Check(name, "optional", text, f"Install a C compiler (gcc, clang or MSVC), then run `{REBUILD}`.")
    try:
        import_module(DECODER)
    except ImportError as problem:
        text = f"The compiled decoder cannot be loaded: {problem}."
        return Check(name, "wrong", text, f"It was built for another Python or system: run `{REBUILD}`.")
    return Check(name, "fine", "The compiled decoder is installed.")


def of_plugin() -> Iterator[Check]:
    """Checks in another process that TensorBoard would start and find the plugin, and that the page exists."""
    name = "plugin in TensorBoard"
    if _version_of(TENSORBOARD) is None:
        yield from _of_page()
        return
    command = [sys.executable, "-W", "ignore", "-c", PLUGINS, *child.import_folders()]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        yield Check(
            name, "wrong", f"TensorBoard's plugins did not load within {START_LIMIT_S:.0f} s.", "Try again later."
        )
        return
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2]
        advice = "TensorBoard itself fails with this error, too: update or uninstall the package that it names."
        if "pkg_resources" in reason:
            advice = "This TensorBoard is older than the setuptools beside it: pip install --upgrade tensorboard"
        yield Check(name, "wrong", f"TensorBoard's plugins cannot be loaded: {reason}", advice)
    elif PLUGIN not in done.stdout:
        text = "TensorBoard does not see the plugin: it is not installed for this Python."
        yield Check(name, "wrong", text, f"{sys.executable} -m pip install {DISTRIBUTION}")
    else:
        yield Check(name, "fine", "TensorBoard sees the plugin.")
    yield from _of_page()


def _of_page() -> Iterator[Check]:
    if not PAGE.is_file():
        text = "The page of the plugin is missing: this install was built without it."
        yield Check("page", "wrong", text, f"Run `{REBUILD}`; in a checkout `npm ci && npm run build` in frontend/.")


def of_tensorboard() -> Iterator[Check]:
    """Checks that the `tensorboard` that a shell would run belongs to this Python, if that has one."""
    if _version_of(TENSORBOARD) is None:
        return
    name = "tensorboard command"
    command = shutil.which("tensorboard")
    advice = f"Start it with `{sys.executable} -m tensorboard.main --logdir …`, or activate the environment."
    if command is None:
        yield Check(name, "optional", "The command `tensorboard` is not on PATH.", advice)
    elif Path(command).parent.resolve() != Path(sys.executable).parent.resolve():
        yield Check(name, "optional", f"The command `tensorboard` belongs to another environment: {command}.", advice)
    else:
        yield Check(name, "fine", "The command `tensorboard` belongs to this environment.")


def of_cache() -> Check:
    """Checks that results can be cached."""
    folder = default_folder()
    if problem := complaint_about_folder(folder):
        return Check("cache", "optional", f"{problem.error} Traces are read again each time.", problem.advice)
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        free = Bytes(shutil.disk_usage(there).free)
        return Check("cache", "fine", f"Results are cached in {folder}, where {free} are free.")
    text = f"Results cannot be cached in {folder}, because the folder is not writable. Traces are read again each time."
    return Check("cache", "optional", text, "Set XDG_CACHE_HOME to a folder that you can write to.")


def of_logdir(logdir: AnyPath, *, follow_links: bool = False) -> Check:
    """Checks that there are traces, and that they can be read."""
    try:
        files = find_traces(logdir, follow_links=follow_links)
    except NotFoundError as problem:
        return Check("logdir", "wrong", problem.error, problem.advice)
    unread = [file for file in files if not _is_readable(file)]
    if unread:
        text = f"{len(unread)} of {len(files)} traces in {logdir} lack read permission, first {unread[0].path}."
        return Check("logdir", "wrong", text, "Change their permissions, or run TensorBoard as their owner.")
    size = Bytes(sum(size_of(file.path) for file in files))
    runs = len({file.run for file in files})
    return Check("logdir", "fine", f"{logdir}: traces {len(files)}, runs {runs}, {size}.")


def _is_readable(file: TraceFile) -> bool:
    try:
        with file.path.open("rb") as stream:
            stream.read(1)
    except OSError:
        return False
    return True


def _version_of(distribution: str) -> str | None:
    """The installed version; None also if the import of the package is blocked, whatever its metadata say."""
    try:
        version = metadata.version(distribution)
        return version if find_spec(distribution) is not None else None
    except (metadata.PackageNotFoundError, ValueError):  # a package whose import is blocked
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
