"""Rule: one anti-pattern. A rule says what is there and what would change; it never computes a saving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, get_args

import msgspec

from tb_tidy_plugin.fixes.change import Change, Spot, Unfixable
from tb_tidy_plugin.profile.inputs import TORCH_DTYPES
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.edits import Edit, Remove, Scale
from tb_tidy_plugin.rulekit.evidence import E, evidence_names, names_in
from tb_tidy_plugin.rulekit.thresholds import Threshold, thresholds_of
from tb_tidy_plugin.sources.constructors import Made
from tb_tidy_plugin.vocabulary import Confidence

if TYPE_CHECKING:
    from tb_tidy_plugin.fixes.code import Code  # needs LibCST

Need: TypeAlias = Literal["stacks", "shapes", "memory", "device", "steps"]
DeviceKind: TypeAlias = Literal["cpu", "cuda", "mps", "xpu"]
"""The types of `torch.device`; ROCm's is `cuda`, too."""

NO_EVIDENCE: Any = None  # for texts that name nothing

_DTYPES = frozenset(TORCH_DTYPES.values())


def known_dtype(text: str) -> str:
    """The name that `torch` has for a dtype, for a statement; empty for any other text."""
    return text if text in _DTYPES else ""


class Match(msgspec.Struct, Generic[E], frozen=True):
    """One occurrence of a rule's pattern.

    Attributes:
        anchor: the event whose place is shown.
        events: all events that the pattern costs, without their descendants.
        related: events that the pattern does not cost, and that a fix changes, too.
        evidence: what the rule's texts, edits and statements are made from; None where its texts name nothing.
        subject: tells occurrences apart that a user would fix apart although they are in one function (an optimizer's
            class, a pair of modules); empty where the place says it all.
        confidence: how sure the rule is of this occurrence.
        lost: the time that the pattern costs, where this is not the time of `events`: device time left idle after a
            wait, communication that nothing hides. Start and end of each span, in ns of the profile.
    """

    anchor: int
    events: tuple[int, ...]
    evidence: E = NO_EVIDENCE
    subject: str = ""
    confidence: Confidence = "high"
    lost: Sequence[tuple[int, int]] | None = None
    related: tuple[int, ...] = ()


class Benchmark(msgspec.Struct, frozen=True):
    """Two statements that do the same work, with and without the pattern; run and shown exactly as they stand here.

    What goes into them are numbers, names of dtypes (`known_dtype`) and the rule's own words, never text of a trace.
    They need at most 1 GiB, and may use `device`, the name of the device to measure on, without defining it.

    Attributes:
        before: one call with the pattern; what it leaves in `result` is held against what `after` leaves there.
        after: one call without it.
        setup: what runs once before both, imports included.
        compare: names of further values that `before` and `after` must leave equal.
        devices: the kinds of device on which the pair shows what the rule is about.
        of_events: whether `before` does what the match's events do and nothing besides. The time of `after` divided by
            that of `before` is then what a fix leaves of the events' time.
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
        needs: what must be recorded for the rule to be able to answer.
        action: what to do in a few words, verb first; the title of its findings, which else is the fix.
        message: what was found; one sentence without its full stop.
        why: the numbers and thresholds that made the rule speak.
        fix: what to do; an imperative sentence without its full stop.
        caveat: what the fix may change besides time, empty for nothing.
        min_share: findings that cost less than this part of the step are not reported; applied by the report.
        settings: thresholds that the user has set, by attribute name.
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
        """The name of the rule's folder; `user` for a module that is in none."""
        return cls.__module__.rpartition(".")[0].rpartition(".")[2] or "user"

    def filled_in(self, template: str, evidence: E) -> str:
        """`template` with each name in braces replaced by this threshold of the rule, or by what `evidence` has."""
        limits = thresholds_of(type(self))
        return template.format_map(
            {
                name: str(limits[name].in_unit(self) if name in limits else getattr(evidence, name))
                for name in names_in(template)
            }
        )

    @classmethod
    def names(cls) -> set[str]:
        """What texts may name: fields and properties of the evidence, and thresholds."""
        return evidence_names(cls.evidence()) | set(thresholds_of(cls))

    @classmethod
    def evidence(cls) -> type[msgspec.Struct] | None:
        """The struct that `Rule[...]` names; None where it names none."""
        bases = [base for kind in cls.__mro__ for base in vars(kind).get("__orig_bases__", ())]
        given = (kind for base in bases for kind in get_args(base) if isinstance(kind, type))
        return next((kind for kind in given if issubclass(kind, msgspec.Struct)), None)


class Rule(AnyRule[E]):
    """An anti-pattern that one profile shows.

    Attributes:
        left: the part of its events' time that a fix leaves, where that is the same for each match: most likely, at
            least, at most; None where the events go.
        yields_to: names of the rules whose fix makes this one's matches go away, too. A match is left out where what is
            reported of one of them covers most of its time.
    """

    left: ClassVar[tuple[float, float, float] | None] = None
    yields_to: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def detect(self, profile: Profile) -> Iterator[Match[E]]:
        """All occurrences in `profile`, which holds everything in `needs`."""

    def remedy(self, profile: Profile, match: Match[E]) -> Iterator[Edit]:
        """What fixing `match` would change; by default its events go, or take what is `left` of their time."""
        yield Scale(match.events, *self.left) if self.left else Remove(match.events)

    def benchmark(self, evidence: E) -> Benchmark | None:
        """The pattern and its fix as statements with the shapes of a match; None where that makes no sense.

        Statements are made again from the match's evidence later, without the recording (`Recipe`).
        """
        return None

    def made_by(self, evidence: E) -> Made | None:
        """The object on which the fix sets an option; None where the fix lies where the work is called."""
        return None

    def trainer_options(self, evidence: E) -> Mapping[str, str]:
        """The argument that does the fix where a library has the training loop; nothing where none does.

        By `transformers` (of `TrainingArguments`), `lightning` (of `Trainer`) and `accelerate` (of `Accelerator`).
        """
        return {}

    def fixer(self, code: Code, spot: Spot, evidence: E) -> Change:
        """The fix in the user's own code, as it is known from the module, the finding's lines and the evidence alone.

        Args:
            code: the module that holds the lines.
            spot: the lines of one of the finding's places.
            evidence: of the match that costs most.

        Raises:
            Unfixable: which change is right cannot be told.
        """
        raise Unfixable("The rule does not change code.")

    @classmethod
    def can_fix(cls) -> bool:
        """True if the rule has a fixer of its own."""
        return cls.fixer is not Rule.fixer

    def not_applicable(self, profile: Profile) -> str | None:
        """Why the question makes no sense for this profile although it holds all `needs`; None where it does."""
        return None
