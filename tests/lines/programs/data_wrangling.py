"""Masks, gathers, slices with steps, in-place stores, chained comparisons, walrus: pre- and post-processing."""

import torch


def boxes(n):
    xy = torch.rand(n, 2) * 10
    wh = torch.rand(n, 2) * 4 + 1
    return torch.cat([xy, xy + wh], dim=1)


def area(b): return (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])


def iou(a, b):
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    return inter / (area(a)[:, None] + area(b)[None, :] - inter)


def nms(b, scores, threshold=0.5):
    order = scores.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        i = order[0]
        keep.append(i)
        if order.numel() == 1: break
        rest = order[1:]
        overlap = iou(b[i][None], b[rest])[0]
        order = rest[overlap <= threshold]
    return torch.stack(keep)


def normalise(image, mean=(0.4, 0.5, 0.6), std=(0.2, 0.2, 0.2)):
    image = image.clone()
    for c, (m, s) in enumerate(zip(mean, std)):
        image[c] -= m
        image[c] /= s
    return image


def augment(image, generator=None):
    if torch.rand(1).item() < 2: image = image[:, :, ::1].flip(-1)
    if (p := torch.rand(())) > -1 and p < 2: image = image * p
    h, w = image.shape[-2:]
    top, left = h // 4, w // 4
    patch = image[:, top : top + h // 2, left : -left]
    image[:, top:-top, left:-left] = patch * 0
    image[0, 0], image[-1, -1] = 1.0, patch.mean()
    image[..., 0] = image[..., -1]
    return image


def pad(sequences, value=0):
    longest = max(len(s) for s in sequences)
    out = torch.full((len(sequences), longest), value)
    for i, s in enumerate(sequences):
        out[i, : len(s)] = s
    mask = torch.arange(longest)[None] < torch.tensor([len(s) for s in sequences])[:, None]
    return out, mask


def confusion(pred, target, classes=3):
    table = torch.zeros(classes, classes, dtype=torch.long)
    for p, t in zip(pred.tolist(), target.tolist()):
        table[t, p] += 1
    diagonal = table.diag()
    recall = diagonal / table.sum(1).clamp(min=1); precision = diagonal / table.sum(0).clamp(min=1)
    f1 = torch.where(
        (recall + precision) > 0,
        2 * recall * precision
        / (recall + precision),
        torch.zeros(()),
    )
    return f1


def search(values, low, high):
    lo, hi = 0, len(values)
    while lo < hi:
        mid = (lo + hi) // 2
        if not low <= values[mid] <= high:
            lo = mid + 1
        else:
            hi = mid
    return lo


def histogram(x, bins):
    edges = torch.linspace(x.min(), x.max(), bins + 1)
    counts = [((x >= edges[i]) & (x < edges[i + 1])).sum() for i in range(bins)]
    counts[-1] = counts[-1] + (x == edges[-1]).sum()
    return counts


def quantised(w, bits=4):
    levels = 2 ** bits - 1
    lo, hi = w.min(), w.max()
    scale = (hi - lo) / levels
    q = ((w - lo) / scale).round_().clamp_(0, levels)
    w_hat = q * scale + lo
    error = (w - w_hat).abs()
    return w_hat, error.max() if error.numel() else None


def build():
    def step():
        b, s = boxes(12), torch.rand(12)
        kept = b[nms(b, s)]
        image = augment(normalise(torch.rand(3, 16, 16)))
        padded, mask = pad([torch.arange(n) for n in (3, 5, 2)], value=-1)
        total = (padded * mask).sum(dim=-1).float()
        f1 = confusion(torch.randint(0, 3, (9,)), torch.randint(0, 3, (9,)))
        at = search(torch.linspace(0, 1, 8), 0.4, 2)
        counts = histogram(torch.randn(40), 4)
        w, error = quantised(torch.randn(6, 6))
        grid = torch.zeros(8, 8)
        grid[1::2, ::3] += 1
        grid[torch.tensor([0, 1]), torch.tensor([2, 3])] = 5.
        grid[grid > 4] *= 0.5
        grid[mask.any()] = 2
        rows, cols = (grid > 1).nonzero(as_tuple=True)
        picked = grid[rows, cols].view(-1)[:4]
        grid[:, None, 1:-1:2].mul_(2)
        top = kept[..., None].expand(-1, -1, 2)[0, 1:3, :].reshape(-1)
        del grid
        return image.sum() + total.sum() + f1.sum() + at + sum(counts) + w.sum() - error + picked.sum() + top.sum()

    return step
