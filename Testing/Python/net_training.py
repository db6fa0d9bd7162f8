# SPDX-License-Identifier: Apache-2.0
"""One step of training, here: network, BCE + RPS and Adam together."""

import numpy as np

import rcn_loss_ctypes


def relative(a, b):
    """Norm of the difference by the norm of b."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))


class Trainer:
    def __init__(self, net, threads=2):
        self.net = net
        self.context = rcn_loss_ctypes.Context(threads)
        self.loss = rcn_loss_ctypes.Loss(self.context, "rps", net.outputs - 1)
        self.optimizer = rcn_loss_ctypes.Optimizer(
            self.context, net.block()[: net.lib.rcn_net_trained_floats(net.net)], "adam"
        )

    def gradients(self, images, level, seed=0):
        """(loss, logits); the gradients are then in the network."""
        logits = self.net.run(images, training=True, seed=seed)
        planes = logits.reshape(*logits.shape[:2], -1)
        dlogits = np.empty_like(planes)
        result = self.loss.run(planes, level, dlogits)
        self.net.backward(dlogits)
        return result.loss, logits

    def step(self, images, level, rate):
        loss, _ = self.gradients(images, level)
        self.optimizer.gradients[:] = self.net.block(gradients=True)
        self.net.block()  # tells the network that its values change
        self.optimizer.step(rate)
        return loss
