"""Rule: one anti-pattern. A rule says what is there and what would change; it never computes a saving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, get_args

import msgspec

from tb_tidy_plugin.fixes.change import Change, Spot, Unfixable
from tb_tidy_plugin.profile.events.inputs import TORCH_DTYPES
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.edits import Edit, Remove, Scale
from tb_tidy_plugin.rulekit.evidence import E, evidence_names, names_in
from tb_tidy_plugin.rulekit.thresholds import Threshold, thresholds_of
from tb_tidy_plugin.sources.constructors import Made
from tb_tidy_plugin.words.vocabulary import Confidence

if TYPE_CHECKING:
    from tb_tidy_plugin.fixes.code import Code  # needs LibCST

Need: TypeAlias = Literal["stacks", "shapes", "memory", "device", "steps"]
DeviceKind: TypeAlias = Literal["cpu", "cuda", "mps", "xpu"]
"""Types of `torch.device`; ROCm also uses `cuda`."""

NO_EVIDENCE: Any = None  # for texts without names in braces

_DTYPES = frozenset(TORCH_DTYPES.values())


def known_dtype(text: str) -> str:
    """Name of a dtype in `torch`, for a statement; empty for any other text."""
    return text if text in _DTYPES else ""


class Match(msgspec.Struct, Generic[E], frozen=True):
    """One occurrence of a rule's pattern.

    Attributes:
        anchor: the event whose place is shown.
        events: all events that the pattern costs, without their descendants.
        related: events that the pattern does not cost, but that a fix also changes.
        evidence: facts for the rule's texts, edits and statements; None if its texts name nothing.
        subject: separates occurrences in one function that a user would fix separately (an optimizer's class, a pair of
            modules); empty if the place is enough.
        confidence: certainty of this occurrence.
        lost: the time that the pattern costs, if this is not the time of `events`: device time left idle after a
            wait, exposed communication. Start and end of each span, in ns of the profile.
    """

    anchor: int
    events: tuple[int, ...]
    evidence: E = NO_EVIDENCE
    subject: str = ""
    confidence: Confidence = "high"
    lost: Sequence[tuple[int, int]] | None = None
    related: tuple[int, ...] = ()


class Benchmark(msgspec.Struct, frozen=True):
    """Two statements that do the same work, with and without the pattern; run and shown exactly as written here.

    They consist of numbers, names of dtypes (`known_dtype`) and the rule's own words, never of a trace's text. They
    need at most 1 GiB, and may use `device`, the name of the device to measure on, without defining it.

    Attributes:
        before: one call with the pattern; its `result` is compared with that of `after`.
        after: one call without it.
        setup: code that runs once before both, including imports.
        compare: names of further values that must be equal after `before` and `after`.
        devices: the kinds of device on which the pair shows the rule's pattern.
        of_events: True if `before` does exactly what the match's events do. The time of `after` divided by that of
            `before` is then the part of the events' time that a fix leaves.
    """

    before: str
    after: str
    setup: str
    compare: tuple[str, ...] = ()
    devices: tuple[DeviceKind, ...] = ("cpu", "cuda", "mps", "xpu")
    of_events: bool = False


class AnyRule(ABC, Generic[E]):
    """One anti-pattern; its module's docstring is its page, its file name its name, its folder its category.

    Texts may name fields and properties of the evidence in braces, and thresholds of the rule.

    Attributes:
        code: short code, unique over all rules (`TT201`).
        needs: data that the recording must contain for the rule.
        action: the advice in a few words, verb first; the title of its findings, by default the fix.
        message: what was found; one sentence without its full stop.
        why: the numbers and thresholds behind the finding.
        fix: what to do; an imperative sentence without its full stop.
        caveat: what the fix may change besides time, empty for nothing.
        min_share: findings that cost less than this part of the step are not reported; applied by the report.
        settings: thresholds set by the user, by attribute name.
    """

    code: ClassVar[str]
    needs: ClassVar[frozenset[Need]] = frozenset()
    action: ClassVar[str] = ""
    message: ClassVar[str]
    why: ClassVar[str]
    fix: ClassVar[str]
    caveat: ClassVar[str] = ""

    min_share = Threshold(0.005, "smaller shares are within the noise between steps and not worth a change")

    def __init__(self, settings: Mapping[str, float] | None = None) -> None:
        self.settings: Mapping[str, float] = settings or {}

    @classmethod
    def name(cls) -> str:
        """The rule's name everywhere: its file's name in kebab case."""
        return cls.__module__.rpartition(".")[2].replace("_", "-")

    @classmethod
    def category(cls) -> str:
        """The name of the rule's folder; `user` for a module outside such folders."""
        return cls.__module__.rpartition(".")[0].rpartition(".")[2] or "user"

    def filled_in(self, template: str, evidence: E) -> str:
        """`template` with each name in braces replaced by this threshold of the rule, or by the value in `evidence`."""
        limits = thresholds_of(type(self))
        return template.format_map(
            {
                name: str(limits[name].in_unit(self) if name in limits else getattr(evidence, name))
                for name in names_in(template)
            }
        )

    @classmethod
    def names(cls) -> set[str]:
        """Names that texts may use: fields and properties of the evidence, and thresholds."""
        return evidence_names(cls.evidence()) | set(thresholds_of(cls))

    @classmethod
    def evidence(cls) -> type[msgspec.Struct] | None:
        """The struct in `Rule[...]`; None without one."""
        bases = [base for kind in cls.__mro__ for base in vars(kind).get("__orig_bases__", ())]
        given = (kind for base in bases for kind in get_args(base) if isinstance(kind, type))
        return next((kind for kind in given if issubclass(kind, msgspec.Struct)), None)


