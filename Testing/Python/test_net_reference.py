"""The networks against stored results of PyTorch (make_net_reference.py); needs no PyTorch."""

import json
import os
import pathlib

import numpy as np
import pytest

from net_cases import CASES, samples

DATA = pathlib.Path(__file__).resolve().parent.parent / "Data" / "net_reference.json"

pytestmark = pytest.mark.skipif("RCN_BUILD" not in os.environ, reason="needs a build")


def close(actual, expected, bound):
    """Within `bound` of the largest of the expected values."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected)
    return np.abs(actual - expected).max() <= bound * np.abs(expected).max()


@pytest.mark.parametrize("key", CASES)
def test_reference(key):
    import net_fill
    import rcn_net

    if rcn_net.library() is None:
        pytest.skip("built without networks")
    options, shape = CASES[key]
    reference = json.loads(DATA.read_text())[key]
    net = rcn_net.Net(**options)
    net.load({name: net_fill.parameter_values(name, shape) for name, (_, shape, _, _) in net.table.items()})
    images = net_fill.image(reference["image"], shape[0], options["channels"], *shape[1:])
    weights = net_fill.image("weights", shape[0], options["outputs"], *shape[1:])
    for mode in ("evaluation", "training"):
        logits = net.run(images, training=mode == "training").reshape(-1)
        bound = max(1e-4, reference["precision"] / 100)  # as for the gradients, below
        assert close(logits[samples(mode, logits.size, 48)], reference[mode], bound), mode
    net.backward(weights)
    # Where PyTorch's own precisions differ, no more can be asked for.
    bound = max(1e-3, 2 * reference["precision"])
    gradients = net.state(gradients=True)
    assert set(gradients) == set(reference["gradients"])
    for name, (norm, *values) in reference["gradients"].items():
        gradient = gradients[name].astype(np.float64).reshape(-1)
        assert abs(np.linalg.norm(gradient) - norm) <= bound * norm, name
        difference = gradient[samples(name, gradient.size, 3)] - values
        assert np.abs(difference).max() <= bound * max(np.abs(values).max(), norm / np.sqrt(gradient.size)), name
    net.close()
