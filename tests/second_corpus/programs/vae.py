"""A variational autoencoder in the manner of Lightning: a module that says how it is trained, a trainer that loops."""

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.distributions import Normal, kl_divergence
from torch.utils.data import DataLoader, Dataset


class Sizes:
    batch, hidden, code = 128, 256, 64


class Losses:
    transformed_one_by_one = True
    distributions_checked = True
    likelihood_by_hand = True
    gradients_filled_with_zeros = True


KNOWN = {
    "transformed_one_by_one": (
        "Each picture is converted to a tensor separately, again in each epoch, in the training process",
        ["dataloader-num-workers-zero", "dataloader-starvation"],
    ),
    "distributions_checked": ("Distributions check their parameters and values", ["distribution-arguments-validated"]),
    "likelihood_by_hand": ("The cross entropy of the pixels is written out", ["elementwise-op-flood"]),
    "gradients_filled_with_zeros": ("Gradients are filled with zeros instead of dropped", ["zero-grad-memset"]),
}
TINY = {"batch": 3, "hidden": 8, "code": 2}


class Digits(Dataset):
    def __init__(self, count):
        self.data = np.random.default_rng(0).integers(0, 256, (count, 28, 28), dtype=np.uint8)
        self.whole = torch.from_numpy(self.data).float().div(255).clamp(0.01, 0.99).flatten(1)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        picture = Image.fromarray(self.data[index])  # loss: transformed_one_by_one
        return torch.from_numpy(np.array(picture)).float().div(255).clamp(0.01, 0.99).flatten()


class WholeDigits(Digits):
    def __getitems__(self, indices):
        return self.whole[indices]


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, Sizes.hidden), nn.ReLU())
        self.mean, self.scale = nn.Linear(Sizes.hidden, Sizes.code), nn.Linear(Sizes.hidden, Sizes.code)
        self.decoder = nn.Sequential(
            nn.Linear(Sizes.code, Sizes.hidden), nn.ReLU(), nn.Linear(Sizes.hidden, 784), nn.Sigmoid()
        )

    def likelihood(self, reconstruction, picture):
        if Losses.likelihood_by_hand:
            bce = -(picture * torch.log(reconstruction + 1e-8) + (1 - picture) * torch.log(1 - reconstruction + 1e-8))
            return bce.sum(1).mean()  # loss: likelihood_by_hand
        return nn.functional.binary_cross_entropy(reconstruction, picture, reduction="none").sum(1).mean()

    def training_step(self, batch):
        check = Losses.distributions_checked
        hidden = self.encoder(batch)
        posterior = Normal(
            self.mean(hidden), self.scale(hidden).exp(), validate_args=check
        )  # loss: distributions_checked
        prior = Normal(torch.zeros(Sizes.code), torch.ones(Sizes.code), validate_args=check)
        code = posterior.rsample()
        divergence = kl_divergence(posterior, prior).sum(1).mean()
        return self.likelihood(self.decoder(code), batch) + 1e-3 * divergence  # loss: likelihood_by_hand

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3, fused=True)


class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = model.configure_optimizers()
        self.callbacks = []

    def fit(self):
        while True:
            for batch in self.loader:  # loss: transformed_one_by_one
                for callback in self.callbacks:
                    callback.on_train_batch_start(self, batch)
                yield self.run_batch(batch).item()

    def run_batch(self, batch):
        self.optimizer.zero_grad(
            set_to_none=not Losses.gradients_filled_with_zeros
        )  # loss: gradients_filled_with_zeros
        loss = self.model.training_step(batch)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def build():
    model = Autoencoder()
    digits = (Digits if Losses.transformed_one_by_one else WholeDigits)(6 * Sizes.batch)
    collate = None if Losses.transformed_one_by_one else lambda batch: batch
    order = torch.Generator().manual_seed(0)
    loader = DataLoader(digits, Sizes.batch, shuffle=True, drop_last=True, generator=order, collate_fn=collate)
    return Trainer(model, loader).fit().__next__
