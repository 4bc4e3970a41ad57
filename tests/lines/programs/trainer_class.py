"""A trainer as frameworks have it: callbacks, properties, AMP, accumulation, meters, async logging, getattr dispatch."""

import abc
import asyncio
import collections
import contextlib
import functools
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Registry(type):
    known = {}

    def __new__(mcs, name, bases, namespace):
        cls = super().__new__(mcs, name, bases, namespace)
        mcs.known[name.lower()] = cls
        return cls


class Metric(metaclass=Registry):
    def __init__(self): self.total, self.count = torch.zeros(()), 0

    def update(self, out, target):
        self.total += self.value(out, target)
        self.count += 1

    def value(self, out, target): raise NotImplementedError

    @property
    def mean(self): return self.total / max(self.count, 1)


class Accuracy(Metric):
    def value(self, out, target):
        return (out.argmax(-1) == target).float().mean()


class TopTwo(Metric):
    def value(self, out, target):
        _, best = out.topk(2, dim=-1)
        return best.eq(target[:, None]).any(-1).float().mean()


class Points(Dataset):
    def __init__(self, count=24, size=8):
        self.x = torch.randn(count, size)
        self.y = (self.x.sum(-1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        x = self.x[index]
        if index % 2:
            x = x + 0.01 * torch.randn_like(x)
        return {"x": x, "y": self.y[index]}


def collate(samples):
    keys = samples[0].keys()
    return {key: torch.stack([sample[key] for sample in samples], dim=0) for key in keys}


class Progress:
    """Wraps a loader, as bars do."""

    def __init__(self, loader, every=2):
        self.loader, self.every, self.seen = loader, every, 0

    def __iter__(self):
        start = time.perf_counter()
        for batch in self.loader:
            yield batch
            self.seen += 1
            if self.seen % self.every == 0:
                self.rate = self.seen / (time.perf_counter() - start)

    def __len__(self): return len(self.loader)


class Callback(abc.ABC):
    def on_batch_end(self, trainer, loss): ...

    def on_epoch_end(self, trainer): ...


class Ema(Callback):
    def __init__(self, model, decay=0.9):
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}
        self.decay = decay

    @torch.no_grad()
    def on_batch_end(self, trainer, loss):
        for name, p in trainer.model.named_parameters():
            self.shadow[name].mul_(self.decay).add_(p, alpha=1 - self.decay)


class Norms(Callback):
    def on_epoch_end(self, trainer):
        trainer.history["norm"].append(
            functools.reduce(lambda total, p: total + p.detach().norm() ** 2, trainer.model.parameters(), torch.zeros(())).sqrt()
        )


class Trainer:
    accumulate: int = 2

    def __init__(self, model, loader, callbacks=()):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
        self.scaler = torch.amp.GradScaler("cpu", enabled=False)
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
        self.callbacks = [*callbacks]
        self.history = collections.defaultdict(list)

    def call(self, hook, *args, **kwargs):
        for callback in self.callbacks:
            if (method := getattr(callback, hook, None)) is not None:
                method(self, *args, **kwargs)

    @contextlib.contextmanager
    def evaluating(self):
        was = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                yield self.model
        finally:
            self.model.train(was)

    def training_step(self, batch, index):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = self.model(batch["x"])
            loss = self.criterion(out, batch["y"]) / self.accumulate
        self.scaler.scale(loss).backward()
        if (index + 1) % self.accumulate == 0:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_value_(self.model.parameters(), 0.5)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
        return loss.detach() * self.accumulate

    def fit(self):
        losses = []
        for index, batch in enumerate(Progress(self.loader)):
            loss = self.training_step(batch, index)
            losses.append(loss)
            self.call("on_batch_end", loss)
        self.call("on_epoch_end")
        self.scheduler.step()
        return torch.stack(losses).mean()

    def validate(self):
        metrics = {name: Registry.known[name]() for name in ("accuracy", "toptwo")}
        with self.evaluating() as model:
            for batch in self.loader:
                out = model(batch["x"])
                for metric in metrics.values():
                    metric.update(out, batch["y"])
        return {name: metric.mean.item() for name, metric in metrics.items()}

    async def log(self, loss):
        await asyncio.sleep(0)
        return f"loss {loss:.4f} ({loss.exp():>8.3f})"

    async def log_all(self, loss):
        texts = await asyncio.gather(*(self.log(each) for each in (loss, loss * 2)))
        return " ".join(texts)


def build():
    model = nn.Sequential(
        collections.OrderedDict(lift=nn.Linear(8, 16), act=nn.GELU(), norm=nn.LayerNorm(16), head=nn.Linear(16, 2))
    )
    loader = DataLoader(Points(), batch_size=6, shuffle=True, collate_fn=collate, num_workers=0)
    trainer = Trainer(model, loader, [Ema(model), Norms()])

    def step():
        loss = trainer.fit()
        found = trainer.validate()
        text = asyncio.run(trainer.log_all(loss))
        return loss, found, text

    return step
