"""Metadata of the distribution, and the build step that ships the built frontend.

The bundle in `tb_tidy_plugin/plugin/static` is committed with a hash of the sources it was built from, so an install
needs Node.js only after a change of those sources. `TORCHTIDY_FRONTEND=skip` ships the bundle as it is,
`TORCHTIDY_FRONTEND=build` builds it even when it is current.

What is compiled makes reading faster and nothing else: without a C compiler the install works, and `tb-tidy doctor`
says what is missing. `TORCHTIDY_EXTENSION=skip` makes a wheel for every platform, `TORCHTIDY_EXTENSION=require`
fails where there is no compiler.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
PACKAGE = ROOT / "tb_tidy_plugin"
FRONTEND = ROOT / "frontend"
STATIC = PACKAGE / "plugin" / "static"
BUNDLE = STATIC / "index.js"
STAMP = STATIC / ".stamp"
NOTICES = STATIC / "THIRD_PARTY_NOTICES.txt"

NOT_SOURCES = frozenset({"node_modules", "dist", "coverage", "test-results", "playwright-report"})  # as in stamp.mjs
MODES = ("auto", "build", "skip")
EXTENSION_MODES = ("auto", "require", "skip")


class BuildPy(build_py):
    """Provides the frontend before the package's files are collected."""

    def run(self) -> None:
        provide_frontend(os.environ.get("TORCHTIDY_FRONTEND", "auto"))
        super().run()


def provide_frontend(mode: str) -> None:
    """Leave a built frontend in the package, or stop the build."""
    if mode not in MODES:
        raise SystemExit(f"torchtidy: TORCHTIDY_FRONTEND={mode} is not one of {', '.join(MODES)}")
    if needs_build(mode):
        try:
            build_frontend()
        except (OSError, subprocess.CalledProcessError) as problem:
            print(f"torchtidy: WARNING: the frontend was not built: {problem}", file=sys.stderr)
    # Asked last, since a failed build may have emptied the folder.
    if not BUNDLE.is_file():
        raise SystemExit(
            "torchtidy: there is no built frontend. Install Node.js >= 20.19 with npm, or use a released wheel."
        )
    if not NOTICES.is_file():  # the licences of what is in the bundle ask for it
        raise SystemExit("torchtidy: the frontend has no THIRD_PARTY_NOTICES.txt. Run `npm run build` in frontend/.")


def needs_build(mode: str) -> bool:
    """Whether the sources are here and the bundle is not known to be theirs."""
    if mode == "skip" or not FRONTEND.is_dir():
        return False
    return mode == "build" or not is_current()


def is_current() -> bool:
    """Whether the bundle was built from the sources that lie beside it."""
    return BUNDLE.is_file() and STAMP.is_file() and STAMP.read_text("ascii").strip() == source_hash(FRONTEND)


