"""A sentence classifier in the manner of a large library's trainer: a collator, arguments, gradient accumulation."""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


class Sizes:
    batch, length, width, heads, layers, vocabulary, accumulated = 8, 48, 128, 4, 2, 1000, 2


class Losses:
    padded_in_lists = True
    gelu_by_hand = True
    mask_made_per_layer = True
    finite_check_per_parameter = True
    update_per_parameter = True


KNOWN = {
    "padded_in_lists": (
        "The collator pads Python lists and converts them to tensors, in the training process",
        ["tensor-from-python-data", "dataloader-num-workers-zero", "dataloader-starvation"],
    ),
    "gelu_by_hand": ("GELU is written out", ["elementwise-op-flood"]),
    "mask_made_per_layer": ("The padding mask is created again in each layer", []),
    "finite_check_per_parameter": (
        "Each gradient is checked for NaN separately",
        ["finite-check-per-tensor", "host-sync-scalar-readback"],
    ),
    "update_per_parameter": ("AdamW updates one parameter at a time", ["optimizer-single-tensor"]),
}
TINY = {"batch": 2, "length": 6, "width": 8, "heads": 2, "layers": 1, "vocabulary": 20, "accumulated": 2}


@dataclass
class TrainingArguments:
    per_device_train_batch_size: int
    gradient_accumulation_steps: int
    learning_rate: float = 1e-4
    max_grad_norm: float = 1.0


def collator(sentences):
    longest = Sizes.length
    if Losses.padded_in_lists:
        ids, mask = [], []
        for sentence in sentences:
            missing = longest - len(sentence["input_ids"])
            ids.append(sentence["input_ids"] + [0] * missing)
            mask.append([1] * len(sentence["input_ids"]) + [0] * missing)
        labels = [sentence["label"] for sentence in sentences]
        return {
            "input_ids": torch.tensor(ids),  # loss: padded_in_lists
            "attention_mask": torch.tensor(mask),
            "labels": torch.tensor(labels),
        }
    ids = np.zeros((len(sentences), longest), dtype=np.int64)
    for row, sentence in zip(ids, sentences):
        row[: len(sentence["input_ids"])] = sentence["input_ids"]
    labels = np.array([sentence["label"] for sentence in sentences])
    return {
        "input_ids": torch.from_numpy(ids),
        "attention_mask": torch.from_numpy((ids != 0).astype(np.int64)),
        "labels": torch.from_numpy(labels),
    }


def gelu(x):
    if Losses.gelu_by_hand:
        return (
            0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
        )  # loss: gelu_by_hand
    return F.gelu(x, approximate="tanh")


def extended(mask):
    return (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min  # loss: mask_made_per_layer


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        width = Sizes.width
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.output, self.norm1, self.norm2 = nn.Linear(width, width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.intermediate, self.dense = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def heads(self, x):
        return x.view(*x.shape[:2], Sizes.heads, -1).transpose(1, 2)

    def forward(self, hidden, mask, bias):
        if Losses.mask_made_per_layer:
            bias = extended(mask)
        parts = (self.heads(each(hidden)) for each in (self.query, self.key, self.value))
        context = F.scaled_dot_product_attention(*parts, attn_mask=bias).transpose(1, 2).flatten(2)
        hidden = self.norm1(hidden + self.output(context))
        return self.norm2(hidden + self.dense(gelu(self.intermediate(hidden))))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.Embedding(Sizes.vocabulary, Sizes.width)
        self.layers = nn.ModuleList([Layer() for _ in range(Sizes.layers)])
        self.classifier = nn.Linear(Sizes.width, 2)

    def forward(self, input_ids, attention_mask, labels):
        hidden = self.embeddings(input_ids)
        bias = extended(attention_mask)
        for layer in self.layers:
            hidden = layer(hidden, attention_mask, bias)
        return F.cross_entropy(self.classifier(hidden[:, 0]), labels)


class Trainer:
    def __init__(self, model, args, train_dataset, data_collator):
        self.model, self.args = model, args
        self.loader = DataLoader(
            train_dataset, args.per_device_train_batch_size, shuffle=True, collate_fn=data_collator,
            generator=torch.Generator().manual_seed(0),
        )  # fmt: skip
        fused = None if Losses.update_per_parameter else True
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, fused=fused)
        self.batches = self.endless()

    def endless(self):
        while True:
            yield from self.loader  # loss: padded_in_lists

    def training_step(self, inputs):
        self.model.train()
        loss = self.model(**inputs) / self.args.gradient_accumulation_steps
        loss.backward()
        return loss.detach()

    def has_finite_gradients(self):
        gradients = [parameter.grad for parameter in self.model.parameters()]
        if Losses.finite_check_per_parameter:
            bad = [
                gradient
                for gradient in gradients
                if torch.isnan(gradient).any() or torch.isinf(gradient).any()  # loss: finite_check_per_parameter
            ]
            return not bad
        return bool(torch.isfinite(torch.nn.utils.get_total_norm(gradients)))

    def inner_training_loop(self):
        tr_loss = torch.tensor(0.0)
        for _ in range(self.args.gradient_accumulation_steps):
            tr_loss += self.training_step(next(self.batches))
        nn.utils.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
        if self.has_finite_gradients():
            self.optimizer.step()  # loss: update_per_parameter
        self.optimizer.zero_grad()
        return tr_loss.item()


def build():
    dice = np.random.default_rng(0)
    counts = dice.integers(Sizes.length // 2, Sizes.length + 1, 8 * Sizes.batch)
    sentences = [
        {"input_ids": dice.integers(1, Sizes.vocabulary, count).tolist(), "label": int(dice.integers(2))}
        for count in counts
    ]
    args = TrainingArguments(Sizes.batch, Sizes.accumulated)
    return Trainer(Classifier(), args, sentences, collator).inner_training_loop
