import helpers
import torch
from torch import nn

SCALES = [1 + n / 100000 for n in (1001, 1002)]


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(11, 13)
        self.second = nn.Linear(13, 17)

    def forward(self, x):
        h = self.first(x)  # 11x13
        h = torch.relu(h) * 1.00101
        h = self.second(h)  # 13x17
        return torch.sigmoid(h * 1.00102)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.joint = nn.Linear(32, 96)
        self.last = nn.Linear(32, 19)

    def forward(self, x):
        q, k, v = self.joint(x).chunk(3, -1)  # 32x96
        q = q * 1.00201
        scores = q @ k.transpose(-2, -1)
        weights = torch.softmax(scores * 1.00202, -1)
        out = weights @ v
        out = out * 1.00203
        return self.last(out)  # 32x19


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(5, 7, 3, bias=False)
        self.norm = nn.BatchNorm2d(7)

    def forward(self, x):
        x = x * 1.00301
        x = self.conv(x)  # 5x7
        x = self.norm(x)
        return torch.relu(x) * 1.00302


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x * 1.00401

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * x * 1.00402


def custom(x):
    y = Cube.apply(x * 1.00403)
    return y.sin() * 1.00404


def in_place(x):
    y = x * 1.00501
    y.add_(1.00502)
    y[0].mul_(1.00503)
    return y.cos()


def broken(x):
    y = x.exp() * 1.00601
    torch._dynamo.graph_break()
    y = y.sin() * 1.00602
    print(end="")
    return y.cos() * 1.00603


def of_any_size(x):
    y = x.sin() * 1.00701
    return y.sum(0) * 1.00702


def one(x):
    y = x.sin() * 1.00801
    return y.cos() * 1.00802


def another(x):
    y = x.sin() * 1.00801
    return y.cos() * 1.00802


def nested(x):
    y = helpers.gated(x) * 1.00901
    return helpers.activated(y).sum() * 1.00902


def in_loop(x, w, v):
    y = x @ w  # 23x29
    for scale in SCALES:
        y = y * scale  # 1.01001 1.01002
    total = y.sum() * 1.01003
    y = y @ v  # 29x31
    return y + total


def joined(x, w, b):
    y = x @ w  # 41x43
    return y + b


class Distributed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(47, 53)
        self.last = nn.Linear(53, 59)

    def forward(self, x):
        h = self.first(x)  # 47x53
        h = torch.relu(h) * 1.01201
        h = self.last(h)  # 53x59
        return h.cos() * 1.01202


def of_two_sizes(x):
    return x @ x.mT  # 6x61 9x61


def in_one_process(model):
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    return nn.parallel.DistributedDataParallel(model)


def steps(chosen=()):
    torch.manual_seed(0)
    given = torch.randn(6, 8, requires_grad=True)
    parameters = [torch.randn(size, requires_grad=True) for size in ((23, 29), (29, 31))]
    sizes = [torch.randn(rows, 61, requires_grad=True) for rows in (6, 9)]
    run = {
        "perceptron": (torch.compile(Perceptron()), torch.randn(6, 11)),
        "attention": (torch.compile(Attention()), torch.randn(2, 6, 32)),
        "convolution": (torch.compile(Convolution()), torch.randn(2, 5, 8, 8)),
        "custom": (torch.compile(custom), given),
        "in_place": (torch.compile(in_place), given),
        "broken": (torch.compile(broken), given),
        "of_any_size": (torch.compile(of_any_size, dynamic=True), given, torch.randn(9, 8, requires_grad=True)),
        "equal": (torch.compile(one), given),
        "equal again": (torch.compile(another), given),
        "nested": (torch.compile(nested), given),
        "joined": (torch.compile(joined), (torch.randn(3, 41), torch.randn(41, 43, requires_grad=True), torch.ones(43))),
        "in_loop": (torch.compile(in_loop), (torch.randn(3, 23), *parameters)),
        "of_two_sizes": (torch.compile(of_two_sizes), *sizes),
    }
    if not chosen or "distributed" in chosen:
        run["distributed"] = (torch.compile(in_one_process(Distributed())), torch.randn(6, 47))
    run = {name: run[name] for name in chosen or run}
    optimizer = torch.optim.Adam([torch.ones(7, requires_grad=True)], lr=0.1)
    update = torch.compile(optimizer.step)
    return run, optimizer, update


def step(run, optimizer, update):
    for _, (function, *inputs) in run.items():
        for given in inputs:
            out = function(*given) if isinstance(given, tuple) else function(given)
            out.sum().backward()
    optimizer.param_groups[0]["params"][0].grad = torch.ones(7)
    update()  # the compiled optimizer
