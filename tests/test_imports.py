"""Threads that import the package's modules at the same time cannot wait for each other.

Python locks each module while it is imported. One thread imports a package whose `__init__` imports the package's
modules; another one imports such a module first, and its package while it holds the module's lock. Python then raises
an error in one of them ("deadlock detected by _ModuleLock"). It cannot happen if all of them import the package first.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.support.recordings import ROOT
from tests.support.waiting import PATIENCE_S

Modules = Mapping[str, ast.Module]

MEETING = """
import sys, threading, time
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = super().find_spec(name, path, target)
        if name == "package" and threading.current_thread() is threading.main_thread():
            spec.loader.create_module = wait
        return spec

def wait(spec):
    other.start()
    time.sleep(1)  # the package is found, and not yet in sys.modules

def enter():
    try:
        import package.inside
    except RuntimeError as error:
        print(error)

other = threading.Thread(target=enter)
sys.meta_path.insert(0, Finder)
try:
    import FIRST
except RuntimeError as error:
    print(error)
other.join()
"""


@cache
def modules() -> Modules:
    files = sorted((ROOT / "tb_tidy_plugin").rglob("*.py"))
    return {name_of(file.relative_to(ROOT)): ast.parse(file.read_text("utf-8")) for file in files}


def name_of(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def executed(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The statements that run when this scope does: without those of functions inside, and for type checkers."""
    for each in body:
        yield each
        if isinstance(each, ast.If) and "TYPE_CHECKING" in ast.unparse(each.test):
            yield from executed(each.orelse)
        elif not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in ("body", "orelse", "finalbody", "handlers"):
                yield from executed(getattr(each, part, ()))


def imported(body: Sequence[ast.AST], known: Modules) -> list[str]:
    """The package's modules that a scope imports, in its order."""
    found = []
    for each in executed(body):
        if isinstance(each, ast.Import):
            found += [alias.name for alias in each.names]
        elif isinstance(each, ast.ImportFrom) and each.module:
            found += [each.module, *(f"{each.module}.{alias.name}" for alias in each.names)]
    return [name for name in found if name in known]


def circles(known: Modules) -> dict[str, set[str]]:
    """The packages that import modules of their own, with all that they import, directly or not."""
    imports = {name: imported(module.body, known) for name, module in known.items()}
    found = {}
    for package in known:
        loaded: set[str] = set()
        waiting = [package]
        while waiting:
            new = set(imports[waiting.pop()]) - loaded
            loaded |= new
            waiting += new
        if inside := {name for name in loaded if is_in(name, package) and name != package}:
            found[package] = inside
    return found


def is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def other_ways_in(known: Modules) -> list[str]:
    """The scopes that import a module of such a package before the package itself."""
    packages, found = circles(known), []
    for name, module in known.items():
        above = imported(module.body, known)
        functions = [each for each in ast.walk(module) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        scopes = [(name, above), *((f"{name}.{each.name}", above + imported(each.body, known)) for each in functions)]
        for scope, names in scopes:
            for package, inside in packages.items():
                first = next((each for each in names if is_in(each, package)), package)
                if first in inside and not is_in(name, package):
                    found.append(f"{scope}: {first}")
    return found


def test_packages_that_import_their_modules_are_imported_first() -> None:
    assert {"tb_tidy_plugin.capture", "tb_tidy_plugin.rulekit"} <= circles(modules()).keys()
    assert other_ways_in(modules()) == []


def test_another_way_in_is_found() -> None:
    known = {
        "p": ast.parse("from p.a import x"),
        "p.a": ast.parse("import q"),
        "p.b": ast.parse("from p import x"),
        "q": ast.parse("from p.b import y"),  # in the circle, since `p.a` imports it
        "p.c": ast.parse("from p.a import x"),
        "r": ast.parse("def f():\n    from p.a import x"),
        "s": ast.parse("from p import a\n\ndef f():\n    from p.a import x"),
        "t": ast.parse("from p.c import x\nfrom p.a import x"),  # nothing in the circle waits for `p.c`
    }
    assert other_ways_in(known) == ["q: p.b", "r.f: p.a"]


def test_two_ways_in_end_in_an_error_and_one_does_not(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("from package.inside import value\n")
    (tmp_path / "package" / "inside.py").write_text("value = 1\n")
    assert "deadlock detected" in said("package", tmp_path)
    assert said("package.inside", tmp_path) == ""


def said(first: str, folder: Path) -> str:
    command = [sys.executable, "-c", MEETING.replace("FIRST", first)]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=PATIENCE_S)
    return done.stdout
