"""The kit for the tests of users' rules."""

from __future__ import annotations

import subprocess
import sys


def test_it_needs_nothing_that_only_tests_have_and_the_kit_does_not_need_it() -> None:
    code = """
import sys
import tb_tidy_plugin.rulekit
assert "tb_tidy_plugin.rulekit.testing" not in sys.modules
import tb_tidy_plugin.rulekit.testing
foreign = ("pytest", "hypothesis", "torch", "jsonschema", "tests", "tensorboard", "flask")
print([name for name in foreign if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240)
    assert done.stdout.strip() == "[]"
