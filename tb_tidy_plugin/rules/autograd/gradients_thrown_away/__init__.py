"""Gradients that are dropped before an optimizer uses them.

## What it finds
A backward pass that accumulates gradients of parameters whose optimizer does not step before they are dropped. Examples
are a discriminator's loss that goes back through the generator, and an actor's loss that computes gradients of the
critics.

## Why it is slow
Half of the work of a layer's backward pass is for its parameters. If nothing before a module needs gradients either,
its whole backward pass is wasted.

## Example
```python
loss = criterion(discriminator(fake), zeros)
loss.backward()
discriminator_optimizer.step()
```

Use instead:
```python
loss = criterion(discriminator(fake.detach()), zeros)
loss.backward()
discriminator_optimizer.step()
```

## How the saving is estimated
If everything that a pass does after its last used gradient is only for unused ones, all of that goes. Otherwise the
products for the gradients of the weights go, and their accumulation; of a convolution's backward pass 0.5 remains (0.35
to 0.7).

## When it stays quiet
Jobs with one optimizer, or with several that update the same shapes. Passes whose gradients can be assigned to the
optimizers in more than one way. Sums over several passes that a step uses completely. The last pass of a recording,
since the use of its gradients is unknown. Profiles without shapes.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.rules.autograd.gradients_thrown_away.owners import BackwardPass, GradientBlock, outcomes
from tb_tidy_plugin.torchfacts import aten

_PRODUCTS = aten.names("known", "mm bmm")
_CONVOLUTIONS = aten.names("known", "convolution_backward")
WEIGHT = 2  # its position among the inputs of `convolution_backward`
SUMS = aten.names("known", "sum")
TURNS = "TBackward"
CONVOLUTION_LEFT = (0.5, 0.35, 0.7)
MATRIX = 2  # dimensions


class Evidence(msgspec.Struct, frozen=True):
    """Gradients of one optimizer's parameters that one kind of pass computes for nothing.

    Attributes:
        gradients: number of them that a pass computes. others: number of other parameters' gradients.
        time: spent for them alone, per step. is_tail: True if the end of the pass is for them alone.
    """

    gradients: int
    others: int
    time: tt.Nanoseconds
    is_tail: bool

    @property
    def instead(self) -> str:
        """The way to end the pass earlier."""
        if self.is_tail:
            return "Call `.detach()` on the other module's output before you pass it to the module"
        return "Call `module.requires_grad_(False)` while the loss is computed, and `True` after its backward pass"


class GradientsThrownAway(tt.Rule[Evidence]):
    """Gradients that are dropped before an optimizer uses them."""

    code = "TT1152"
    needs = frozenset({"shapes", "steps"})
    reads_operators = True
    action = "Do not compute gradients that no optimizer uses"
    message = "A backward pass computes gradients of {gradients} parameters that are dropped unused: {time} per step"
    why = (
        "The pass also accumulates {others} other gradients, which a step uses. The gradients of these {gradients} "
        "parameters are dropped before their next step. Reported if this happens in {min_passes} passes or more"
    )
    fix = "{instead}; or name the parameters whose gradients are used: `loss.backward(inputs=…)`"

    min_passes = tt.Threshold(2, "a single one may be the first after a change of the trained parameters")
    min_part = tt.Threshold(0.8, "of similar passes; otherwise the gradients are sometimes used")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        found: dict[tuple[object, ...], list[tuple[BackwardPass, GradientBlock, bool]]] = {}
        for each, block, is_dropped in outcomes(profile):
            if len(each.blocks) > 1:
                found.setdefault(_kind(each, block), []).append((each, block, is_dropped))
        for known in found.values():
            dropped = [(each, block) for each, block, is_dropped in known if is_dropped]
            if len(dropped) >= max(self.min_passes, self.min_part * len(known)):
                yield from self._matches(profile, dropped)

    def _matches(
        self, profile: tt.Profile, dropped: list[tuple[BackwardPass, GradientBlock]]
    ) -> Iterator[tt.Match[Evidence]]:
        parts = [_for_nothing(profile, each, block) for each, block in dropped]
        rows = rows_of(row for removed, scaled in parts for row in (*removed, *scaled))
        (each, block), is_tail = dropped[0], dropped[0][0].blocks[-1] is dropped[0][1]
        evidence = Evidence(
            gradients=len(block.rows),
            others=sum(len(other.rows) for other in each.blocks) - len(block.rows),
            time=tt.Nanoseconds(profile.per_step_ns(rows)),
            is_tail=is_tail,
        )
        for (of, _), (removed, scaled) in zip(dropped, parts, strict=True):
            events = (*removed, *scaled)
            if events:
                yield tt.Match(of.called_by, events, evidence, subject=f"{evidence.gradients} {is_tail}")

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        scaled = tuple(row for row in match.events if profile.name(row) in _CONVOLUTIONS)
        removed = tuple(row for row in match.events if profile.name(row) not in _CONVOLUTIONS)
        if removed:
            yield tt.Remove(removed)
        if scaled:
            yield tt.Scale(scaled, *CONVOLUTION_LEFT)


def _kind(each: BackwardPass, block: GradientBlock) -> tuple[object, ...]:
    """The kind of a pass: its place in the step, and the gradients that it computes."""
    handed = tuple((other.owner, other.shapes) for other in each.blocks)
    return (each.number, handed, each.blocks.index(block))


def _for_nothing(profile: tt.Profile, each: BackwardPass, block: GradientBlock) -> tuple[list[int], list[int]]:
    """Events that go without the block's gradients, and events that become shorter."""
    nodes: list[int] = each.nodes.tolist()
    above = {profile.parent(row): row for row in block.rows}
    if each.blocks[-1] is block:
        last = profile.parent(each.blocks[-2].rows[-1])
        return [node for node in nodes if last is not None and profile.start_ns(node) > profile.start_ns(last)], []
    removed, scaled, left = [], [], Counter(block.shapes)
    for at, node in enumerate(nodes):
        turns = TURNS in profile.name(node) and at + 1 < len(nodes) and nodes[at + 1] in above
        if turns or node in above:
            removed.append(node)
        else:
            more, less = _of_weights(profile, node, left)
            removed += more
            scaled += less
    return removed, scaled


def _of_weights(profile: tt.Profile, node: int, left: Counter[tt.Shape]) -> tuple[list[int], list[int]]:
    """Events of one node that compute a weight's gradient, among those that are `left`."""
    inner = list(profile.subtree(node))[1:]
    for row in inner:
        given = profile.inputs(row)
        if profile.name(row) in _PRODUCTS and (made := _product(given.shape(0), given.shape(1))) is not None:
            shape = next((each for each in (made, made[::-1]) if left[each] > 0), None)
            if shape is not None:
                left[shape] -= 1
                return [row, *(each for each in inner if profile.name(each) in SUMS)], []
        if profile.name(row) in _CONVOLUTIONS and (weight := given.shape(WEIGHT)) is not None and left[weight] > 0:
            left[weight] -= 1
            return [], [row]
    return [], []


def _product(first: tt.Shape | None, second: tt.Shape | None) -> tt.Shape | None:
    """The shape of a product of two matrices."""
    if first is None or second is None or len(first) != MATRIX or len(second) != MATRIX:
        return None
    return (first[0], second[1])
