"""A soft actor-critic with small networks: three optimizers, a replay buffer that is a list, targets that follow."""

import copy
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal


class Sizes:
    batch, state, action, hidden, buffer = 128, 17, 6, 128, 2000


class Losses:
    replay_as_lists = True
    targets_per_parameter = True
    update_per_parameter = True
    distributions_checked = True
    critic_gradients_for_actor = True


KNOWN = {
    "replay_as_lists": ("A batch is built from tuples of lists", ["tensor-from-python-data"]),
    "targets_per_parameter": ("Target networks are updated parameter by parameter", ["moving-average-per-parameter"]),
    "update_per_parameter": ("Three optimizers update one parameter at a time", ["optimizer-single-tensor"]),
    "distributions_checked": ("Distributions check their parameters and values", ["distribution-arguments-validated"]),
    "critic_gradients_for_actor": (
        "The actor's loss computes gradients of the critics, which are discarded",
        ["gradients-thrown-away"],
    ),
}
TINY = {"batch": 4, "state": 3, "action": 2, "hidden": 4, "buffer": 10}


def mlp(inputs, outputs):
    hidden = Sizes.hidden
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
    )


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = mlp(Sizes.state + Sizes.action, 1), mlp(Sizes.state + Sizes.action, 1)

    def forward(self, state, action):
        both = torch.cat([state, action], 1)
        return self.q1(both), self.q2(both)


class GaussianPolicy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(Sizes.state, 2 * Sizes.action)

    def sample(self, state):
        mean, log_std = self.net(state).chunk(2, dim=1)
        normal = Normal(
            mean, log_std.clamp(-20, 2).exp(), validate_args=Losses.distributions_checked
        )  # loss: distributions_checked
        x_t = normal.rsample()
        y_t = torch.tanh(x_t)
        log_prob = normal.log_prob(x_t) - torch.log(1 - y_t.pow(2) + 1e-6)
        return y_t, log_prob.sum(1, keepdim=True)


class ReplayMemory:
    def __init__(self):
        self.dice = random.Random(0)
        numbers = (
            np.random.default_rng(0).normal(size=(Sizes.buffer, 2 * Sizes.state + Sizes.action + 1)).astype("float32")
        )
        ends = np.cumsum([Sizes.state, Sizes.action, 1])
        self.columns = [np.ascontiguousarray(part) for part in np.split(numbers, ends, axis=1)]
        self.buffer = list(zip(*(column.tolist() for column in self.columns)))

    def sample(self):
        chosen = [self.dice.randrange(Sizes.buffer) for _ in range(Sizes.batch)]
        if Losses.replay_as_lists:
            columns = map(list, zip(*(self.buffer[at] for at in chosen)))
            return [torch.FloatTensor(column) for column in columns]  # loss: replay_as_lists
        return [torch.from_numpy(column[chosen]) for column in self.columns]


def soft_update(target, source, tau):
    if Losses.targets_per_parameter:
        for target_param, param in zip(target.parameters(), source.parameters()):
            target_param.data.copy_(target_param.data * (1.0 - tau) + param.data * tau)  # loss: targets_per_parameter
    else:
        with torch.no_grad():
            torch._foreach_lerp_(list(target.parameters()), list(source.parameters()), tau)


class SAC:
    def __init__(self):
        fused = None if Losses.update_per_parameter else True
        self.critic, self.policy = Critic(), GaussianPolicy()
        self.critic_target = copy.deepcopy(self.critic)
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.critic_optim = torch.optim.Adam(self.critic.parameters(), lr=3e-4, fused=fused)
        self.policy_optim = torch.optim.Adam(self.policy.parameters(), lr=3e-4, fused=fused)
        self.alpha_optim = torch.optim.Adam([self.log_alpha], lr=3e-4, fused=fused)

    def update_critic(self, state, action, reward, next_state):
        with torch.no_grad():
            next_action, next_log_pi = self.policy.sample(next_state)
            target1, target2 = self.critic_target(next_state, next_action)
            target = reward + 0.99 * (torch.min(target1, target2) - self.log_alpha.exp() * next_log_pi)
        q1, q2 = self.critic(state, action)
        loss = F.mse_loss(q1, target) + F.mse_loss(q2, target)
        self.critic_optim.zero_grad()
        loss.backward()
        self.critic_optim.step()  # loss: update_per_parameter
        return loss.item()

    def update_policy(self, state):
        pi, log_pi = self.policy.sample(state)
        self.critic.requires_grad_(Losses.critic_gradients_for_actor)
        q1, q2 = self.critic(state, pi)
        loss = (self.log_alpha.exp().detach() * log_pi - torch.min(q1, q2)).mean()
        self.policy_optim.zero_grad()
        loss.backward()  # loss: critic_gradients_for_actor
        self.critic.requires_grad_(True)
        self.policy_optim.step()  # loss: update_per_parameter
        alpha_loss = -(self.log_alpha * (log_pi - Sizes.action).detach()).mean()
        self.alpha_optim.zero_grad()
        alpha_loss.backward()
        self.alpha_optim.step()
        return loss.item()

    def update_parameters(self, memory):
        state, action, reward, next_state = memory.sample()
        losses = self.update_critic(state, action, reward, next_state) + self.update_policy(state)
        soft_update(self.critic_target, self.critic, 0.005)
        return losses


def build():
    agent, memory = SAC(), ReplayMemory()
    return lambda: agent.update_parameters(memory)
