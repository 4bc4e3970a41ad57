"""A DCGAN as the framework's own example trains it: a folder of pictures, two networks, two optimizers."""

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sizes:
    batch, picture, original, noise, features = 24, 32, 180, 64, 16


class Losses:
    resized_each_time = True
    fake_not_detached = True
    biases_before_norms = True
    update_per_parameter = True


KNOWN = {
    "resized_each_time": (
        "Each picture is scaled at every load, in the training process",
        ["dataloader-num-workers-zero", "dataloader-starvation"],
    ),
    "fake_not_detached": (
        "The discriminator's loss is backpropagated through the generator for nothing",
        ["gradients-thrown-away"],
    ),
    "biases_before_norms": (
        "Convolutions have biases that the following norms subtract",
        ["conv-bias-before-batchnorm"],
    ),
    "update_per_parameter": ("Both optimizers update one parameter at a time", ["optimizer-single-tensor"]),
}
TINY = {"batch": 2, "picture": 32, "original": 40, "noise": 4, "features": 2}


def to_tensor(picture):
    array = np.asarray(picture.resize((Sizes.picture, Sizes.picture), Image.Resampling.BICUBIC), dtype=np.float32)
    return torch.from_numpy(array).permute(2, 0, 1) / 127.5 - 1


class Pictures(Dataset):
    def __init__(self):
        dice = np.random.default_rng(0)
        shape = (2 * Sizes.batch, Sizes.original, Sizes.original, 3)
        self.pictures = [Image.fromarray(each) for each in dice.integers(0, 256, shape, dtype=np.uint8)]
        if not Losses.resized_each_time:
            self.pictures = [to_tensor(picture) for picture in self.pictures]

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return (
            to_tensor(self.pictures[index]) if Losses.resized_each_time else self.pictures[index]
        )  # loss: resized_each_time


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        wide, bias = Sizes.features, Losses.biases_before_norms
        self.main = nn.Sequential(
            nn.ConvTranspose2d(Sizes.noise, 4 * wide, 4, 1, 0, bias=bias), nn.BatchNorm2d(4 * wide), nn.ReLU(True),
            nn.ConvTranspose2d(4 * wide, 2 * wide, 4, 2, 1, bias=bias), nn.BatchNorm2d(2 * wide), nn.ReLU(True),
            nn.ConvTranspose2d(2 * wide, wide, 4, 2, 1, bias=bias), nn.BatchNorm2d(wide), nn.ReLU(True),
            nn.ConvTranspose2d(wide, 3, 4, 2, 1, bias=False), nn.Tanh(),
        )  # fmt: skip

    def forward(self, noise):
        return self.main(noise)  # loss: biases_before_norms


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        wide, bias = Sizes.features, Losses.biases_before_norms
        self.main = nn.Sequential(
            nn.Conv2d(3, wide, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(wide, 2 * wide, 4, 2, 1, bias=bias), nn.BatchNorm2d(2 * wide), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(2 * wide, 4 * wide, 4, 2, 1, bias=bias), nn.BatchNorm2d(4 * wide), nn.LeakyReLU(0.2, True),
            nn.Conv2d(4 * wide, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, pictures):
        return self.main(pictures).view(-1)  # loss: biases_before_norms


def weights_init(module):
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def build():
    pictures = Pictures()
    generator, discriminator = Generator(), Discriminator()
    torch.manual_seed(1)
    generator.apply(weights_init)
    discriminator.apply(weights_init)
    fused = None if Losses.update_per_parameter else True
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=fused)
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=fused)
    criterion = nn.BCELoss()
    loader = DataLoader(pictures, Sizes.batch, shuffle=True, generator=torch.Generator().manual_seed(0))

    def train():
        while True:
            for real in loader:  # loss: resized_each_time
                discriminator.zero_grad()
                label = torch.full((len(real),), 1.0)
                error_real = criterion(discriminator(real), label)
                error_real.backward()
                fake = generator(torch.randn(len(real), Sizes.noise, 1, 1))
                label.fill_(0.0)
                shown = fake if Losses.fake_not_detached else fake.detach()
                error_fake = criterion(discriminator(shown), label)
                error_fake.backward(retain_graph=True)  # loss: fake_not_detached
                optimizer_d.step()  # loss: update_per_parameter

                generator.zero_grad()
                label.fill_(1.0)
                error = criterion(discriminator(fake), label)
                error.backward()
                optimizer_g.step()  # loss: update_per_parameter
                yield error_real.item() + error_fake.item() + error.item()

    return train().__next__
