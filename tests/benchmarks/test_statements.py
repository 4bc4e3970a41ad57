"""The second line of defence: what a trace's text could do, had a rule let it into a statement."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from tb_tidy_plugin.benchmarks.measurement import NotMeasured
from tb_tidy_plugin.benchmarks.process import MeasuringRequest
from tb_tidy_plugin.benchmarks.runner import PairMeasurement
from tb_tidy_plugin.benchmarks.statements import CALLED, VALUES, complaint_about
from tb_tidy_plugin.rulekit import Benchmark

HARMLESS = "import torch\nimport torch.nn.functional as F\nx = torch.ones([4], device=device)"
PAYLOADS = ("exec('1')", "eval('1')", "open('f')", "import_module('f')", "system('true')", "load('f')")


@pytest.mark.parametrize(
    "text",
    [
        "torch.ones([4]); __import__('os').system('true')",
        "open('/etc/passwd').read()",
        "exec('1')",
        "getattr(torch, 'load')",
        "import os",
        "import subprocess as torch",
        "from os import system",
        "from torch import hub",
        "torch.builtins.exec('1')",
        "torch.importlib.import_module('os')",
        "torch.hub.load('somebody/something', 'model')",
        "torch.load('x')",
        "torch.ops.load_library('x')",
        "torch.utils.cpp_extension.load('x', [])",
        "torch.compile(x, backend='somebody.something')",
        "torch.compile(x, **{'backend': 'somebody.something'})",
        "c = torch.compile\nc(x, backend='somebody.something')",
        "torch.os.system('true')",
        "torch.serialization.os.system('true')",
        "().__class__.__base__.__subclasses__()",
        "torch.ones.__globals__",
        "torch._C._cuda_init()",
        "t = torch\nt.load('x')",
        "torch.nn.functional",
        "torch.load = 1",
        "torch.float32.load",
        "x.grad.tofile",
        "numpy.fromfile('x')",
        "import numpy\nnumpy.load('x')",
        "x.numpy().tofile('x')",
        "import torch as __builtins__",
        "import numpy as F",
        "breakpoint()",
        "torch.ones(",
        "\0",
        "x" * 20_001,
        "x" + ".to" * 6_000,
        "x = " + "-" * 15_000 + "1",
    ],
)
def test_is_not_run(text: str) -> None:
    for pair in (Benchmark(text, "x", HARMLESS), Benchmark("x", text, HARMLESS), Benchmark("x", "x", text)):
        assert complaint_about(pair) is not None
    refused = PairMeasurement(MeasuringRequest(rule="r", pair=Benchmark(text, "x", HARMLESS))).result()
    assert isinstance(refused, NotMeasured)
    assert refused.error.startswith("The statements are not run: they ")


@pytest.mark.parametrize(
    "gives",
    [
        "def f(exec): pass",
        "def exec(): pass",
        "class exec: pass",
        "[0 for exec in ()]",
        "for exec in (): pass",
        "exec = 0",
        "def f(*exec): pass",
        "def f(__builtins__): pass",
        "import torch as exec",
    ],
)
def test_no_name_of_pythons_own_is_let_in_by_giving_it_to_something_else(gives: str) -> None:
    """What is given in a function only, or in a loop that never runs, is Python's own everywhere else."""
    assert complaint_about(Benchmark(f"{gives}\nexec('1')", "x", HARMLESS)) is not None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("torch.linalg.qr(x)", "torch.linalg.qr"),
        ("x.svd()", ".svd"),
        ("x.data = x", ".data"),
        ("sorted(x)", "sorted"),
        ("import scipy", "import scipy"),
        ("f = lambda: 1", "lambda: 1"),
        ("@torch.no_grad()\ndef f(): pass", "@torch.no_grad()"),
        ("class A(metaclass=dict): pass", "metaclass=dict"),
        ("def __reduce__(self): pass", "__reduce__"),
        ("torch.compile(x, mode='max-autotune')", "torch.compile(x, mode='max-autotune')"),
    ],
)
def test_what_is_not_on_the_list_is_named(text: str, named: str) -> None:
    said = complaint_about(Benchmark(text, "x", HARMLESS))
    assert said == f"they use `{named}`, which is not on the list of what statements may use"


@pytest.mark.parametrize(
    "text",
    [
        "result = F.gelu(x)",
        "for piece in range(4):\n    x.add_(1)",
        "with torch.no_grad():\n    y = x * 2",
        "def chain(x):\n    return torch.tanh(x)",
        "result = [value.item() for value in x]",
        "compiled = torch.compile(x)",
    ],
)
def test_is_run(text: str) -> None:
    assert complaint_about(Benchmark(text, "x", HARMLESS)) is None


def test_no_module_is_on_the_list_by_its_name() -> None:
    """Nor anything below a name that Python or torch keep to themselves."""
    assert not [path for path in CALLED | VALUES if any(part.startswith("_") for part in path.split("."))]


@pytest.mark.torch
def test_all_that_is_on_the_list_is_there_and_is_no_module() -> None:
    import numpy as np
    import torch
    import torch.nn.functional
    import torch.utils.data

    roots: dict[str, object] = {"torch": torch, "numpy": np, "time": sys.modules["time"]}
    for path in CALLED | VALUES:
        root, *names = path.split(".")
        found = roots[root]
        for name in names:
            found = getattr(found, name)
        assert not isinstance(found, ModuleType), path
        assert callable(found) or path in VALUES, path


def modules_below(name: str) -> Iterator[str]:
    """Each module that attributes lead to from the module `name`, by its shortest path."""
    paths, seen = [name], {id(sys.modules[name])}
    for path in paths:
        root, *names = path.split(".")
        module: object = sys.modules[root]
        for each in names:
            module = vars(module)[each]
        yield path
        for attribute, value in sorted(vars(module).items()):
            if issubclass(type(value), ModuleType) and id(value) not in seen:
                seen.add(id(value))
                paths.append(f"{path}.{attribute}")


@pytest.mark.torch
@pytest.mark.parametrize("root", ["torch", "numpy", "time"])
def test_nothing_that_modules_lead_to_is_run(root: str) -> None:
    """They lead to the modules that they import themselves, such as `os`, `sys`, `builtins` and `importlib`."""
    import torch.utils.data  # noqa: F401 - as statements import it

    paths = list(modules_below(root))
    assert root == "time" or len(paths) > 100
    assert root != "torch" or {"torch.os", "torch.sys", "torch.importlib", "torch.builtins"} <= set(paths)
    for path in paths:
        for payload in PAYLOADS:
            text = f"import {root}\n{path}.{payload}"
            assert complaint_about(Benchmark("x", "x", f"x = 1\n{text}")) is not None, text
        assert complaint_about(Benchmark("x", "x", f"import {root}\nx = {path}")) is not None, path
