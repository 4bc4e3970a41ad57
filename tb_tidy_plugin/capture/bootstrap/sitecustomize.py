"""Watches the optimizers of a program that `tb-tidy record` has started, from the moment in which it imports torch.

Each Python that the program starts imports this module at its start, so it does almost nothing: it notes that there is
a Python, leaves `sys.path` as it was without it, and waits for the import of torch's optimizers. The rest of TorchTidy
is imported when the first optimizer is created. The program may run in another environment than TorchTidy, which is
then imported from its own place.

No failure reaches the program; the first one is written to the folder that the command reads.
"""

# ruff: noqa: PTH100, PTH112, PTH118, PTH120, PTH123
# Each Python of the program imports this file: `pathlib` and `typing` would take most of its time.
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

SETTINGS = "TORCHTIDY_RECORD"
"""Environment variable with the settings, as JSON: they are decoded when the first optimizer is created."""

NOTES_FOLDER = "TORCHTIDY_RECORD_NOTES"
"""Environment variable with the folder in which each process notes what became of its recording."""

_GIVEN = os.environ.get(SETTINGS, ""), os.environ.get(NOTES_FOLDER, "")  # whatever the program makes of them later

_HERE = os.path.dirname(os.path.abspath(__file__))
_OPTIMIZERS = "torch.optim.optimizer"


class _Finder:
    """Finds torch's module of optimizers as Python would, and calls `then` after its import."""

    def __init__(self, then: Callable[[ModuleType], object]) -> None:
        self._then = then
        self._is_searching = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders give, for torch's optimizers only."""
        if name != _OPTIMIZERS or self._is_searching:
            return None
        self._is_searching = True  # a finder of the program may contain this one
        try:
            finders = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
            spec = next((found for find in finders if find and (found := find(name, path, target))), None)
        finally:
            self._is_searching = False
        if spec is not None and spec.loader is not None:
            _guarded(self._extend, spec.loader)
        return spec

    def _extend(self, loader: Any) -> None:  # noqa: ANN401 - of any kind
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            if module.__name__ == _OPTIMIZERS:
                _guarded(loader.__dict__.pop, "exec_module", None)
                sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
            execute(module)
            if module.__name__ == _OPTIMIZERS:
                _guarded(self._then, module)

        loader.exec_module = exec_module


def watch_steps(module: ModuleType) -> None:
    """Has each step of an optimizer reported, of all classes, as torch has their steps recorded."""
    _note("torch")
    kind = module.Optimizer
    hook = kind.profile_hook_step

    def profile_hook_step(function: Callable[..., object]) -> Callable[..., object]:
        step: Callable[..., object] = hook(function)
        return _guarded(_watched, step) or step

    kind.profile_hook_step = staticmethod(profile_hook_step)


def _watched(step: Callable[..., object]) -> Callable[..., object]:
    import functools

    import torch

    _import_package()
    from tb_tidy_plugin.capture.recording import recorder

    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", bool)  # there from torch 2.1 on
    program = recorder(*_GIVEN)

    @functools.wraps(step)
    def watched_step(*arguments: Any, **named: Any) -> object:
        if is_compiling():  # a compiled function contains the step; nothing of ours goes into it
            return step(*arguments, **named)
        program.enter()
        try:
            return step(*arguments, **named)
        finally:
            program.leave(arguments[0] if arguments else None)

    return watched_step


def _import_package() -> None:
    """Imports TorchTidy, from the place of this file if the program's environment does not have it."""
    import importlib.util

    if "tb_tidy_plugin" in sys.modules or importlib.util.find_spec("tb_tidy_plugin") is not None:
        return
    folder = os.path.dirname(os.path.dirname(_HERE))
    spec = importlib.util.spec_from_file_location(
        "tb_tidy_plugin", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"TorchTidy is not in {folder}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["tb_tidy_plugin"] = module
    spec.loader.exec_module(module)


def _guarded(act: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - what `act` returns
    try:
        return act(*arguments)
    except Exception as error:  # noqa: BLE001 - the program must not notice
        try:  # noqa: SIM105 - see above
            _note("failed", f"{type(error).__name__}: {error}")
        except Exception:  # noqa: BLE001, S110 - nothing is left to do
            pass
        return None


def _note(name: str, text: str = "") -> None:
    """Creates a file with this name for the command, which tells apart what this process and others have met."""
    folder = os.environ.get(NOTES_FOLDER)
    if folder and os.path.isdir(folder):
        with open(os.path.join(folder, name), "w", encoding="utf-8", errors="replace") as file:
            file.write(text)


def _leave_no_trace_of_this_folder() -> None:
    """Removes this folder from `sys.path`, as the program should find it."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]


def _run_the_next_one() -> None:
    """Runs the `sitecustomize` that this one hides, if there is one; its errors are its own."""
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    _guarded(_leave_no_trace_of_this_folder)
    _guarded(_note, "python")
    if SETTINGS in os.environ:
        sys.meta_path.insert(0, _Finder(watch_steps))
    _run_the_next_one()
