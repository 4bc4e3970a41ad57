"""A small one-stage detector: anchors on a grid, boxes matched picture by picture, and overlaps removed in a loop."""

import torch
import torch.nn.functional as F
from torch import nn


class Sizes:
    batch, picture, width, boxes, best = 8, 96, 16, 6, 24


class Losses:
    anchors_each_step = True
    overlap_per_box = True
    overlaps_removed_on_tensors = True
    threshold_by_mask = True


KNOWN = {
    "anchors_each_step": (
        "Anchors are created again in each step, cell by cell",
        ["constant-rebuilt-every-step", "tensor-from-python-data"],
    ),
    "overlap_per_box": (
        "The overlap with each box is computed separately",
        ["python-loop-tensor-indexing", "elementwise-op-flood"],
    ),
    "overlaps_removed_on_tensors": (
        "Overlapping boxes are removed in a loop that reads a tensor for each box",
        ["tensor-shrunk-in-loop"],
    ),
    "threshold_by_mask": ("Anchors without an object are selected by a mask instead of weighted", []),
}
TINY = {"batch": 2, "picture": 32, "width": 2, "boxes": 2, "best": 4}

SCALES = (8.0, 16.0, 32.0)


def make_anchors(cells):
    if Losses.anchors_each_step:
        centers = [
            [(x + 0.5) * 8, (y + 0.5) * 8, size, size] for y in range(cells) for x in range(cells) for size in SCALES
        ]
        return to_corners(torch.tensor(centers))  # loss: anchors_each_step
    at = (torch.arange(cells) + 0.5) * 8
    y, x, size = torch.meshgrid(at, at, torch.tensor(SCALES), indexing="ij")
    return to_corners(torch.stack([x, y, size, size], dim=-1).view(-1, 4))


def to_corners(boxes):
    return torch.cat([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], dim=1)


def area(boxes):
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def overlaps(anchors, boxes):
    if Losses.overlap_per_box:
        rows = []
        for box in boxes:
            top_left, bottom_right = torch.max(anchors[:, :2], box[:2]), torch.min(anchors[:, 2:], box[2:])
            sides = (bottom_right - top_left).clamp(min=0)  # loss: overlap_per_box
            inter = sides[:, 0] * sides[:, 1]
            rows.append(inter / (area(anchors) + area(box) - inter))
        return torch.stack(rows, dim=1)
    top_left = torch.max(anchors[:, None, :2], boxes[None, :, :2])
    bottom_right = torch.min(anchors[:, None, 2:], boxes[None, :, 2:])
    inter = (bottom_right - top_left).clamp(min=0).prod(2)
    return inter / (area(anchors)[:, None] + area(boxes)[None] - inter)


def keep_best(boxes, scores):
    order = scores.topk(min(Sizes.best, len(scores)))[1]
    if Losses.overlaps_removed_on_tensors:
        kept = []
        while len(order):
            best = order[0]
            kept.append(best.item())
            x1 = boxes[order[1:], 0].clamp(min=boxes[best, 0].item())  # loss: overlaps_removed_on_tensors
            y1 = boxes[order[1:], 1].clamp(min=boxes[best, 1].item())
            x2 = boxes[order[1:], 2].clamp(max=boxes[best, 2].item())
            y2 = boxes[order[1:], 3].clamp(max=boxes[best, 3].item())
            inter = (x2 - x1).clamp(min=0) * (y2 - y1).clamp(min=0)
            overlap = inter / (area(boxes[best]) + area(boxes[order[1:]]) - inter)
            order = order[1:][overlap <= 0.5]
        return kept
    candidates = boxes[order]
    top_left = torch.max(candidates[:, None, :2], candidates[None, :, :2])
    bottom_right = torch.min(candidates[:, None, 2:], candidates[None, :, 2:])
    inter = (bottom_right - top_left).clamp(min=0).prod(2)
    matrix = inter / (area(candidates)[:, None] + area(candidates)[None] - inter)
    overlapping, removed, kept = (matrix > 0.5).tolist(), set(), []
    for at, index in enumerate(order.tolist()):
        if at not in removed:
            kept.append(index)
            removed.update(other for other, does in enumerate(overlapping[at]) if does)
    return kept


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        wide = Sizes.width
        self.body = nn.Sequential(
            nn.Conv2d(3, wide, 3, 2, 1), nn.ReLU(), nn.Conv2d(wide, 2 * wide, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(2 * wide, 4 * wide, 3, 2, 1), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Conv2d(4 * wide, len(SCALES) * 5, 1)

    def forward(self, pictures):
        found = self.head(self.body(pictures)).permute(0, 2, 3, 1).reshape(len(pictures), -1, 5)
        return found[..., 0], found[..., 1:]


def loss_of(scores, offsets, anchors, boxes):
    found = overlaps(anchors, boxes)
    best, which = found.max(1)
    is_object = (best > 0.3).float()
    box_loss = (F.smooth_l1_loss(offsets, (boxes[which] - anchors) / 8, reduction="none").sum(1) * is_object).sum()
    if Losses.threshold_by_mask:
        objects, others = best > 0.3, best <= 0.3
        good = F.binary_cross_entropy_with_logits(
            scores[objects], torch.ones(int(objects.sum())), reduction="sum"
        )  # loss: threshold_by_mask
        bad = F.binary_cross_entropy_with_logits(scores[others], torch.zeros(int(others.sum())), reduction="sum")
        return box_loss + good + bad
    return box_loss + F.binary_cross_entropy_with_logits(scores, is_object, reduction="sum")


def build():
    pictures = torch.rand(4 * Sizes.batch, 3, Sizes.picture, Sizes.picture)
    starts = torch.rand(len(pictures), Sizes.boxes, 2) * (Sizes.picture - 24)
    boxes = torch.cat([starts, starts + 8 + torch.rand(len(pictures), Sizes.boxes, 2) * 16], dim=2)
    model = Detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, fused=True)
    once = make_anchors(Sizes.picture // 8)

    def train_one_batch():
        chosen = torch.randint(len(pictures), (Sizes.batch,))
        images, targets = pictures[chosen], boxes[chosen]
        anchors = make_anchors(Sizes.picture // 8) if Losses.anchors_each_step else once
        scores, offsets = model(images)
        loss = sum(loss_of(scores[i], offsets[i], anchors, targets[i]) for i in range(len(images))) / len(images)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            kept = [keep_best(anchors + 8 * offsets[i], scores[i]) for i in range(len(images))]
        return loss.item() + sum(map(len, kept))

    return train_one_batch
