"""The object behind the fixture `tidy`: recordings of a test's steps, and their budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from statistics import median
from typing import TypeVar, cast, overload

from tb_tidy_plugin.analysis.assemble import Analysis, read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.budgets.baselines import StepBaselines, machine
from tb_tidy_plugin.budgets.bounds import CountLimit, bound_of
from tb_tidy_plugin.budgets.findings import broken_by_findings
from tb_tidy_plugin.budgets.found import broken_count
from tb_tidy_plugin.capture.budgeted import BudgetedProfile, StepPlan
from tb_tidy_plugin.profile.step_counts import Counted
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.words.errors import TidyError
from tb_tidy_plugin.words.units import Nanoseconds, plural

_Item = TypeVar("_Item")

_UPDATE = "--tidy-baseline-update"


class BudgetError(AssertionError):
    """A step exceeds its budget; the message says by how much, and which lines cause it."""


class BudgetRun:
    """The steps of one recording.

    `step` marks the end of a step. `steps` does so for a loop, which then has as many steps as are needed.
    """

    def __init__(self, profile: BudgetedProfile, number: int, tidy: Tidy) -> None:
        self._profile = profile
        self._number = number
        self._tidy = tidy

    def step(self) -> None:
        """Marks the end of a step."""
        self._profile.step()

    @overload
    def steps(self) -> Iterator[None]: ...

    @overload
    def steps(self, items: Iterable[_Item]) -> Iterator[_Item]: ...

    def steps(self, items: Iterable[_Item] | None = None) -> Iterator[_Item] | Iterator[None]:
        """Yields the items of a loop, repeating them if they end, and marks the end of each step.

        Raises:
            TypeError: `items` is not iterable, such as a number; `tidy.profile()` takes the number of steps.
            ValueError: `items` is empty, or can be iterated only once.
        """
        if isinstance(items, int):
            raise TypeError(
                f"`steps` takes batches or a loader, not {items!r}; pass a number to `tidy.profile(recorded=3)`"
            )
        return self._profile.steps(repeat(None)) if items is None else self._profile.steps(items)

    @property
    def trace(self) -> Path:
        """The recording.

        Raises:
            TidyError: nothing was recorded.
        """
        trace, plan = self._profile.trace, self._profile.plan
        if self._profile.marked < plan.until_timed:
            raise TidyError(
                f"The test marked {plural(self._profile.marked, 'step')}, but the recording needs {plan.until_timed}.",
                "Iterate over `run.steps()`, or call `run.step()` more often.",
            )
        if trace is None:
            raise TidyError("Nothing was recorded.", "The test's log says why.")
        return trace

    @cached_property
    def _analysis(self) -> Analysis:
        [file] = find_traces(self.trace)
        return read_file(file, Job(source_roots=(self._tidy.root,)))

    def assert_budget(  # noqa: PLR0913 - each budget can be left out
        self,
        *,
        syncs: CountLimit | None = None,
        reads: CountLimit | None = None,
        kernels: CountLimit | None = None,
        copies: CountLimit | None = None,
        bytes_moved: CountLimit | None = None,
        allocations: CountLimit | None = None,
        graph_breaks: CountLimit | None = None,
        collectives: CountLimit | None = None,
        findings: int | Sequence[str] | None = None,
        step_ratio: float | None = None,
    ) -> None:
        """Checks each recorded step against a budget.

        Args:
            syncs, reads, kernels, copies, bytes_moved, allocations, graph_breaks, collectives: per step; a number is
                an upper bound, a text such as `">=1"` any other. `docs/budgets.md` says what each counts.
            findings: most findings allowed, or names of rules that may find nothing; an empty list is the same as 0.
            step_ratio: largest ratio of the median time of a timed step to the stored baseline's. Without a baseline of
                this machine the test is skipped once all other budgets are kept.

        Raises:
            BudgetError: a budget is exceeded.
            TidyError: nothing was recorded, or the stored baseline cannot be used.
            ValueError: a budget is invalid.
        """
        __tracebackhide__ = True
        counts = {
            "syncs": syncs, "reads": reads, "kernels": kernels, "copies": copies, "bytes_moved": bytes_moved,
            "allocations": allocations, "graph_breaks": graph_breaks, "collectives": collectives,
        }  # fmt: skip
        bounds = {name: bound_of(name, limit) for name, limit in counts.items() if limit is not None}
        if not bounds and findings is None and step_ratio is None:
            raise ValueError("assert_budget() needs a budget, such as syncs=0")
        analysis = self._analysis
        broken = [broken_count(analysis, cast("Counted", name), bound) for name, bound in bounds.items()]
        broken += [] if findings is None else [broken_by_findings(analysis, findings)]
        unknown, slow = ("", "") if step_ratio is None else self._against_baseline(step_ratio)
        said = [text for text in (*broken, slow) if text]
        if said:
            raise BudgetError("\n".join(["the step does not keep its budget", *said, f"Recording: {self.trace}"]))
        if unknown:
            self._tidy.skip(unknown)

    def _against_baseline(self, most: float) -> tuple[str, str]:
        """The reason why the time cannot be compared, and how it breaks the budget; each empty if it does not apply."""
        times = self._profile.times_ns
        if not most > 0:
            raise ValueError(f"step_ratio={most!r} must be a number greater than 0")
        if not times:
            wanted = self._profile.plan.steps
            return "", f"step_ratio: no step was timed. Mark {wanted} steps, or iterate over `run.steps()`."
        step_ns, baselines = round(median(times)), self._tidy.baselines
        devices = self._analysis.profile.metadata.devices
        device = devices[0].name if devices else ""
        if baselines.update:
            baselines.write(self._number, device, step_ns, len(times))
            return "", ""
        before = baselines.read(self._number, device)
        if before is None:
            return f"no baseline of this test is stored for {machine(device)}; run pytest {_UPDATE}", ""
        ratio = step_ns / before.step_ns
        if ratio <= most:
            return "", ""
        now, then = Nanoseconds(step_ns), Nanoseconds(before.step_ns)
        return "", f"step_ratio: a step takes {now}, {ratio:.2f} times the baseline of {then}; at most {most:g} times"


@dataclass(slots=True)
class Tidy:
    """Records steps of one test.

    Attributes:
        folder: folder of the recordings. root: the folder of the user's sources. baselines: the test's stored times.
        skip: skips the test for a reason.
        profiles: number of recordings of this test so far.
    """

    folder: Path
    root: Path
    baselines: StepBaselines
    skip: Callable[[str], object]
    profiles: int = 0

    @contextmanager
    def profile(self, *, warmup: int = 3, recorded: int = 3, timed: int = 10) -> Iterator[BudgetRun]:
        """Records steps of the test: `warmup` steps run first, `recorded` ones count, `timed` ones follow.

        The profiler takes one more step to start. `timed` may be 0 if no budget has a `step_ratio`.

        Example::

            def test_step(tidy):
                with tidy.profile() as run:
                    for _ in run.steps():
                        train_step()
                run.assert_budget(syncs=0, kernels="<=400")
        """
        if warmup < 0 or recorded < 1 or timed < 0:
            raise ValueError("warmup and timed must be 0 or greater, recorded 1 or greater")
        self.profiles += 1
        profile = BudgetedProfile(self.folder / str(self.profiles), StepPlan(warmup, recorded, timed))
        profile.start()
        try:
            yield BudgetRun(profile, self.profiles, self)
        finally:
            profile.stop()