class Rule(AnyRule[E]):
    """An anti-pattern that one profile shows.

    Attributes:
        left: the part of its events' time that a fix leaves, if that is the same for each match: most likely, at
            least, at most; None if the events go.
        yields_to: names of the rules whose fix also removes this one's matches. A match is left out if the reported
            findings of one of them cover most of its time.
        reads_operators: True if the pattern lies in operators that launch device work. Without a match the rule then
            counts as not checked where much of that work shows no operators, as in a replayed graph.
        reads_ledger: True if it asks for the ledger, which is computed beside the other rules; it then runs last.
    """

    left: ClassVar[tuple[float, float, float] | None] = None
    yields_to: ClassVar[tuple[str, ...]] = ()
    reads_operators: ClassVar[bool] = False
    reads_ledger: ClassVar[bool] = False

    @abstractmethod
    def detect(self, profile: Profile) -> Iterator[Match[E]]:
        """All occurrences in `profile`, which holds everything in `needs`."""

    def remedy(self, profile: Profile, match: Match[E]) -> Iterator[Edit]:
        """Changes by fixing `match`; by default its events go, or take what is `left` of their time."""
        yield Scale(match.events, *self.left) if self.left else Remove(match.events)

    def benchmark(self, evidence: E) -> Benchmark | None:
        """The pattern and its fix as statements with the shapes of a match; None if that makes no sense.

        Statements are made again from the match's evidence later, without the recording (`Recipe`).
        """
        return None

    def made_by(self, evidence: E) -> Made | None:
        """The object on which the fix sets an option; None if the fix lies where the work is called."""
        return None

    def trainer_options(self, evidence: E) -> Mapping[str, str]:
        """The argument that applies the fix if a library has the training loop; empty if none does.

        By `transformers` (of `TrainingArguments`), `lightning` (of `Trainer`) and `accelerate` (of `Accelerator`).
        """
        return {}

    def fixer(self, code: Code, spot: Spot, evidence: E) -> Change:
        """The fix in the user's own code, based only on the module, the finding's lines and the evidence.

        Args:
            code: the module that holds the lines.
            spot: the lines of one of the finding's places.
            evidence: of the most expensive match.

        Raises:
            Unfixable: the right change is unknown.
        """
        raise Unfixable("The rule does not change code.")

    @classmethod
    def can_fix(cls) -> bool:
        """True if the rule has its own fixer."""
        return cls.fixer is not Rule.fixer

    def not_applicable(self, profile: Profile) -> str | None:
        """The reason if the rule makes no sense for this profile although it holds all `needs`; else None."""
        return None
