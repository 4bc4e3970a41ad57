"""A residual network, a U-net, a GAN step: inheritance, hooks, Sequential by index, lists of modules, freezing."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def conv3x3(i, o, stride=1): return nn.Conv2d(i, o, 3, stride, 1, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, i, o, stride=1, downsample=None):
        super(BasicBlock, self).__init__()
        self.conv1 = conv3x3(i, o, stride); self.bn1 = nn.BatchNorm2d(o)
        self.conv2 = conv3x3(o, o); self.bn2 = nn.BatchNorm2d(o)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class SqueezeBlock(BasicBlock):
    def __init__(self, i, o, **kwargs):
        super().__init__(i, o, **kwargs)
        self.fc = nn.Sequential(nn.Linear(o, 2), nn.ReLU(), nn.Linear(2, o), nn.Sigmoid())

    def forward(self, x):
        out = super().forward(x)
        scale = self.fc(out.mean((2, 3)))[..., None, None]
        return out * scale


class Backbone(nn.Module):
    def __init__(self, widths=(4, 8)):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, widths[0], 3, padding=1), nn.BatchNorm2d(widths[0]), nn.ReLU())
        stages, i = [], widths[0]
        for n, o in enumerate(widths):
            down = nn.Sequential(nn.Conv2d(i, o, 1, 2), nn.BatchNorm2d(o))
            stages.append(nn.Sequential(BasicBlock(i, o, 2, down), SqueezeBlock(o, o)))
            i = o
        self.stages = nn.ModuleList(stages)

    def forward(self, x):
        features = [x := self.stem(x)]
        for stage in self.stages:
            x = stage(x)
            features.append(x)
        return features


class Decoder(nn.Module):
    def __init__(self, widths=(8, 4, 4)):
        super().__init__()
        self.up = nn.ModuleDict({str(n): nn.ConvTranspose2d(a, b, 2, 2) for n, (a, b) in enumerate(zip(widths, widths[1:]))})
        self.mix = nn.ModuleList(nn.Conv2d(2 * b, b, 1) for b in widths[1:])
        self.out = nn.Conv2d(widths[-1], 1, 1)

    def forward(self, features):
        *skips, x = features
        for n, skip in enumerate(reversed(skips)):
            x = self.up[str(n)](x)
            x = torch.cat([F.interpolate(x, size=skip.shape[-2:], mode="nearest"), skip], 1)
            x = F.leaky_relu(self.mix[n](x), 0.2, inplace=True)
        return self.out(x).sigmoid()


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = Backbone(), Decoder()
        self.seen = {}
        for name, module in self.encode.named_children():
            module.register_forward_hook(self._keep(name))

    def _keep(self, name):
        def hook(module, inputs, output):
            if isinstance(output, torch.Tensor):
                self.seen[name] = output.detach().abs().mean()
        return hook

    def forward(self, x): return self.decode(self.encode(x))


def dice(p, t, eps=1.):
    p, t = p.flatten(1), t.flatten(1)
    return 1 - (2 * (p * t).sum(1) + eps) / (p.sum(1) + t.sum(1) + eps)


def focal(p, t, gamma=2.0, alpha=0.25):
    ce = F.binary_cross_entropy(p, t, reduction="none")
    p_t = p * t + (1 - p) * (1 - t)
    return (ce * (1 - p_t) ** gamma * (alpha * t + (1 - alpha) * (1 - t))).mean()


def build():
    net = UNet()
    critic = nn.Sequential(nn.Conv2d(1, 4, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.LazyLinear(1))
    critic(torch.zeros(2, 1, 16, 16))
    g_opt = torch.optim.Adam(net.parameters(), 1e-3, betas=(0.5, 0.999))
    d_opt = torch.optim.RMSprop(critic.parameters(), 1e-3)
    net.decode.out.weight.register_hook(lambda g: g * 0.5)

    def penalty(real, fake):
        mix = torch.rand(real.size(0), 1, 1, 1)
        x = (mix * real + (1 - mix) * fake).requires_grad_(True)
        score = critic(x)
        (g,) = torch.autograd.grad(score, x, torch.ones_like(score), create_graph=True)
        return ((g.flatten(1).norm(2, dim=1) - 1) ** 2).mean()

    def step():
        x, t = torch.rand(2, 3, 16, 16), (torch.rand(2, 1, 16, 16) > 0.5).float()
        p = net(x)
        # critic
        d_opt.zero_grad()
        d_loss = critic(p.detach()).mean() - critic(t).mean() + 10 * penalty(t, p.detach())
        d_loss.backward()
        d_opt.step()
        for q in critic.parameters(): q.data.clamp_(-0.1, 0.1)
        # generator
        g_opt.zero_grad()
        g_loss = -critic(p).mean()
        loss = g_loss + dice(p, t).mean() + focal(p, t) + F.mse_loss(p, t)
        loss.backward()
        g_opt.step()
        first = net.encode.stages[0][1](net.encode.stem(x)[:, :, ::2, ::2])
        head = critic[0](t); head = critic[-1](critic[1:3](head))
        with torch.no_grad():
            hits = ((net(x) > 0.5) == t.bool()).float().mean().item()
        return {k: v.item() for k, v in dict(d=d_loss, g=g_loss, all=loss, first=first.sum(), head=head.sum()).items()}, hits

    return step
