"""Writes Testing/Data/net_reference.json: what PyTorch in double precision computes for the networks
of net_cases.py, at sampled positions. Needs the peers.

Rounding sends values near zero to either side of a ReLU, which changes gradients as a whole, so
that the image is used for which single precision, with the image changed by as much as rounding
does, and double precision agree best.
"""

import copy
import json
import pathlib

import numpy as np
import torch

import net_fill
import net_twins
from net_cases import CASES, samples


def relative(a, b):
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))


def train(model, images, weights):
    model.zero_grad()
    out = model(images)
    (out * weights).sum().backward()
    return out.detach().numpy(), {name: p.grad.numpy().copy() for name, p in model.named_parameters()}


def sampled(name, values, most):
    flat = values.reshape(-1)
    return [float(f"{flat[i]:.8g}") for i in samples(name, flat.size, most)]


def main():
    reference = {}
    for key, (options, shape) in CASES.items():
        filled = net_twins.fill(net_twins.make(**options))
        best = (np.inf, None)
        weights = net_fill.image("weights", shape[0], options["outputs"], *shape[1:])
        for k in range(16):
            images = torch.from_numpy(net_fill.image(f"images{k}", shape[0], options["channels"], *shape[1:]))
            single, double = copy.deepcopy(filled).train(), copy.deepcopy(filled).double().train()
            out, exact = train(double, images.double(), torch.from_numpy(weights).double())
            difference = 0.0
            for change in range(4):
                noise = torch.from_numpy(net_fill.image(f"noise{change}", *images.shape))
                _, rough = train(single, images * (1 + 3e-6 * noise), torch.from_numpy(weights))
                difference = max(difference, *(relative(rough[name], exact[name]) for name in exact))
            if difference < best[0]:
                best = (difference, k, out, exact, images)
            if difference < 3e-4:
                break
        difference, k, out, gradients, images = best
        with torch.no_grad():
            evaluated = copy.deepcopy(filled).double().eval()(images.double()).numpy()
        print(f"{key}: image {k}, single and double precision differ by {difference:.1e}")
        reference[key] = {
            "image": f"images{k}",
            "precision": difference,
            "evaluation": sampled("evaluation", evaluated, 48),
            "training": sampled("training", out, 48),
            "gradients": {
                name: [float(f"{np.linalg.norm(g):.8g}"), *sampled(name, g, 3)] for name, g in gradients.items()
            },
        }
    path = pathlib.Path(__file__).resolve().parent.parent / "Data" / "net_reference.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(reference, separators=(",", ":")).replace('},"', '},\n"') + "\n")


if __name__ == "__main__":
    main()
