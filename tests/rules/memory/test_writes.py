"""What may be written to a tensor: recordings of programs that do so, or only read it, as one rule sees them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from inspect import cleandoc
from pathlib import Path

import pytest

from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing import matches_of
from tb_tidy_plugin.rules.memory.constant_rebuilt_every_step import ConstantRebuiltEveryStep
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recorded_lines import STEPS, recorder
from tests.support.views import SOMETIMES, VIEWS

pytestmark = pytest.mark.torch

Recorder = Callable[[str], Profile]


@pytest.fixture(scope="module")
def record() -> Iterator[Recorder]:
    """Records steps of these lines."""
    with recorder() as write, tempfile.TemporaryDirectory() as folder:

        def recorded_steps(lines: str) -> Profile:
            trace = Path(folder, "trace.json")
            write(lines, trace)
            return Profile(read_trace(trace))

        yield recorded_steps


@pytest.fixture(scope="module")
def recorded(record: Recorder) -> Recorder:
    """Records steps with these lines in them, which find a new tensor of zeros, 32 × 48, in `m`."""
    return lambda lines: record(f"m = torch.zeros(32, 48)\n{lines}\nloss = (m.reshape(-1)[:48] @ w).sum()")


def found(profile: Profile) -> tuple[Match, ...]:
    return matches_of(ConstantRebuiltEveryStep, profile)


EACH = {**VIEWS, **SOMETIMES}


class TestWritesThroughViews:
    @pytest.mark.parametrize("view", EACH.values(), ids=EACH)
    def test_a_tensor_that_is_written_to_is_no_constant(self, recorded: Recorder, view: str) -> None:
        assert not found(recorded(f"v = {view}\nv.add_(data(v))"))

    @pytest.mark.parametrize("view", [EACH[name] for name in EACH if name != "set_"])  # which writes to a tensor itself
    def test_a_tensor_that_is_only_read_is_one(self, recorded: Recorder, view: str) -> None:
        matches = found(recorded(f"v = {view}\ny = (v * 1).abs().sum()"))
        assert len(matches) == STEPS
        assert {match.evidence.factory for match in matches} == {"zeros"}

    def test_a_view_of_a_view_of_a_view(self, recorded: Recorder) -> None:
        assert not found(recorded("v = m.unbind()[1].view(6, 8).transpose(0, 1).unfold(0, 2, 2)\nv.mul_(data(v))"))

    def test_a_view_that_was_taken_long_before(self, recorded: Recorder) -> None:
        others = "for size in range(2, 40):\n        m.view(-1)[:size].sum()\n        x.view(-1)[:size].relu()"
        assert not found(recorded(f"rows = m.unbind(1)\n{others}\nrows[3].add_(x[:, 3])"))
        assert found(recorded(f"rows = m.unbind(1)\n{others}\nrows[3].add(x[:, 3])"))

    def test_a_view_of_all_pieces_in_one_call(self, recorded: Recorder) -> None:
        assert not found(recorded("torch._foreach_add_(m.chunk(4), x.chunk(4))"))
        assert found(recorded("torch._foreach_add(m.chunk(4), x.chunk(4))"))

    def test_more_pieces_than_are_recorded(self, recorded: Recorder) -> None:
        assert not found(recorded("torch._foreach_add_(m.unbind(), x.unbind())"))
        assert found(recorded("torch._foreach_add(m.unbind(), x.unbind())"))


WRITES = {
    "in place": "m.add_(x)",
    "to a row": "m[3] = x[3]",
    "to a row of a number": "m[3] = 1.5",
    "to columns": "m[:, :8] = x[:, :8]",
    "to what is left of a shift": "m[1:] = x[:-1]",
    "to what is left of a shift, by a copy": "m[1:] = x[:-1].clone()",
    "to one element": "m[0, 0] = x[0, 0]",
    "to one element of a row": "m[0][0].add_(x[0, 0])",
    "by index": "m[index[:3]] = x[:3]",
    "by mask": "m[x > 0.5] = 1.0",
    "with a mask": "m.masked_fill_(x > 0.5, 2.0)",
    "of a scalar that is data": "m.fill_(x.sum())",
    "scattered": "m.scatter_(1, index[:, None], x)",
    "summed by index": "m.index_add_(0, index, x)",
    "put by index elsewhere": "m = m.index_add(0, index, x)",
    "random": "m.uniform_()",
    "by an activation": "F.relu(m, inplace=True)",
    "as a result": "torch.add(x, x, out=m)",
    "as the result for a row": "torch.add(x[0], x[0], out=m[0])",
    "as one of two results": "torch.max(x, 0, out=(m[0], torch.empty(48, dtype=torch.long)))",
    "as a joined result": "torch.cat([x[:16], x[16:]], out=m)",
    "as a stacked result": "torch.stack([x[0], x[1]], out=m[:2])",
    "as a product": "torch.mm(x, w @ w.T, out=m)",
    "as a random result": "torch.rand(32, 48, out=m)",
    "as a clamped result": "torch.clamp(x, 0, 1, out=m)",
    "all at once": "torch._foreach_add_([m], [x])",
    "by a fused optimizer": (
        "torch._fused_sgd_([m], [x], [], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, "
        "maximize=False, is_first_step=True)"
    ),
    "by running statistics": "F.batch_norm(x.t(), m[:, 0].clone(), m.view(-1)[:32], training=True)",
    "by an operator of a library": "torch.ops.tidytest.fill(m, x)",
    "by an operator of a library that is given nothing else": "torch.ops.tidytest.bump(m)",
    "by an operator of a library, through a view": "torch.ops.tidytest.fill(m.view(-1), x.view(-1))",
    "by an operator of a library, in a list": "torch.ops.tidytest.fill_each([m], x)",
    "through a view of a library's operator": "torch.ops.tidytest.flat(m)[3:9].add_(x[0, 3:9])",
    "by a function of autograd": "Scale.apply(m, x)",
    "batched": "torch.vmap(lambda a, b: a.add_(b))(m, x)",
    "batched, through a view": "torch.vmap(lambda a, b: a[3].add_(b[3]))(m, x)",
    "as a gradient": "made.grad = m\n(made * x).sum().backward()",
    "as another tensor's data": "y = torch.empty(3)\ny.data = m\ny[0].add_(x[0])",
    "through its storage": "torch.empty(0).set_(m.untyped_storage(), 0, (48,), (1,)).add_(x[0])",
    "to its storage": "m.untyped_storage().fill_(0)",
    "by NumPy": "m.numpy()[0] = 3",
    "by NumPy, which hands a part back": "torch.from_numpy(m.numpy()[:4]).add_(x[:4])",
    "by another library": "torch.from_dlpack(m)[:4].add_(x[:4])",
    "in one step of several": "if number == 2:\n        m[3].add_(x[3])",
    "as a resized tensor": "m.unsqueeze_(0)",
    "as what it was joined to": "n = torch.cat([m, m]).view(-1)\nn.add_(data(n))",
    "as what it was repeated to": "n = m.repeat(2, 1)\nn.add_(data(n))\ns = n.sum()",
}

READS = {
    "beside writes to others": "y = torch.zeros(8) + w.sum(0)\ny.add_(1)\nz = (x @ w).relu_()",
    "by the results of others": "torch.mm(x, w, out=torch.empty(32, 8))\ntorch.sum(m, 0, out=torch.empty(48))",
    "by running statistics of others": "F.batch_norm(x @ w, torch.rand(8), torch.rand(8), training=True)",
    "by operators of a library": "torch.ops.tidytest.fill(torch.rand(8), w[0])",
    "with gradients that are added to": (
        "v = torch.rand(48, 8, requires_grad=True)\nfor _ in range(2):\n        (x @ v).sum().backward()"
    ),
    "with gradients that are clipped": (
        "q = [torch.rand(5, requires_grad=True) for _ in range(40)]\ntorch.stack(q).sum().backward()\nclip(q, 0.1)"
    ),
}


class TestOtherWrites:
    @pytest.mark.parametrize("lines", WRITES.values(), ids=WRITES)
    def test_a_tensor_that_is_written_to_is_no_constant(self, recorded: Recorder, lines: str) -> None:
        assert not found(recorded(lines))

    @pytest.mark.parametrize("lines", READS.values(), ids=READS)
    def test_a_tensor_that_is_only_read_is_one(self, recorded: Recorder, lines: str) -> None:
        assert len(found(recorded(f"s = (m + 1).sum()\n{lines}"))) >= STEPS


class TestKeptForLaterSteps:
    def test_a_sum_over_several_steps_that_begins_anew(self, record: Recorder) -> None:
        lines = """
            global kept
            if number % 2:
                kept = torch.zeros(32, 48)
            elif number:
                kept[0].add_(x[0])
        """
        assert not found(record(cleandoc(lines)))


class TestConstantsOfConstants:
    def test_a_table_of_positions(self, record: Recorder) -> None:
        lines = """
            position = torch.arange(64).unsqueeze(1)
            frequency = torch.exp(torch.arange(0, 16, 2) * -0.5)
            table = torch.zeros(64, 16)
            table[:, 0::2] = torch.sin(position * frequency)
            table[:, 1::2] = torch.cos(position * frequency)
            y = (table * 1).sum()
        """
        assert len(found(record(cleandoc(lines)))) >= STEPS

    def test_a_mask_that_is_filled_by_positions(self, record: Recorder) -> None:
        lines = """
            mask = torch.full((48, 48), -1e9)
            position = torch.arange(48)
            mask.masked_fill_(position < (position + 1).view(48, 1), 0)
            y = (torch.rand(48, 48) + mask).sum()
        """
        matches = found(record(cleandoc(lines)))
        assert {match.evidence.chain for match in matches} == {"full, arange, add, view, lt, masked_fill_"}
