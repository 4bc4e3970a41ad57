"""A character RNN as in the first tutorials: one character a call, and text that becomes a tensor letter by letter."""

import random
import string

import torch
from torch import nn


class Sizes:
    batch, length, hidden = 48, 48, 128


class Losses:
    letters_set_one_by_one = True
    one_character_a_call = True
    loss_per_character = True


KNOWN = {
    "letters_set_one_by_one": ("Each letter is written into its tensor separately", ["python-loop-tensor-indexing"]),
    "one_character_a_call": (
        "The GRU gets one character per call instead of whole texts",
        ["recurrent-cell-in-loop", "python-loop-tensor-indexing"],
    ),
    "loss_per_character": ("The loss of each character is computed separately", ["python-loop-tensor-indexing"]),
}
TINY = {"batch": 3, "length": 5, "hidden": 8}

LETTERS = string.printable


class Speaker(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.encoder = nn.Embedding(len(LETTERS), hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.decoder = nn.Linear(hidden, len(LETTERS))

    def forward(self, letters, state):
        output, state = self.gru(self.encoder(letters), state)  # loss: one_character_a_call
        return self.decoder(output), state


def letters_tensor(text):
    if Losses.letters_set_one_by_one:
        tensor = torch.zeros(len(text)).long()
        for c in range(len(text)):
            tensor[c] = LETTERS.index(text[c])  # loss: letters_set_one_by_one
        return tensor
    return torch.tensor([LETTERS.index(letter) for letter in text])


def random_training_set(text, dice):
    inputs = torch.empty(Sizes.batch, Sizes.length, dtype=torch.long)
    targets = torch.empty(Sizes.batch, Sizes.length, dtype=torch.long)
    for row in range(Sizes.batch):
        start = dice.randint(0, len(text) - Sizes.length - 1)
        chunk = text[start : start + Sizes.length + 1]
        inputs[row] = letters_tensor(chunk[:-1])
        targets[row] = letters_tensor(chunk[1:])
    return inputs, targets


def all_outputs(model, inputs):
    state = torch.zeros(1, Sizes.batch, Sizes.hidden)
    if Losses.one_character_a_call:
        outputs = []
        for c in range(Sizes.length):
            output, state = model(inputs[:, c : c + 1], state)  # loss: one_character_a_call
            outputs.append(output)
        return torch.cat(outputs, dim=1)
    return model(inputs, state)[0]


def loss_of(criterion, outputs, targets):
    if Losses.loss_per_character:
        loss = 0
        for c in range(Sizes.length):
            loss += criterion(outputs[:, c], targets[:, c])  # loss: loss_per_character
        return loss / Sizes.length
    return criterion(outputs.flatten(0, 1), targets.flatten())


def build():
    dice = random.Random(0)
    text = "".join(dice.choices(LETTERS, k=20_000))
    model = Speaker(Sizes.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    criterion = nn.CrossEntropyLoss()

    def train():
        inputs, targets = random_training_set(text, dice)
        model.zero_grad()
        loss = loss_of(criterion, all_outputs(model, inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    return train
