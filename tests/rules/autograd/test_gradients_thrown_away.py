"""gradients-thrown-away: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from collections.abc import Sequence

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.autograd.gradients_thrown_away import GradientsThrownAway

CRITIC, MAKER = ("16x8", "16"), ("8x4", "8")
"""Shapes of two networks' weights and biases."""

STEP_US = 2_000


class Drawing:
    """Steps of losses, passes and updates, each where the one before ended; an operator takes 10 µs, a product 40."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.at = 0

    def begins(self, step: int) -> None:
        self.at = step * STEP_US
        self.lines.append(f"ProfilerStep#{step + 1} {self.at}-{self.at + STEP_US - 1}")
        self.at += 10

    def loss(self, function: str) -> None:
        """What the host runs before a pass, in a function of the user's."""
        self.lines += [
            f"  train.py(7): {function} {self.at}-{self.at + 20}",
            f"    aten::ones_like {self.at + 1}-{self.at + 9}",
        ]
        self.at += 30

    def layer(self, shapes: Sequence[str], added: bool, batch: int = 64) -> None:
        """The backward pass of one linear layer: 100 µs, then 10 for the bias, 10 to turn the weight's, 10 for it."""
        rows, columns = shapes[0].split("x")
        node, at = "autograd::engine::evaluate_function", self.at
        kind = "aten::add_" if added else "aten::detach"
        self.lines += [
            f"  {node}: AddmmBackward0 {at}-{at + 99}",
            f"    aten::mm {at + 1}-{at + 40} dims={batch}x{rows},{rows}x{columns} types=float,float",
            f"    aten::mm {at + 41}-{at + 80} dims={columns}x{batch},{batch}x{rows} types=float,float",
            f"    aten::sum {at + 81}-{at + 90} dims={batch}x{rows} types=float",
            f"  {node}: torch::autograd::AccumulateGrad {at + 100}-{at + 109}",
            f"    torch::autograd::AccumulateGrad {at + 101}-{at + 108} dims={shapes[1]} types=float",
            f"      {kind} {at + 102}-{at + 107} dims={shapes[1]} types=float",
            f"  {node}: TBackward0 {at + 110}-{at + 119}",
            f"  {node}: torch::autograd::AccumulateGrad {at + 120}-{at + 129}",
            f"    torch::autograd::AccumulateGrad {at + 121}-{at + 128} dims={shapes[0]} types=float",
            f"      {kind} {at + 122}-{at + 127} dims={shapes[0]} types=float",
        ]
        self.at += 130

    def update(self, shapes: Sequence[str], optimizer: str = "Adam") -> None:
        """An optimizer's step that updates parameters of these shapes one by one."""
        self.lines.append(f"  Optimizer.step#{optimizer}.step {self.at}-{self.at + 10 * len(shapes) + 2}")
        for at, shape in enumerate(shapes):
            begins = self.at + 1 + 10 * at
            self.lines.append(f"    aten::addcdiv_ {begins}-{begins + 9} dims={shape} types=float")
        self.at += 10 * len(shapes) + 10

    def profile(self) -> Profile:
        return draw("\n".join(self.lines))


def adversarial(steps: int = 4, detached: bool = False, maker: Sequence[str] = MAKER) -> Profile:
    """The critic's loss goes through the maker, too, unless `detached`; the maker's goes through the critic."""
    drawn = Drawing()
    for step in range(steps):
        drawn.begins(step)
        drawn.loss("train_critic")
        drawn.layer(CRITIC, added=False)
        if not detached:
            drawn.layer(maker, added=False)
        drawn.update(CRITIC)
        drawn.loss("train_maker")
        drawn.layer(CRITIC, added=True)
        drawn.layer(maker, added=False)
        drawn.update(maker)
    return drawn.profile()


def through_the_maker() -> list[str]:
    """The critic's loss goes back through the maker, whose own loss has nothing to do with the critic."""
    drawn = Drawing()
    for step in range(4):
        drawn.begins(step)
        drawn.loss("train_critic")
        drawn.layer(CRITIC, added=False)
        drawn.layer(MAKER, added=False)
        drawn.update(CRITIC)
        drawn.loss("train_maker")
        drawn.layer(MAKER, added=False)
        drawn.update(MAKER)
    return drawn.lines


