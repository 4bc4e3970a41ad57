"""A U-Net for segmentation as popular repositories train it: a folder of pictures and masks, Dice and cross entropy."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sizes:
    batch, picture, width, classes = 8, 64, 8, 3


class Losses:
    masks_class_by_class = True
    dice_per_picture = True
    biases_before_norms = True
    one_hot_laid_out_again = True


KNOWN = {
    "masks_class_by_class": (
        "The loader searches the values of each mask and replaces them one by one",
        ["dataloader-num-workers-zero", "dataloader-starvation"],
    ),
    "dice_per_picture": ("Dice is computed for each class of each picture separately", ["python-loop-tensor-indexing"]),
    "biases_before_norms": (
        "Convolutions have biases that the following norms subtract",
        ["conv-bias-before-batchnorm"],
    ),
    "one_hot_laid_out_again": ("The classes of each pixel are copied into another layout", ["hidden-contiguous-copy"]),
}
ALSO = {"float32-beside-bfloat16-units": "found only on a CPU with such units, where autocast saves a fifth of a step"}
TINY = {"batch": 2, "picture": 16, "width": 2}


class Carvana(Dataset):
    def __init__(self):
        dice = np.random.default_rng(0)
        size = (2 * Sizes.batch, Sizes.picture, Sizes.picture)
        self.pictures = dice.integers(0, 256, (*size, 3), dtype=np.uint8)
        self.values = [40, 120, 250]
        self.masks = np.array(self.values, dtype=np.uint8)[dice.integers(0, Sizes.classes, size)]
        self.classes = np.searchsorted(self.values, self.masks)

    def __len__(self):
        return len(self.pictures)

    def mask(self, index):
        if not Losses.masks_class_by_class:
            return self.classes[index]
        mask = np.zeros((Sizes.picture, Sizes.picture), dtype=np.int64)
        for i, value in enumerate(sorted(np.unique(self.masks).tolist())):
            mask[self.masks[index] == value] = i  # loss: masks_class_by_class
        return mask

    def __getitem__(self, index):
        picture = self.pictures[index].transpose(2, 0, 1) / np.float32(255)
        return torch.from_numpy(picture), torch.from_numpy(self.mask(index))  # loss: masks_class_by_class


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        bias = Losses.biases_before_norms
        self.double_conv = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=bias), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=bias), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
        )  # fmt: skip

    def forward(self, x):
        return self.double_conv(x)  # loss: biases_before_norms


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        width = Sizes.width
        self.inc = DoubleConv(3, width)
        self.down1, self.down2 = DoubleConv(width, 2 * width), DoubleConv(2 * width, 4 * width)
        self.up1, self.conv1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), DoubleConv(4 * width, 2 * width)
        self.up2, self.conv2 = nn.ConvTranspose2d(2 * width, width, 2, 2), DoubleConv(2 * width, width)
        self.outc = nn.Conv2d(width, Sizes.classes, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(F.max_pool2d(x1, 2))
        x3 = self.down2(F.max_pool2d(x2, 2))
        x = self.conv1(torch.cat([x2, self.up1(x3)], dim=1))
        x = self.conv2(torch.cat([x1, self.up2(x)], dim=1))
        return self.outc(x)


def dice_coeff(predicted, target, epsilon=1e-6):
    inter = 2 * (predicted * target).sum(dim=(-1, -2))
    return (inter + epsilon) / (predicted.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2)) + epsilon)


def dice_loss(predicted, target):
    if Losses.dice_per_picture:
        dice = 0
        for i in range(predicted.shape[0]):
            for channel in range(predicted.shape[1]):
                dice += dice_coeff(predicted[i, channel], target[i, channel])  # loss: dice_per_picture
        return 1 - dice / (predicted.shape[0] * predicted.shape[1])
    return 1 - dice_coeff(predicted, target).mean()


def one_hot(masks):
    if Losses.one_hot_laid_out_again:
        return F.one_hot(masks, Sizes.classes).permute(0, 3, 1, 2).contiguous().float()  # loss: one_hot_laid_out_again
    return torch.zeros(len(masks), Sizes.classes, *masks.shape[1:]).scatter_(1, masks[:, None], 1.0)


def weights_init(module):
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.kaiming_normal_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def build():
    model = UNet()
    torch.manual_seed(1)
    model.apply(weights_init)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-5, weight_decay=1e-8, momentum=0.9, foreach=True)
    criterion = nn.CrossEntropyLoss()
    loader = DataLoader(Carvana(), Sizes.batch, shuffle=True, generator=torch.Generator().manual_seed(0))

    def train_model():
        while True:
            for images, true_masks in loader:  # loss: masks_class_by_class
                masks_pred = model(images)
                loss = criterion(masks_pred, true_masks)
                loss += dice_loss(F.softmax(masks_pred, dim=1), one_hot(true_masks))
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                yield loss.item()

    return train_model().__next__
