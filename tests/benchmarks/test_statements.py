"""The second line of defence: what a trace's text could do, had a rule let it into a statement."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.benchmarks.measurement import NotMeasured
from tb_tidy_plugin.benchmarks.process import Request
from tb_tidy_plugin.benchmarks.runner import Run
from tb_tidy_plugin.benchmarks.statements import complaint_about
from tb_tidy_plugin.rulekit import Benchmark

HARMLESS = "import torch\nimport torch.nn.functional as F\nx = torch.ones([4], device=device)"


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
        "torch.hub.load('somebody/something', 'model')",
        "torch.load('x')",
        "torch.ops.load_library('x')",
        "torch.os.system('true')",
        "torch.serialization.os.system('true')",
        "().__class__.__base__.__subclasses__()",
        "torch._C._cuda_init()",
        "numpy.fromfile('x')",
        "x.numpy().tofile('x')",
        "breakpoint()",
        "torch.ones(",
        "\0",
        "x" * 20_001,
    ],
)
def test_is_not_run(text: str) -> None:
    for pair in (Benchmark(text, "x", HARMLESS), Benchmark("x", text, HARMLESS), Benchmark("x", "x", text)):
        assert complaint_about(pair) is not None
    refused = Run(Request(rule="r", pair=Benchmark(text, "x", HARMLESS))).result()
    assert isinstance(refused, NotMeasured)
    assert refused.error.startswith("The statements are not run: they ")


@pytest.mark.parametrize(
    "text",
    [
        "result = F.relu(x)",
        "for piece in range(4):\n    x.add_(1)",
        "with torch.no_grad():\n    y = x * 2",
        "def chain(x):\n    return torch.tanh(x)",
        "result = [value.item() for value in x]",
    ],
)
def test_is_run(text: str) -> None:
    assert complaint_about(Benchmark(text, "x", HARMLESS)) is None