class TestReports:
    def test_a_loss_that_goes_back_through_what_made_its_input(self) -> None:
        first, second = findings(GradientsThrownAway, adversarial())
        assert [finding.places[0].function for finding in (first, second)] == ["train_critic", "train_maker"]
        assert first.message.startswith("A backward pass computes gradients of 2 parameters that are dropped unused")
        assert ".detach()" in (first.fix or "")

    def test_gradients_of_a_critic_in_another_network_s_loss(self) -> None:
        (finding,) = findings(GradientsThrownAway, adversarial(detached=True))
        assert "The pass also accumulates 2 other gradients" in str(finding.details[0])
        assert "requires_grad_(False)" in (finding.fix or "")
        assert finding.places[0].function == "train_maker"

    def test_two_networks_whose_layers_have_shapes_in_common(self) -> None:
        """As the parts of a GAN have; each set is another one as a whole."""
        same = (CRITIC[0], CRITIC[1], "16x4", "16")
        drawn = Drawing()
        for step in range(4):
            drawn.begins(step)
            drawn.loss("train_critic")
            drawn.layer(CRITIC, added=False)
            drawn.update(CRITIC)
            drawn.loss("train_maker")
            drawn.layer(CRITIC, added=True)
            drawn.layer(same[:2], added=False)
            drawn.layer(same[2:], added=False)
            drawn.update(same)
        (finding,) = findings(GradientsThrownAway, drawn.profile())
        assert finding.places[0].function == "train_maker"
        assert "gradients of 2 parameters" in finding.message

    def test_a_part_of_a_critic(self) -> None:
        """The actor's loss often takes one of two critics."""
        both = (*CRITIC, "24x8", "24")
        drawn = Drawing()
        for step in range(4):
            drawn.begins(step)
            drawn.loss("train_critic")
            drawn.layer(both[:2], added=False)
            drawn.layer(both[2:], added=False)
            drawn.update(both)
            drawn.loss("train_actor")
            drawn.layer(CRITIC, added=True)
            drawn.layer(MAKER, added=False)
            drawn.update(MAKER)
        (finding,) = findings(GradientsThrownAway, drawn.profile())
        assert finding.places[0].function == "train_actor"


class TestSaves:
    def test_all_behind_the_last_gradient_of_use(self) -> None:
        """The other network's nodes in each critic's pass: 99 µs and three of 9."""
        assert saving_ns(GradientsThrownAway, draw("\n".join(through_the_maker()))) == (0, 126_000, 126_000)

    def test_what_is_for_the_weights_where_the_pass_goes_on(self) -> None:
        """In three of four steps product and sum in the layer's node, then the bias', the turn and the weight's."""
        _, expected, _ = saving_ns(GradientsThrownAway, adversarial(detached=True))
        assert expected == 3 * (39_000 + 9_000 + 3 * 9_000) // 4


class TestStaysQuiet:
    def test_for_the_last_pass_of_which_nobody_knows(self) -> None:
        assert not matches_of(GradientsThrownAway, adversarial(steps=2, detached=True))
        assert matches_of(GradientsThrownAway, adversarial(steps=3, detached=True))

    def test_where_a_step_uses_the_sum_of_several_passes(self) -> None:
        drawn = Drawing()
        for step in range(4):
            drawn.begins(step)
            for at in range(3):
                drawn.loss("train")
                drawn.layer(CRITIC, added=at > 0)
                drawn.layer(MAKER, added=at > 0)
            drawn.update(CRITIC)
            drawn.update(MAKER)
        assert not matches_of(GradientsThrownAway, drawn.profile())

    def test_for_one_optimizer(self) -> None:
        drawn = Drawing()
        for step in range(4):
            drawn.begins(step)
            drawn.loss("train")
            drawn.layer(CRITIC, added=False)
            drawn.loss("train_again")
            drawn.layer(CRITIC, added=False)
            drawn.update(CRITIC)
        assert not matches_of(GradientsThrownAway, drawn.profile())

    def test_for_networks_of_the_same_shapes(self) -> None:
        assert not matches_of(GradientsThrownAway, adversarial(maker=CRITIC))

    def test_where_gradients_may_be_of_one_of_several_optimizers(self) -> None:
        """What is left of the pass fits into two of them."""
        drawn = Drawing()
        for step in range(4):
            drawn.begins(step)
            for shapes in (CRITIC, (*MAKER, "8x8", "8"), (*MAKER, "9x8", "9")):
                drawn.loss("train")
                drawn.layer(shapes[:2], added=False)
                if shapes[2:]:
                    drawn.layer(shapes[2:], added=False)
                drawn.update(shapes)
            drawn.loss("more")
            drawn.layer(CRITIC, added=True)
            drawn.layer(MAKER, added=True)
        assert not matches_of(GradientsThrownAway, drawn.profile())

    def test_for_gradients_that_are_used_in_most_steps(self) -> None:
        drawn = Drawing()
        for step in range(9):
            drawn.begins(step)
            drawn.loss("train")
            drawn.layer(CRITIC, added=False)
            drawn.layer(MAKER, added=False)
            drawn.update(CRITIC)
            if step % 3:
                drawn.update(MAKER)
        assert not matches_of(GradientsThrownAway, drawn.profile())

    def test_where_what_a_step_updates_is_not_known(self) -> None:
        text = "\n".join(through_the_maker())
        assert matches_of(GradientsThrownAway, draw(text))
        assert not matches_of(GradientsThrownAway, draw(text.replace("aten::addcdiv_", "mine::update")))
