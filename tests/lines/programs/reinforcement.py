"""Agents and environments: deques, namedtuples, clipped losses, distributions, targets, zip of batches."""

import random
from collections import deque, namedtuple
from typing import Deque, List, NamedTuple

import torch
from torch import nn, optim
from torch.distributions import Categorical, Normal

Transition = namedtuple("Transition", "state action next_state reward")


class Sample(NamedTuple):
    obs: torch.Tensor
    value: torch.Tensor
    logp: torch.Tensor


class Env:
    def reset(self):
        self.s, self.t = torch.zeros(4), 0
        return self.s

    def step(self, action):
        push = 1. if action == 1 else -1.
        self.s = self.s * 0.9 + torch.tensor([push, 0., -push, .1])
        self.t += 1
        reward = -(self.s ** 2).sum().item()
        return self.s.clone(), reward, self.t >= 6 or self.s.abs().max() > 50


class Memory:
    def __init__(self, capacity=100):
        self.items: Deque[Transition] = deque([], maxlen=capacity)

    def push(self, *args): self.items.append(Transition(*args))

    def sample(self, n): return random.sample(self.items, n)

    def __len__(self): return len(self.items)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 16), nn.Tanh())
        self.pi, self.v = nn.Linear(16, 2), nn.Linear(16, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)

    def act(self, obs):
        dist, value = self(obs)
        a = dist.sample()
        return a, dist.log_prob(a), value


def gae(rewards: List[float], values, last, gamma=0.99, lam=0.95):
    advantages, running = [], 0.
    values = [*values, last]
    for t in range(len(rewards) - 1, -1, -1):
        delta = rewards[t] + gamma * values[t + 1] - values[t]
        running = delta + gamma * lam * running
        advantages.insert(0, running)
    return torch.stack(advantages)


class PPO:
    def __init__(self):
        self.net = ActorCritic()
        self.opt = optim.Adam(self.net.parameters(), lr=3e-4)
        self.env = Env()

    def collect(self):
        obs, done = self.env.reset(), False
        samples, actions, rewards = [], [], []
        while not done:
            with torch.no_grad():
                a, logp, v = self.net.act(obs)
            nxt, r, done = self.env.step(a.item())
            samples.append(Sample(obs, v, logp)); actions.append(a); rewards.append(r)
            obs = nxt
        return samples, actions, rewards, obs

    def update(self, samples, actions, rewards, last):
        obs, values, logps = map(torch.stack, zip(*samples))
        with torch.no_grad():
            adv = gae(rewards, list(values), self.net(last)[1])
            returns = adv + values
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        for epoch in range(2):
            for idx in torch.randperm(len(obs)).split(3):
                dist, v = self.net(obs[idx])
                ratio = (dist.log_prob(torch.stack(actions)[idx]) - logps[idx]).exp()
                clipped = ratio.clamp(0.8, 1.2) * adv[idx]
                pi_loss = -torch.min(ratio * adv[idx], clipped).mean()
                v_loss = 0.5 * ((v - returns[idx]) ** 2).mean()
                loss = (
                    pi_loss
                    + 0.5 * v_loss
                    - 0.01 * dist.entropy().mean()
                )
                self.opt.zero_grad(); loss.backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), max_norm=0.5)
                self.opt.step()
        return loss


class DQN:
    tau, gamma = 0.1, 0.9

    def __init__(self):
        make = lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        self.policy, self.target = make(), make()
        self.target.load_state_dict(self.policy.state_dict())
        self.opt = optim.AdamW(self.policy.parameters(), lr=1e-3, amsgrad=True)
        self.memory, self.env, self.steps = Memory(), Env(), 0

    def select(self, state, eps):
        if random.random() > eps:
            with torch.no_grad():
                return self.policy(state).max(1).indices.view(1, 1)
        else:
            return torch.tensor([[random.randrange(2)]], dtype=torch.long)

    def optimise(self):
        if len(self.memory) < 4: return
        batch = Transition(*zip(*self.memory.sample(4)))
        alive = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
        nxt = torch.cat([s for s in batch.next_state if s is not None])
        state, action, reward = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
        q = self.policy(state).gather(1, action)
        v = torch.zeros(4)
        with torch.no_grad(): v[alive] = self.target(nxt).max(1).values
        expected = (v * self.gamma) + reward
        loss = nn.SmoothL1Loss()(q, expected.unsqueeze(1))
        self.opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(self.policy.parameters(), 100)
        self.opt.step()
        a, b = self.target.state_dict(), self.policy.state_dict()
        for key in b: a[key] = b[key] * self.tau + a[key] * (1 - self.tau)
        self.target.load_state_dict(a)

    def episode(self):
        state = self.env.reset().unsqueeze(0)
        for t in range(8):
            action = self.select(state, 0.5 if t % 2 else -1)
            obs, r, done = self.env.step(action.item())
            nxt = None if done else obs.unsqueeze(0)
            self.memory.push(state, action, nxt, torch.tensor([r]))
            if nxt is not None: state = nxt
            self.optimise()
            if done: break


def gaussian(n=4):
    mu = torch.zeros(n, requires_grad=True); log_std = torch.full((n,), -0.5, requires_grad=True)
    d = Normal(mu, log_std.exp())
    a = d.rsample()
    return d.log_prob(a).sum() + d.entropy().sum(), torch.tanh(a)


def build():
    random.seed(0)
    ppo, dqn = PPO(), DQN()

    def step():
        loss = ppo.update(*ppo.collect())
        dqn.episode()
        logp, a = gaussian()
        (logp + a.sum()).backward()
        return loss

    return step
