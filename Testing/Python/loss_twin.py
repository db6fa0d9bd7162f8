# SPDX-License-Identifier: Apache-2.0
"""The paper's loss as one would write it in PyTorch, for tests and benchmarks."""
import torch
import torch.nn.functional as F


def bce_rps(logits, level, alpha=0.8):
    """BCE of the majority + alpha * RPS. logits (N, K+1, ...), level (N, ...) in int64.

    In float32 the gradient loses up to four digits where the majority is nearly sure: tests give it
    float64."""
    raters = logits.shape[1] - 1
    p = torch.softmax(logits, 1)
    first = (raters + 1) // 2
    tiny = torch.finfo(p.dtype).eps  # a sum of probabilities may be rounded to more than 1
    bce = F.binary_cross_entropy(p[:, first:].sum(1).clamp(tiny, 1 - tiny), (level >= first).to(p.dtype))
    truth = F.one_hot(level, raters + 1).movedim(-1, 1).to(p.dtype)
    return bce + alpha * ((p.cumsum(1) - truth.cumsum(1)) ** 2).sum(1).mean() / (raters + 1)
