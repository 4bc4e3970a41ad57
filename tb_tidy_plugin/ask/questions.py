"""All questions by name, and the one way from a question as JSON to its answer as JSON."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, TypeAlias, get_args

import msgspec

from tb_tidy_plugin.ask import arguments, changes, reports, rules, tables
from tb_tidy_plugin.ask.folder import Folder
from tb_tidy_plugin.ask.pages import WholeAnswer, page
from tb_tidy_plugin.ask.quoted import TEXT_LETTERS, quoted, quoted_lines
from tb_tidy_plugin.system.decoders import decode, schema_components
from tb_tidy_plugin.words.errors import TidyError, unexpected
from tb_tidy_plugin.words.visible import log_called, visible

log = log_called(__name__)

Schema: TypeAlias = dict[str, Any]

QUESTION_KINDS: Mapping[str, type[arguments.QuestionBase]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(arguments.AnyQuestion)
}
WRITING = frozenset({"apply_fix", "verify"})
"""Questions that write files or run programs."""

LONGEST_QUESTION = 1 << 16
"""Most bytes of a question."""


class QuestionError(TidyError):
    """A question that does not exist, is not allowed, or has unknown arguments."""


def answer(text: bytes | str, folder: Folder) -> bytes:
    """The answer to a question, `{"question": NAME, …}` as JSON.

    Raises:
        QuestionError: the question does not exist, or has unknown arguments.
        TidyError: there is no answer; says why, and what to do.
    """
    if len(text) > LONGEST_QUESTION:
        raise QuestionError(f"The question is larger than {LONGEST_QUESTION >> 10} KiB.", "Shorten it.")
    try:
        asked: arguments.AnyQuestion = decode(text, arguments.AnyQuestion)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        advice = f"Ask one of {', '.join(QUESTION_KINDS)}; `tb-tidy ask --list` has their arguments."
        raise QuestionError(f"The question cannot be used: {problem}.", advice) from None
    try:
        return page(asked, _found(asked, folder))
    except (TidyError, ImportError):
        raise
    except Exception as problem:  # the server must answer the next question
        log.info("a question failed", exc_info=True)
        raise unexpected(problem, "question") from problem


def _found(asked: arguments.AnyQuestion, folder: Folder) -> WholeAnswer:  # noqa: C901, PLR0911, PLR0912 - one case for each question
    """The whole answer.

    Raises:
        QuestionError: the question writes files or runs programs, and that is not allowed.
        TidyError: there is no answer.
    """
    if not folder.allows_apply and asked.__struct_config__.tag in WRITING:
        raise QuestionError("This question writes files or runs programs.", "Start with `--allow-apply`.")
    match asked:
        case arguments.RunsQuestion():
            return reports.runs(folder, asked)
        case arguments.LedgerQuestion():
            return reports.ledger(folder, asked)
        case arguments.FindingsQuestion():
            return reports.findings_answer(folder, asked)
        case arguments.FindingQuestion():
            return reports.finding(folder, asked)
        case arguments.TimelineQuestion():
            return tables.timeline_answer(folder, asked)
        case arguments.OperatorsQuestion():
            return tables.operators(folder, asked)
        case arguments.KernelsQuestion():
            return tables.kernels(folder, asked)
        case arguments.CompareQuestion():
            return changes.compare_answer(folder, asked)
        case arguments.ExplainQuestion():
            return rules.explain_answer(folder, asked)
        case arguments.ProposeFixQuestion():
            return changes.propose_fix(folder, asked)
        case arguments.ApplyFixQuestion():
            return changes.apply_fix(folder, asked)
        case arguments.VerifyQuestion():
            return changes.verify_answer(folder, asked)


def error(problem: TidyError) -> bytes:
    """The error and its advice as JSON; `said` holds the output of a program.

    The error quotes names of files and of recordings, and is itself quoted. The advice contains no such names.
    """
    fields = {"error": quoted(problem.error, TEXT_LETTERS), "advice": visible(problem.advice)}
    said = {"said": quoted_lines("\n".join(problem.said)[-TEXT_LETTERS:], TEXT_LETTERS)} if problem.said else {}
    return msgspec.json.encode(fields | said)


def description_of(name: str) -> str:
    """The description of a question's answer."""
    return " ".join(inspect.cleandoc(QUESTION_KINDS[name].__doc__ or "").split())


def _inlined(schema: Schema, parts: Mapping[str, Schema]) -> Schema:
    """The schema of an argument without references, which not every client follows."""
    if (choice := schema.get("anyOf")) is not None:
        return {**schema, "anyOf": [_inlined(each, parts) for each in choice]}
    return {"enum": parts[schema["$ref"].rpartition("/")[2]]["enum"]} if "$ref" in schema else schema


def schema_of(name: str) -> Schema:
    """The JSON schema of a question's arguments, without the name of the question."""
    asked = QUESTION_KINDS[name]
    _, parts = schema_components([asked])
    schema = parts.pop(asked.__name__)
    kept = {key: _inlined(value, parts) for key, value in schema["properties"].items() if key != "question"}
    required = [key for key in schema["required"] if key != "question"]
    return {"type": "object", "properties": kept, "required": required, "additionalProperties": False}
