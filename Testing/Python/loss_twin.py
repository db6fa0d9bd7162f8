# SPDX-License-Identifier: Apache-2.0
"""Losses as one would write them in PyTorch, for tests and benchmarks."""
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


def dirichlet_multinomial_nll(logits, counts, own):
    """-log p of the labels' counts: means softmax(logits), logit of the raters' correlation own[0].

    logits (1, C+1, V), counts (V, C+1) in the same type; raters who did not answer are in no count."""
    spread = torch.exp(-own[0])
    alpha, n = torch.softmax(logits[0], 0).T * spread, counts
    answered = n.sum(1)
    log_p = (torch.lgamma(answered + 1) + torch.lgamma(spread) - torch.lgamma(answered + spread)
             + (torch.lgamma(n + alpha) - torch.lgamma(alpha) - torch.lgamma(n + 1)).sum(1))
    return -log_p.mean()
