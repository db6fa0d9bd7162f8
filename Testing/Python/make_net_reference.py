# SPDX-License-Identifier: Apache-2.0
"""Writes Testing/Data/net_reference.json: what PyTorch in double precision computes for the networks
of net_cases.py with the loss that they are trained with, at sampled positions. Needs the peers.

Few values lie so near to zero that rounding decides on which side of a ReLU they are (net_fill.py);
the image is used for which it decides nothing: single precision, with the image changed by as much
as rounding does, gives the gradients of double precision.
"""

import copy
import json
import pathlib

import numpy as np
import torch

import net_fill
import net_twins
from net_cases import CASES, samples
from net_training import relative

CLOSE = 1e-4


def sampled(name, values, most):
    flat = values.reshape(-1)
    return [float(f"{flat[i]:.8g}") for i in samples(name, flat.size, most)]


def main():
    reference = {}
    for key, (options, shape) in CASES.items():
        filled = net_twins.fill(net_twins.make(**options)).train()
        for k in range(16):
            images, level = net_fill.scene(f"{k}", shape[0], options["channels"], shape[1:], options["outputs"] - 1)
            loss, out, exact = net_twins.gradients(copy.deepcopy(filled).double(), images, level)
            difference = 0.0
            for change in range(4):
                noise = net_fill.image(f"noise{change}", *images.shape)
                _, _, rough = net_twins.gradients(copy.deepcopy(filled), images * (1 + 3e-6 * noise), level)
                difference = max(difference, *(relative(rough[name], exact[name]) for name in exact))
            if difference < CLOSE:
                break
        else:
            raise SystemExit(f"{key}: no image gives the same in single and in double precision")
        with torch.no_grad():
            evaluated = copy.deepcopy(filled).double().eval()(torch.from_numpy(images).double()).numpy()
        print(f"{key}: scene {k}, single and double precision differ by {difference:.1e}", flush=True)
        reference[key] = {
            "scene": f"{k}",
            "loss": loss,
            "evaluation": sampled("evaluation", evaluated, 48),
            "training": sampled("training", out, 48),
            "gradients": {
                name: [float(f"{np.linalg.norm(g):.8g}"), *sampled(name, g, 3)] for name, g in exact.items()
            },
        }
    path = pathlib.Path(__file__).resolve().parent.parent / "Data" / "net_reference.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(reference, separators=(",", ":")).replace('},"', '},\n"') + "\n")


if __name__ == "__main__":
    main()
