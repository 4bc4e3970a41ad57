"""Proximal policy optimization in one file, as single-file libraries write it: roll out, estimate, update."""

import numpy as np
import torch
from torch import nn
from torch.distributions.categorical import Categorical


class Sizes:
    environments, steps, observation, actions, hidden, epochs = 8, 32, 12, 4, 64, 2


class Losses:
    one_environment_a_call = True
    rollout_with_graph = True
    distributions_checked = True
    advantages_on_tensors = True
    observations_from_lists = True


KNOWN = {
    "one_environment_a_call": (
        "The policy acts for one environment per call instead of for all",
        ["python-loop-tensor-indexing"],
    ),
    "rollout_with_graph": (
        "The rollout builds graphs for a backward pass that never runs",
        ["grad-graph-never-consumed"],
    ),
    "distributions_checked": ("Distributions check their parameters and values", ["distribution-arguments-validated"]),
    "advantages_on_tensors": ("Advantages are summed in scalar tensors, one by one", ["scalar-tensors-in-loop"]),
    "observations_from_lists": ("Observations are Python lists", ["tensor-from-python-data"]),
}
TINY = {"environments": 2, "steps": 4, "observation": 3, "actions": 2, "hidden": 4, "epochs": 1}


def layer_init(layer, std=np.sqrt(2)):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, 0.0)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        hidden = Sizes.hidden
        self.critic = nn.Sequential(
            layer_init(nn.Linear(Sizes.observation, hidden)), nn.Tanh(),
            layer_init(nn.Linear(hidden, hidden)), nn.Tanh(), layer_init(nn.Linear(hidden, 1), 1.0),
        )  # fmt: skip
        self.actor = nn.Sequential(
            layer_init(nn.Linear(Sizes.observation, hidden)), nn.Tanh(),
            layer_init(nn.Linear(hidden, hidden)), nn.Tanh(), layer_init(nn.Linear(hidden, Sizes.actions), 0.01),
        )  # fmt: skip

    def get_value(self, x):
        return self.critic(x).squeeze(-1)

    def get_action_and_value(self, x, action=None, draw=None):
        logits = self.actor(x)
        probs = Categorical(logits=logits, validate_args=Losses.distributions_checked)  # loss: distributions_checked
        if action is None:
            action = (probs.probs.cumsum(-1) < draw[..., None]).sum(-1).clamp(max=Sizes.actions - 1)
        return action, probs.log_prob(action), probs.entropy(), self.critic(x).squeeze(-1)  # loss: rollout_with_graph


class Environments:
    """A made-up world: it moves with the action, and pays for staying in the middle."""

    def __init__(self):
        self.dice = np.random.default_rng(0)
        self.state = self.dice.normal(size=(Sizes.environments, Sizes.observation))
        self.pushes = self.dice.normal(size=(Sizes.actions, Sizes.observation))

    def step(self, actions):
        self.state = 0.9 * self.state + 0.1 * self.pushes[actions]
        return self.state, -np.abs(self.state).mean(1)


def as_tensor(states):
    if Losses.observations_from_lists:
        return torch.tensor([list(state) for state in states], dtype=torch.float32)  # loss: observations_from_lists
    return torch.from_numpy(states).float()


def act(agent, observation, draws):
    if Losses.one_environment_a_call:
        found = [
            agent.get_action_and_value(
                observation[env : env + 1], draw=draws[env : env + 1]
            )  # loss: one_environment_a_call
            for env in range(len(observation))
        ]
        action, logprob, _, value = (torch.cat(each) for each in zip(*found))
    else:
        action, logprob, _, value = agent.get_action_and_value(observation, draw=draws)
    return action, logprob.detach(), value.detach()


def generalised_advantages(rewards, values, last, gamma=0.99, gae_lambda=0.95):
    if not Losses.advantages_on_tensors:
        rewards_, values_ = rewards.numpy(), np.vstack([values.numpy(), last.numpy()])
        deltas, found, running = rewards_ + gamma * values_[1:] - values_[:-1], np.zeros_like(rewards_), 0.0
        for t in reversed(range(len(rewards_))):
            found[t] = running = deltas[t] + gamma * gae_lambda * running
        return torch.from_numpy(found)
    advantages = torch.zeros_like(rewards)
    for env in range(rewards.shape[1]):
        running = 0.0
        for t in reversed(range(len(rewards))):
            following = last[env] if t == len(rewards) - 1 else values[t + 1, env]
            delta = rewards[t, env] + gamma * following - values[t, env]  # loss: advantages_on_tensors
            running = delta + gamma * gae_lambda * running
            advantages[t, env] = running
    return advantages


def build():
    agent, world = Agent(), Environments()
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5, fused=True)
    shape = (Sizes.steps, Sizes.environments)
    obs, actions = torch.zeros(*shape, Sizes.observation), torch.zeros(shape, dtype=torch.long)
    logprobs, rewards, values = torch.zeros(shape), torch.zeros(shape), torch.zeros(shape)
    dice = torch.Generator().manual_seed(0)

    def rollout():
        observation = as_tensor(world.state)
        for t in range(Sizes.steps):
            obs[t] = observation
            actions[t], logprobs[t], values[t] = act(agent, observation, torch.rand(Sizes.environments, generator=dice))
            state, reward = world.step(actions[t].numpy())
            rewards[t], observation = torch.from_numpy(reward), as_tensor(state)
        return agent.get_value(observation).detach()

    def update(advantages):
        returns = (advantages + values).flatten()
        advantages = ((advantages - advantages.mean()) / (advantages.std() + 1e-8)).flatten()
        for _ in range(Sizes.epochs):
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(obs.flatten(0, 1), actions.flatten())
            ratio = (newlogprob - logprobs.flatten()).exp()
            pg_loss = torch.max(-advantages * ratio, -advantages * ratio.clamp(0.8, 1.2)).mean()
            v_loss = 0.5 * ((newvalue - returns) ** 2).mean()
            loss = pg_loss - 0.01 * entropy.mean() + 0.5 * v_loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        return loss.item()

    def iteration():
        with torch.set_grad_enabled(Losses.rollout_with_graph):
            last = rollout()
        return update(generalised_advantages(rewards, values, last))

    return iteration