def source_hash(folder: Path) -> str:
    """SHA-256 over names and contents, line ends aside: what frontend/stamp.mjs writes after a build."""
    digest = hashlib.sha256()
    for name in sorted(path.relative_to(folder).as_posix() for path in source_files(folder)):
        content = (folder / name).read_bytes().replace(b"\r\n", b"\n")
        digest.update(name.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()


def source_files(folder: Path) -> Iterator[Path]:
    """All files below `folder` but what tools left there."""
    for entry in folder.iterdir():
        if entry.name in NOT_SOURCES:
            continue
        if entry.is_dir():
            yield from source_files(entry)
        else:
            yield entry


def build_frontend() -> None:
    """Install the frontend's packages and build the bundle.

    Raises:
        FileNotFoundError: when there is no npm.
        subprocess.CalledProcessError: when npm fails; it has said why.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("npm is not on PATH")
    # NODE_OPTIONS and NODE_ENV of the caller would reach into the build; production leaves out the build tools.
    environment = {name: value for name, value in os.environ.items() if name not in ("NODE_OPTIONS", "NODE_ENV")}
    for arguments in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        print("torchtidy: npm", *arguments, flush=True)
        subprocess.run([npm, *arguments], cwd=FRONTEND, env=environment | {"CI": "1"}, check=True)


def extensions(mode: str) -> list[Extension]:
    """What is to be compiled: each `.pyx` in the package is a module."""
    if mode not in EXTENSION_MODES:
        raise SystemExit(f"torchtidy: TORCHTIDY_EXTENSION={mode} is not one of {', '.join(EXTENSION_MODES)}")
    if mode == "skip":
        return []
    sources = sorted(path.relative_to(ROOT) for path in PACKAGE.rglob("*.pyx"))
    return [
        Extension(
            ".".join(source.with_suffix("").parts),
            [source.as_posix()],
            depends=[part.as_posix() for part in sorted(source.parent.glob("*.pxi"))],
            optional=mode == "auto",
        )
        for source in sources
    ]


def version() -> str:
    """The version as written in the package, which cannot be imported before its dependencies are there."""
    text = (PACKAGE / "__init__.py").read_text("utf-8")
    [found] = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(found)


def repository() -> str:
    """The address of the repository that this is built from; empty if it is not known.

    A release sets `TORCHTIDY_REPOSITORY`, a source distribution has the address of its own build, and a clone that of
    where it comes from.
    """
    if address := os.environ.get("TORCHTIDY_REPOSITORY"):
        return address.rstrip("/")
    built = ROOT / "PKG-INFO"
    if built.is_file():
        found = re.search(r"^Project-URL: Source, (\S+)$", built.read_text("utf-8"), re.MULTILINE)
        return found[1] if found else ""
    try:
        command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
        address = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
    return public_address(address)


def public_address(remote: str) -> str:
    """The address of a clone's origin in a browser; empty for a folder, or for anything but a name on a host."""
    found = re.fullmatch(r"(?:https://|ssh://|git@)(?:[^/@]*@)?([\w.-]+\.\w+)[:/]([\w./-]+?)(?:\.git)?/?", remote)
    return f"https://{found[1]}/{found[2]}" if found else ""


def project_urls(repository: str) -> dict[str, str]:
    """Links of the metadata."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": f"{repository}/blob/HEAD/README.md",
        "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def with_addresses(text: str, repository: str, tag: str) -> str:
    """Markdown whose links and pictures work outside of the repository, as of a tag; unchanged without an address."""
    if not repository:
        return text

    def absolute(match: re.Match[str]) -> str:
        kind = "raw" if match[1].startswith("!") else "blob"
        return f"{match[1]}({repository}/{kind}/{tag}/{match[2]})"

    return re.sub(r"(!?\[[^\]]*\])\((?!https?:|#|mailto:)([^)\s]+)\)", absolute, text)


if __name__ == "__main__":
    setup(
        name="tb-tidy-plugin",
        version=version(),
        description="TensorBoard plugin that names the performance anti-patterns in PyTorch profiler traces",
        long_description=with_addresses((ROOT / "README.md").read_text("utf-8"), repository(), f"v{version()}"),
        long_description_content_type="text/markdown",
        author="The TorchTidy maintainers",
        license="Apache-2.0",
        license_files=["LICENSE", NOTICES.relative_to(ROOT).as_posix()],
        project_urls=project_urls(repository()),
        keywords=["pytorch", "profiler", "tensorboard", "performance"],
        classifiers=[
            "Development Status :: 3 - Alpha",
            "Environment :: Web Environment",
            "Intended Audience :: Developers",
            "Intended Audience :: Science/Research",
            "Programming Language :: Python :: 3",
            "Programming Language :: Python :: 3.10",
            "Programming Language :: Python :: 3.11",
            "Programming Language :: Python :: 3.12",
            "Programming Language :: Python :: 3.13",
            "Topic :: Scientific/Engineering :: Artificial Intelligence",
            "Topic :: Software Development :: Quality Assurance",
        ],
        python_requires=">=3.10",
        packages=find_packages(include=["tb_tidy_plugin*"], exclude=["tb_tidy_plugin.dev*"]),
        package_data={
            "tb_tidy_plugin": ["py.typed", "*/*.pyi"],
            "tb_tidy_plugin.ask": ["skill.md"],
            "tb_tidy_plugin.render": ["page.css"],
            "tb_tidy_plugin.plugin": ["static/*", "static/.stamp", "static/assets/*"],  # `*` leaves out dotfiles
        },
        install_requires=[
            "click>=8.1.3",
            "flask>=3",
            # Unpacks gz several times faster than zlib; elsewhere it would have to be compiled.
            "isal>=1.6; platform_machine in 'x86_64 AMD64 aarch64 arm64'",
            "loky>=3.4",  # ranks in parallel, in processes that may end
            "msgspec>=0.18.5",  # before, no struct could keep its hash
            "numpy>=1.25",  # before, no array of numbers could be compared with a text
            "platformdirs>=3",
            "psutil>=5.9",  # loky's processes cannot be ended without it where there is no `pgrep`
            "rich>=13",
            "tensorboard>=2.16.2",  # 2.16.0 asks for nightly builds of TensorFlow
            "tomli>=2; python_version < '3.11'",
            "werkzeug>=3",
        ],
        extras_require={
            "bench": ["torch"],  # micro-benchmarks run in the user's own torch
            "dask": ["distributed"],  # `--engine dask://HOST:PORT`
            "fix": ["libcst>=1.8.2"],  # `tb-tidy fix`
            "mcp": ["mcp>=2.3.0"],  # `tb-tidy mcp`
            "pytest": ["pytest>=7.4"],  # the fixture `tidy`
            "ray": ["ray[client]"],  # `--engine ray://HOST:PORT`
            "remote": ["fsspec"],  # logdirs on stores, with the store's own package: s3fs, gcsfs, adlfs
        },
        entry_points={
            "console_scripts": ["tb-tidy = tb_tidy_plugin.cli.main:script"],
            "pytest11": ["torchtidy = tb_tidy_plugin.budgets.pytest_plugin"],
            "tensorboard_plugins": ["torchtidy = tb_tidy_plugin.plugin.loader:Loader"],
            "sglang.srt.plugins": ["torchtidy_graphs = tb_tidy_plugin.capture.graphs:install_in_server"],
            "vllm.general_plugins": ["torchtidy_graphs = tb_tidy_plugin.capture.graphs:install_in_server"],
        },
        cmdclass={"build_py": BuildPy},
        ext_modules=extensions(os.environ.get("TORCHTIDY_EXTENSION", "auto")),
    )
