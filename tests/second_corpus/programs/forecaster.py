"""A forecaster of many time series: windows of the past, a recurrent decoder that feeds itself, errors per series."""

import torch
import torch.nn.functional as F
from torch import nn


class Sizes:
    series, past, future, batch, hidden = 64, 48, 12, 64, 96


class Losses:
    windows_sliced = True
    scaled_per_series = True
    encoder_cell_by_cell = True
    future_grown_by_cat = True
    errors_read_one_by_one = True


KNOWN = {
    "windows_sliced": ("Each window is sliced from its series separately", ["python-loop-tensor-indexing"]),
    "scaled_per_series": ("Each window is scaled separately", ["python-loop-tensor-indexing", "elementwise-op-flood"]),
    "encoder_cell_by_cell": (
        "The known past goes through a cell one hour at a time",
        ["recurrent-cell-in-loop"],
    ),
    "future_grown_by_cat": ("The forecast grows by one cat per hour", ["cat-in-loop"]),
    "errors_read_one_by_one": (
        "The error of each series is read separately",
        ["host-sync-scalar-readback", "python-loop-tensor-indexing"],
    ),
}
TINY = {"series": 3, "past": 5, "future": 3, "batch": 3, "hidden": 4}


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.LSTM(1, Sizes.hidden, batch_first=True)
        self.encoder_cell, self.decoder_cell = nn.LSTMCell(1, Sizes.hidden), nn.LSTMCell(1, Sizes.hidden)
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            setattr(self.encoder_cell, name, getattr(self.encoder, f"{name}_l0"))
        self.out = nn.Linear(Sizes.hidden, 1)

    def encode(self, past):
        if Losses.encoder_cell_by_cell:
            h = c = torch.zeros(len(past), Sizes.hidden)
            for t in range(past.shape[1]):
                h, c = self.encoder_cell(past[:, t : t + 1], (h, c))  # loss: encoder_cell_by_cell
            return h, c
        _, (h, c) = self.encoder(past[:, :, None])
        return h[0], c[0]

    def forward(self, past):
        h, c = self.encode(past)
        last, future = past[:, -1:], past[:, :0]
        found = []
        for _ in range(Sizes.future):
            h, c = self.decoder_cell(last, (h, c))
            last = self.out(h)
            if Losses.future_grown_by_cat:
                future = torch.cat([future, last], dim=1)  # loss: future_grown_by_cat
            else:
                found.append(last)
        return future if Losses.future_grown_by_cat else torch.cat(found, dim=1)


def windows_of(table, rows, starts):
    length = Sizes.past + Sizes.future
    if Losses.windows_sliced:
        return torch.stack([table[r, s : s + length] for r, s in zip(rows, starts)])  # loss: windows_sliced
    return table.unfold(1, length, 1)[rows, starts]


def scaled(windows):
    if Losses.scaled_per_series:
        rows = []
        for window in windows:
            past = window[: Sizes.past]
            rows.append((window - past.mean()) / (past.std() + 1e-6))  # loss: scaled_per_series
        return torch.stack(rows)
    past = windows[:, : Sizes.past]
    return (windows - past.mean(1, keepdim=True)) / (past.std(1, keepdim=True) + 1e-6)


def mean_error(forecast, truth):
    if Losses.errors_read_one_by_one:
        errors = []
        for i in range(len(forecast)):
            errors.append((forecast[i] - truth[i]).abs().mean().item())  # loss: errors_read_one_by_one
        return sum(errors) / len(errors)
    return (forecast - truth).abs().mean().item()


class Experiment:
    def __init__(self):
        self.table = torch.randn(Sizes.series, 600).cumsum(1)
        self.model = Forecaster()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)

    def train_batch(self):
        rows = torch.randint(Sizes.series, (Sizes.batch,))
        starts = torch.randint(600 - Sizes.past - Sizes.future, (Sizes.batch,))
        windows = scaled(windows_of(self.table, rows, starts))
        past, truth = windows[:, : Sizes.past], windows[:, Sizes.past :]
        forecast = self.model(past)
        loss = F.mse_loss(forecast, truth)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item() + mean_error(forecast.detach(), truth)


def build():
    return Experiment().train_batch
