"""Files written by Inductor, the compiler behind `torch.compile`, recognised by their names."""

from __future__ import annotations

import re

_GENERATED = re.compile(
    r"(?:^|/)(?P<folder>[a-z2-7]{2})/c(?P=folder)[a-z2-7]{49}\.py$|(?:^|/)torchinductor_[^/]+/"
    r"|(?:^|/)torch_compile_debug/|(?:^|/)output_code\.py$"
)
"""Files that Inductor writes, wherever its cache is: named by 51 characters of a hash, in a folder of the first two."""


def is_generated(file: str) -> bool:
    """True if `torch.compile` wrote the file."""
    return _GENERATED.search(file.replace("\\", "/")) is not None
