# SPDX-License-Identifier: Apache-2.0
"""The networks against PyTorch and segmentation_models_pytorch, live."""

import copy
import os

# Two OpenMP runtimes meet in this process: waiting threads of one must not hold up the other.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import pytest

from net_training import relative

pytestmark = pytest.mark.skipif(os.environ.get("RCN_PEERS") != "1", reason="needs the peers")

CASES = {
    "unet": dict(arch="unet", channels=1, outputs=5, shape=(2, 64, 48)),
    "unet-instance": dict(arch="unet", channels=3, outputs=4, shape=(2, 64, 64), norm="instance", depth=3, width=8),
    "unet-two-channels": dict(arch="unet", channels=2, outputs=8, shape=(3, 32, 32), depth=2),
    "unet-wide": dict(arch="unet", channels=4, outputs=9, shape=(2, 32, 48), depth=4, width=32),
    "unet3d": dict(arch="unet3d", channels=1, outputs=5, shape=(1, 32, 32, 32), depth=3),
    "unet3d-thick": dict(
        arch="unet3d", channels=2, outputs=3, shape=(1, 12, 32, 32), spacing=(0.7, 0.8, 3.0), norm="instance", depth=3
    ),
    "fpn-resnet18": dict(arch="fpn-resnet18", channels=1, outputs=4, shape=(2, 96, 128)),
    "fpn-resnet34": dict(arch="fpn-resnet34", channels=3, outputs=8, shape=(2, 96, 96)),
    "fpn-resnet50": dict(arch="fpn-resnet50", channels=3, outputs=8, shape=(2, 96, 96)),
}


@pytest.fixture(params=CASES)
def pair(request):
    import net_twins
    import rcn_net
    import torch

    if rcn_net.library() is None:
        pytest.skip("built without networks")
    torch.set_num_threads(2)
    case = dict(CASES[request.param])
    shape = case.pop("shape")
    theirs = net_twins.fill(net_twins.make(**case))
    ours = rcn_net.Net(**case)
    ours.load({name: tensor.numpy() for name, tensor in theirs.state_dict().items()})
    yield ours, theirs, (shape[0], case["channels"], shape[1:], case["outputs"] - 1)
    ours.close()


def test_evaluation(pair):
    import net_fill
    import torch

    ours, theirs, shape = pair
    images, _ = net_fill.scene("evaluation", *shape)
    with torch.no_grad():
        expected = theirs.eval()(torch.from_numpy(images)).numpy()
    logits = ours.run(images)
    assert relative(logits, expected) < 1e-4
    assert np.abs(logits - expected).max() < 1e-4 * np.abs(expected).max()


def steady_scene(model, shape):
    """A scene whose gradients in PyTorch stay when its image changes by as much as rounding does: no
    value is so near to zero that rounding decides on which side of a ReLU it is, nor two so near to
    each other that it decides which is pooled. Ours has no say in the choice."""
    import net_fill
    import net_twins

    for k in range(12):
        images, level = net_fill.scene(f"{k}", *shape)
        expected = net_twins.gradients(copy.deepcopy(model), images, level)
        changed = images * (1 + 3e-6 * net_fill.image("change", *images.shape))
        _, _, again = net_twins.gradients(copy.deepcopy(model), changed, level)
        if max(relative(again[name], gradient) for name, gradient in expected[2].items()) < 1e-4:
            return images, level, *expected
    pytest.fail("PyTorch's gradients depend on rounding for every scene")


def test_training(pair):
    """Loss, logits and every parameter's gradient of the loss that networks are trained with."""
    import net_training
    import torch

    ours, theirs, shape = pair
    images, level, expected_loss, expected_logits, expected = steady_scene(theirs.train(), shape)
    loss, logits = net_training.Trainer(ours).gradients(images, level)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    assert relative(logits, expected_logits) < 1e-4
    gradients = ours.state(gradients=True)
    assert set(gradients) == set(expected)
    for name, gradient in expected.items():
        actual, gradient = gradients[name].astype(np.float64), gradient.astype(np.float64)
        assert np.linalg.norm(gradient) > 0, name
        assert relative(actual, gradient) < 1e-3, name
        cosine = np.vdot(actual, gradient) / (np.linalg.norm(actual) * np.linalg.norm(gradient))
        assert cosine > 0.9999, name
    # Running statistics and counters have moved as theirs do, and go back into the peer.
    with torch.no_grad():
        theirs(torch.from_numpy(images))
    for name, tensor in theirs.state_dict().items():
        assert relative(ours.state()[name], tensor.numpy()) < 1e-4, name
    state = {
        name: torch.tensor(value.copy()).to(theirs.state_dict()[name].dtype) for name, value in ours.state().items()
    }
    theirs.load_state_dict(state, strict=True)


@pytest.mark.parametrize("arch", ["unet", "fpn-resnet18", "unet3d"])
def test_any_size(arch):
    """An image that does not fit is extended by its last voxels, and the logits are cut."""
    import net_fill
    import net_twins
    import rcn_net
    import torch

    if rcn_net.library() is None:
        pytest.skip("built without networks")
    shape = (21, 37, 50) if arch == "unet3d" else (75, 101)
    multiple = 32 if arch.startswith("fpn") else 16
    theirs = net_twins.fill(net_twins.make(arch, 2, 3)).eval()
    ours = rcn_net.Net(arch, 2, 3)
    ours.load({name: tensor.numpy() for name, tensor in theirs.state_dict().items()})
    images = net_fill.image("odd", 1, 2, *shape)
    padding = []
    for size in reversed(shape):
        padding += [0, -size % multiple]
    with torch.no_grad():
        padded = torch.nn.functional.pad(torch.from_numpy(images), padding, mode="replicate")
        expected = theirs(padded).numpy()[(..., *map(slice, shape))]
    assert relative(ours.run(images), expected) < 1e-4
    ours.close()
