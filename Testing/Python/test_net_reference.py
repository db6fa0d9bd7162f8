# SPDX-License-Identifier: Apache-2.0
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
    import net_training
    import rcn_net

    if rcn_net.library() is None:
        pytest.skip("built without networks")
    options, shape = CASES[key]
    reference = json.loads(DATA.read_text("utf-8"))[key]
    net = rcn_net.Net(**options)
    net.load({name: net_fill.parameter_values(name, shape) for name, (_, shape, _, _) in net.table.items()})
    raters = options["outputs"] - 1
    images, level = net_fill.scene(reference["scene"], shape[0], options["channels"], shape[1:], raters)
    evaluated = net.run(images)
    loss, logits = net_training.Trainer(net).gradients(images, level)
    assert loss == pytest.approx(reference["loss"], rel=1e-5)
    for mode, values in (("evaluation", evaluated.reshape(-1)), ("training", logits.reshape(-1))):
        assert close(values[samples(mode, values.size, 48)], reference[mode], 1e-4), mode
    gradients = net.state(gradients=True)
    assert set(gradients) == set(reference["gradients"])
    for name, (norm, *values) in reference["gradients"].items():
        gradient = gradients[name].astype(np.float64).reshape(-1)
        assert abs(np.linalg.norm(gradient) - norm) <= 1e-3 * norm, name
        difference = gradient[samples(name, gradient.size, 3)] - values
        assert np.abs(difference).max() <= 1e-3 * max(np.abs(values).max(), norm / np.sqrt(gradient.size)), name
    net.close()
