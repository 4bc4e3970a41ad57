"""Proximal policy optimization: 16 environments stepped as one batch without gradients, then one update."""

import torch
import torch.nn.functional as F
from torch import nn

ENVIRONMENTS, STEPS, STATE, ACTIONS = 64, 16, 24, 6


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(STATE, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.actor, self.critic = nn.Linear(128, ACTIONS), nn.Linear(128, 1)

    def forward(self, state):
        hidden = self.body(state)
        return self.actor(hidden), self.critic(hidden).squeeze(-1)


def build():
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4, fused=True)
    dynamics = torch.randn(STATE + ACTIONS, STATE) / 6
    one_hot = torch.eye(ACTIONS)
    state = torch.randn(ENVIRONMENTS, STATE)
    states = torch.zeros(STEPS, ENVIRONMENTS, STATE)
    actions = torch.zeros(STEPS, ENVIRONMENTS, dtype=torch.long)
    log_probabilities, values, rewards = torch.zeros(3, STEPS, ENVIRONMENTS).unbind(0)

    @torch.no_grad()
    def rollout() -> torch.Tensor:
        nonlocal state
        for at in range(STEPS):
            logits, value = policy(state)
            action = torch.multinomial(logits.softmax(-1), 1).squeeze(1)
            states[at], actions[at], values[at] = state, action, value
            log_probabilities[at] = logits.log_softmax(-1).gather(1, action[:, None]).squeeze(1)
            state = torch.tanh(torch.cat([state, one_hot[action]], dim=1) @ dynamics)
            rewards[at] = state[:, 0]
        return policy(state)[1]

    @torch.no_grad()
    def advantages(last: torch.Tensor) -> torch.Tensor:
        found = torch.empty_like(rewards)
        following, value = torch.zeros(ENVIRONMENTS), last
        for at in reversed(range(STEPS)):
            delta = rewards[at] + 0.99 * value - values[at]
            following = delta + 0.99 * 0.95 * following
            found[at], value = following, values[at]
        return found

    def step() -> None:
        advantage = advantages(rollout())
        returns = (advantage + values).flatten()
        normalized = ((advantage - advantage.mean()) / (advantage.std() + 1e-8)).flatten()
        before = log_probabilities.flatten()
        for _ in range(4):
            logits, value = policy(states.flatten(0, 1))
            now = logits.log_softmax(-1)
            ratio = (now.gather(1, actions.flatten()[:, None]).squeeze(1) - before).exp()
            clipped = ratio.clamp(0.8, 1.2)
            actor_loss = -torch.minimum(ratio * normalized, clipped * normalized).mean()
            entropy = -(now.exp() * now).sum(-1).mean()
            loss = actor_loss + 0.5 * F.mse_loss(value, returns) - 0.01 * entropy
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()

    return step
