"""Speech to letters: spectrograms of utterances, one-dimensional convolutions, CTC, and what it would have written."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence


class Sizes:
    batch, samples, width, letters, length = 16, 16_000, 64, 29, 20


class Losses:
    spectrogram_per_utterance = True
    weights_normalised_by_hand = True
    letters_read_one_by_one = True
    masks_made_per_layer = True


KNOWN = {
    "spectrogram_per_utterance": (
        "The spectrogram of each utterance is computed separately",
        ["python-loop-tensor-indexing", "elementwise-op-flood"],
    ),
    "weights_normalised_by_hand": (
        "Features are normalised by written-out sums",
        ["normalisation-written-out", "elementwise-op-flood"],
    ),
    "letters_read_one_by_one": (
        "The best letters are read from their tensor one by one",
        ["host-sync-scalar-readback", "python-loop-tensor-indexing"],
    ),
    "masks_made_per_layer": ("The padding mask is created again in each layer", ["constant-rebuilt-every-step"]),
}
ALSO = {"constant-rebuilt-every-step": "the window of the spectrogram is created again for each utterance"}
TINY = {"batch": 2, "samples": 2_000, "width": 4, "letters": 5, "length": 2}

WINDOW, HOP = 400, 160


def spectrogram(waves):
    found = torch.stft(waves, WINDOW, HOP, window=torch.hann_window(WINDOW), return_complex=True, pad_mode="constant")
    return (found.abs() + 1e-6).log()


def features_of(utterances):
    if Losses.spectrogram_per_utterance:
        return pad_sequence(
            [spectrogram(each).t() for each in utterances],  # loss: spectrogram_per_utterance
            batch_first=True,
        ).transpose(1, 2)
    return spectrogram(torch.stack(utterances))


def normalised(x, gain, bias):
    if Losses.weights_normalised_by_hand:
        mean = x.mean(1, keepdim=True)
        variance = ((x - mean) ** 2).mean(1, keepdim=True)  # loss: weights_normalised_by_hand
        return (x - mean) / torch.sqrt(variance + 1e-5) * gain[:, None] + bias[:, None]
    return F.layer_norm(x.transpose(1, 2), gain.shape, gain, bias).transpose(1, 2)


def padding_mask(lengths, longest):
    return torch.arange(longest)[None, None, :] < lengths[:, None, None]  # loss: masks_made_per_layer


class ConvBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 5, padding=2)
        self.gain, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x, lengths, mask):
        if Losses.masks_made_per_layer:
            mask = padding_mask(lengths, x.shape[-1])
        return x + F.relu(normalised(self.conv(x * mask), self.gain, self.bias))


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(WINDOW // 2 + 1, Sizes.width, 5, 2, padding=2)
        self.blocks = nn.ModuleList([ConvBlock(Sizes.width) for _ in range(4)])
        self.last = nn.Conv1d(Sizes.width, Sizes.letters, 1)

    def forward(self, x, lengths):
        x = self.first(x)
        mask = padding_mask(lengths, x.shape[-1])
        for block in self.blocks:
            x = block(x, lengths, mask)
        return self.last(x).permute(2, 0, 1).log_softmax(-1)


def greedy(log_probs, lengths):
    best, texts = log_probs.argmax(-1), []
    for i in range(len(lengths)):
        if Losses.letters_read_one_by_one:
            raw = [best[t, i].item() for t in range(lengths[i])]  # loss: letters_read_one_by_one
        else:
            raw = best[: lengths[i], i].tolist()
        texts.append([b for a, b in zip([0, *raw], raw) if b not in {0, a}])
    return texts


def build():
    waves = [torch.randn(Sizes.samples) for _ in range(2 * Sizes.batch)]
    letters = torch.randint(1, Sizes.letters, (2 * Sizes.batch, Sizes.length))
    model = Recognizer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    frames = (Sizes.samples // HOP) // 2 + 1
    lengths = torch.randint(frames // 2, frames, (Sizes.batch,)).clamp(min=2 * Sizes.length)

    def train_batch():
        chosen = torch.randperm(len(waves))[: Sizes.batch]
        log_probs = model(features_of([waves[i] for i in chosen.tolist()]), lengths)
        targets = torch.full((Sizes.batch,), Sizes.length)
        loss = F.ctc_loss(log_probs, letters[chosen], lengths, targets, zero_infinity=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item() + sum(map(len, greedy(log_probs, lengths)))

    return train_batch
