"""A module's text parsed by Python itself, before LibCST is needed."""

from __future__ import annotations

import ast
import re
import warnings

from tb_tidy_plugin.fixes.change import Unfixable

LINE_END = re.compile(r"\r\n?|\n")

NESTED = "The file is nested too deeply to change."


def tree_of(text: str) -> ast.Module:
    """The syntax tree. Python refuses code that is nested too deeply, and LibCST's parser does not.

    Raises:
        Unfixable: the text is not Python that can be read here.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the user's strings
            return ast.parse(text)
    except (SyntaxError, ValueError) as problem:
        raise unparsable(problem) from None
    except (RecursionError, MemoryError):
        raise Unfixable(NESTED) from None


def nodes_in(text: str) -> int:
    """Number of nodes of the syntax tree.

    Raises:
        Unfixable: the text is not Python that can be read here.
    """
    return sum(1 for _ in ast.walk(tree_of(text)))


def unparsable(problem: Exception) -> Unfixable:
    """The exception for a parser's error."""
    reason = str(problem).partition("\n")[0]
    return Unfixable(f"The file cannot be parsed as Python: {reason}.")
