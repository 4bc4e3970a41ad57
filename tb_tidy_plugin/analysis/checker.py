"""Runs rules over a profile; the one place where any error of a rule is caught."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import msgspec

from tb_tidy_plugin.profile.compiled.operators import MOST_HIDDEN, HiddenWork, hidden_work
from tb_tidy_plugin.profile.steps.steps import UNMARKED
from tb_tidy_plugin.words.units import Share, plural
from tb_tidy_plugin.words.visible import log_called

if TYPE_CHECKING:
    from tb_tidy_plugin.rulekit import AnyRule, Match, Profile, Rule

_Answer = TypeVar("_Answer")

log = log_called(__name__)

MISSING = {
    "stacks": "The profile has no Python stacks; record with `with_stack=True`.",
    "shapes": "The profile has no input shapes; record with `record_shapes=True`.",
    "memory": "The profile has no memory events; record with `profile_memory=True`.",
    "device": "The profile has no device activity; record on a GPU with `activities=[ProfilerActivity.CPU, "
    "ProfilerActivity.CUDA]`.",
    "steps": "The profile has no steps; record with a `schedule` and call `prof.step()` after each step.",
}
"""Missing data by its name, with the profiler option that records it."""

LAUNCHES_ONLY = "The host launched device work, which was not recorded; record it with {}."
UNKNOWN_CATEGORIES = (
    "{} of the recording have no known category. They may be the work of a device, which TorchTidy does not support."
)
MARKED_OTHERWISE = (
    "The steps are not the profiler's own, which this rule needs: it must see the end of each step. Record with a "
    "`schedule` and call `prof.step()` after each step."
)

NO_HOST_EVENTS = (
    "The profile has no host events; record with `activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`."
)


class Found(msgspec.Struct, frozen=True):
    """The pattern is there; `left_out` says what else was found but not reported."""

    matches: tuple[Match, ...]
    left_out: str | None = None


class Clean(msgspec.Struct, frozen=True):
    """The rule was checked and found nothing worth reporting; `reason` says what it found and left out."""

    reason: str | None = None


class NotChecked(msgspec.Struct, frozen=True):
    """The rule could not be checked; `reason` says why and what to do about it."""

    reason: str


class Failed(msgspec.Struct, frozen=True):
    """The rule itself failed, which is a bug in it."""

    error: str


RuleOutcome: TypeAlias = Found | Clean | NotChecked | Failed


def check_rule(profile: Profile, rule: Rule) -> RuleOutcome:
    """The outcome of one rule on `profile`."""
    if not profile.tree.size:
        return NotChecked(NO_HOST_EVENTS)
    if missing := what_lacks(rule, profile.recorded, profile):
        return NotChecked(missing)
    if rule.reads_operators and (hidden := hidden_device(profile)):
        return NotChecked(hidden)
    return unless_broken(rule, lambda: _answer(profile, rule))


def what_lacks(rule: AnyRule, recorded: Collection[str], profile: Profile | None = None) -> str:
    """Data that the rule needs but the recording lacks, and the options that record it; empty if none is missing.

    Args:
        rule: the rule.
        recorded: what the recording, or all of several, holds.
        profile: the recording, if it is one, for the names of its device and of its steps' marks.
    """
    sentences = dict(MISSING)
    if profile is not None:
        sentences["device"] = without_device(profile)
    if profile is not None and profile.steps.basis not in UNMARKED:
        sentences["steps"] = MARKED_OTHERWISE
    return " ".join(sentences[need] for need in sorted(rule.needs.difference(recorded)))


def without_device(profile: Profile) -> str:
    """Why a profile holds no device work, and what to do about it."""
    return hidden_device(profile) or MISSING["device"]


def hidden_device(profile: Profile) -> str:
    """Why a device's work is not known although there may be some; empty if there is none, or it is known."""
    if profile.launches_only:
        return LAUNCHES_ONLY.format(device_activity(profile))
    return (
        UNKNOWN_CATEGORIES.format(plural(profile.metadata.unknown_events, "event")) if profile.has_unknown_work else ""
    )


def device_activity(profile: Profile) -> str:
    """What to record a profile's kind of device with."""
    return f"`activities=[ProfilerActivity.CPU, ProfilerActivity.{profile.activity or 'CUDA'}]`"


def unless_broken(rule: AnyRule, ask: Callable[[], _Answer]) -> _Answer | Failed:
    """The result of `ask`, or the failure that it raised."""
    try:
        return ask()
    except MemoryError:  # not the rule's fault: the next rule would also run out of memory
        raise
    except Exception as error:  # one broken rule must not cost the user the others
        log.exception("rule %s failed", rule.name())
        return Failed(f"{type(error).__name__}: {error}")


def _answer(profile: Profile, rule: Rule) -> RuleOutcome:
    if reason := rule.not_applicable(profile):
        return NotChecked(reason)
    matches = tuple(rule.detect(profile))
    if matches:
        return Found(matches)
    reason = what_is_hidden(hidden_work(profile)) if rule.reads_operators else ""
    return NotChecked(reason) if reason else Clean()


def what_is_hidden(hidden: HiddenWork) -> str:
    """The reason why rules about operators cannot be sure to have seen the pattern; empty if they can."""
    if hidden.share <= MOST_HIDDEN:
        return ""
    if hidden.in_graphs >= hidden.in_compiled:
        return (
            f"{Share(hidden.in_graphs)} of the kernels' time is in replayed graphs, which do not show their operators; "
            "record the capture of the graphs, too."
        )
    return (
        f"{Share(hidden.in_compiled)} of the kernels' time is called by compiled code, which does not show their "
        "operators; record the job without `torch.compile`, too."
    )
