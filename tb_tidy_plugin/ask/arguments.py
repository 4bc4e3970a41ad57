"""The questions, each with its arguments. Field descriptions and docstrings go into the schemas that clients read."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from tb_tidy_plugin.report.chosen import KERNEL_ORDERS, OPERATOR_ORDERS
from tb_tidy_plugin.report.figures import CallKind, OperatorGroup
from tb_tidy_plugin.words.causes import Kind

USUAL_TOKENS = 2_000
NO_ZERO = r"^[^\x00]+$"

Tokens: TypeAlias = Annotated[int, Meta(ge=500, le=20_000, description="The most tokens that the answer may have.")]
Cursor: TypeAlias = Annotated[str, Meta(max_length=40, description="`next` of the previous page.")]
PathText: TypeAlias = Annotated[
    str, Meta(max_length=4_096, description="A trace of `runs`, or a file or folder below the served one.")
]
FindingId: TypeAlias = Annotated[str, Meta(max_length=64, description="An id of `findings`.")]
Argument: TypeAlias = Annotated[str, Meta(max_length=4_096, pattern=NO_ZERO)]
Version: TypeAlias = Annotated[str, Meta(max_length=4_096, pattern=NO_ZERO, description="A git revision or a folder.")]
_Text: TypeAlias = Annotated[str, Meta(max_length=200, description="Only rows that contain this text.")]
Microseconds: TypeAlias = Annotated[float, Meta(ge=0, le=1e12, description="From the start of the recording.")]
OperatorOrder: TypeAlias = Annotated[str, Meta(extra_json_schema={"enum": list(OPERATOR_ORDERS)})]
KernelOrder: TypeAlias = Annotated[str, Meta(extra_json_schema={"enum": list(KERNEL_ORDERS)})]
_Steps: TypeAlias = Annotated[str, Meta(max_length=40, description="Steps by number: `3-7` or `5`.")]


class QuestionBase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="question"):
    """Base of all questions."""

    tokens: Tokens = USUAL_TOKENS
    cursor: Cursor = ""


class RunsQuestion(QuestionBase, frozen=True, tag="runs"):
    """List the recordings: one row per trace file."""

    path: PathText = ""


class LedgerQuestion(QuestionBase, frozen=True, tag="ledger"):
    """Account for the time of a step of one trace: causes, largest first, each with its finding or advice."""

    path: PathText = ""
    step: Annotated[str, Meta(max_length=200, description="Name or number of one step; the mean step without it.")] = ""


class FindingsQuestion(QuestionBase, frozen=True, tag="findings"):
    """List the findings of one or several traces, largest saving first."""

    path: PathText = ""
    rule: Annotated[str, Meta(max_length=100, description="Only findings of this rule.")] = ""


class FindingQuestion(QuestionBase, frozen=True, tag="finding"):
    """Show one finding: figures, fix, evidence, places and source lines."""

    finding: FindingId
    path: PathText = ""


class TimelineQuestion(QuestionBase, frozen=True, tag="timeline"):
    """List what ran in a window of one trace, by start. Short events of a lane share one row.

    Without `from_us` and `to_us` the window is a step of median length.
    """

    path: PathText = ""
    from_us: Microseconds | None = None
    to_us: Microseconds | None = None
    lane: Annotated[str, Meta(max_length=200, description="Only lanes whose name contains this text.")] = ""
    parts: Annotated[int, Meta(ge=1, le=1_000, description="Events shorter than one of these parts are merged.")] = 50
    python: Annotated[bool, Meta(description="Whether Python functions are listed.")] = False


class OperatorsQuestion(QuestionBase, frozen=True, tag="operators"):
    """List operators of one trace with calls and times over the whole recording."""

    path: PathText = ""
    by: OperatorGroup = "name"
    text: _Text = ""
    kind: CallKind | Literal[""] = ""
    order: OperatorOrder = "host_self_ns"
    descending: bool = True


class KernelsQuestion(QuestionBase, frozen=True, tag="kernels"):
    """List kernels, copies and fills of one trace by the operator that launched them."""

    path: PathText = ""
    text: _Text = ""
    family: Kind | None = None
    order: KernelOrder = "total_ns"
    descending: bool = True


class CompareQuestion(QuestionBase, frozen=True, tag="compare"):
    """Compare two recordings: step time with its interval, then findings, causes, operators and kernels that differ."""

    base: PathText
    candidate: PathText
    base_steps: _Steps = ""
    candidate_steps: _Steps = ""


class ExplainQuestion(QuestionBase, frozen=True, tag="explain"):
    """Show the page of a rule: what it finds, why it is slow, an example, when it stays quiet."""

    rule: Annotated[str, Meta(max_length=100, description="Name or code.")]


class ProposeFixQuestion(QuestionBase, frozen=True, tag="propose_fix"):
    """Show a finding's fix in the user's own code, as diffs. Nothing is written."""

    finding: FindingId
    path: PathText = ""


class ApplyFixQuestion(QuestionBase, frozen=True, tag="apply_fix"):
    """Write the diffs of `propose_fix` into the files. Needs `--allow-apply`."""

    finding: FindingId
    path: PathText = ""
    reviewed: Annotated[bool, Meta(description="Also write fixes that need review.")] = False
    unsafe_fixes: Annotated[bool, Meta(description="Also write fixes that change behaviour.")] = False


class VerifyQuestion(QuestionBase, frozen=True, tag="verify"):
    """Run a program before and after a change in turns: ratio of step times, results. Needs `--allow-apply`."""

    before: Version
    command: Annotated[list[Argument], Meta(min_length=1, max_length=100, description="The program and its arguments.")]
    after: Version = "."
    promise: Annotated[str, Meta(max_length=4_096, description="A recording of the program before.")] | None = None
    rounds: Annotated[int, Meta(ge=1, le=10, description="Number of times that each program starts.")] = 3


AnyQuestion: TypeAlias = (
    RunsQuestion
    | LedgerQuestion
    | FindingsQuestion
    | FindingQuestion
    | TimelineQuestion
    | OperatorsQuestion
    | KernelsQuestion
    | CompareQuestion
    | ExplainQuestion
    | ProposeFixQuestion
    | ApplyFixQuestion
    | VerifyQuestion
)
