"""`python -m tb_tidy_plugin`: the command `tb-tidy`, for a Python whose scripts are not on PATH."""

from __future__ import annotations

from tb_tidy_plugin.cli.main import script

if __name__ == "__main__":
    script()
