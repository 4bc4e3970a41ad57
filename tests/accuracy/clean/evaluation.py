"""An evaluation: predictions and a confusion matrix, kept as tensors until the end."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build():
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(64 * 16, 10),
    ).eval()
    data = TensorDataset(torch.randn(4096, 3, 32, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, num_workers=2, persistent_workers=True)
    loss_of = nn.CrossEntropyLoss(reduction="sum")
    confusion = torch.zeros(100, dtype=torch.long)
    total = torch.zeros(())
    batches = iter(loader)

    @torch.inference_mode()
    def step() -> None:
        pictures, labels = next(batches)
        logits = model(pictures)
        total.add_(loss_of(logits, labels))
        confusion.add_(torch.bincount(labels * 10 + logits.argmax(1), minlength=100))

    return step
