"""The networks against PyTorch and segmentation_models_pytorch, live."""

import copy
import os

# Two OpenMP runtimes meet in this process: waiting threads of one must not hold up the other.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import pytest

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
    "fpn-resnet18": dict(arch="fpn-resnet18", channels=1, outputs=4, shape=(2, 96, 64)),
    "fpn-resnet34": dict(arch="fpn-resnet34", channels=3, outputs=8, shape=(2, 64, 64)),
    "fpn-resnet50": dict(arch="fpn-resnet50", channels=3, outputs=8, shape=(3, 96, 96)),
}


def relative(a, b):
    return float(np.linalg.norm(a.astype(np.float64) - b) / max(np.linalg.norm(b.astype(np.float64)), 1e-30))


@pytest.fixture(params=CASES)
def pair(request):
    import net_fill
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
    state = theirs.state_dict()
    ours.load({name: tensor.numpy() for name, tensor in state.items()})
    images = net_fill.image("images", shape[0], case["channels"], *shape[1:])
    yield ours, theirs, images
    ours.close()


def test_evaluation(pair):
    import torch

    ours, theirs, images = pair
    theirs.eval()
    with torch.no_grad():
        expected = theirs(torch.from_numpy(images)).numpy()
    logits = ours.run(images)
    assert relative(logits, expected) < 1e-4
    assert np.abs(logits - expected).max() < 1e-4 * np.abs(expected).max()


def worst_gradient(ours, theirs, images, weights):
    """(relative error, 1 - cosine, name) of the parameter whose gradients differ most."""
    import torch

    theirs.zero_grad()
    out = theirs(torch.from_numpy(images))
    (out * torch.from_numpy(weights)).sum().backward()
    logits = ours.run(images, training=True)
    assert relative(logits, out.detach().numpy()) < 1e-4
    ours.backward(weights)
    gradients = ours.state(gradients=True)
    names = dict(theirs.named_parameters())
    assert set(gradients) == set(names)
    worst = (0.0, 0.0, "")
    for name, parameter in names.items():
        expected, actual = parameter.grad.numpy(), gradients[name]
        cosine = np.vdot(actual, expected) / (np.linalg.norm(actual) * np.linalg.norm(expected))
        worst = max(worst, (relative(actual, expected), float(1 - cosine), name))
    return worst


def test_training(pair):
    """Rounding sends a value that is almost zero to either side of a ReLU, which changes gradients
    as a whole: by as much as PyTorch's own in single and in double precision differ. That happens
    with some images and not with others, so all must be near and one must agree closely; or else,
    in the deepest network, both must be equally near to double precision."""
    import net_fill
    import torch

    ours, theirs, images = pair
    theirs.train()
    weights = net_fill.image("weights", images.shape[0], ours.outputs, *images.shape[2:])
    worst = []
    for k in range(6):
        worst.append(worst_gradient(ours, theirs, net_fill.image(f"images{k}", *images.shape), weights))
        assert worst[-1][1] < 1e-2, worst[-1]
        if worst[-1][0] < 1e-3:
            break
    if min(worst)[0] > 1e-3:
        single = {name: p.grad.numpy().copy() for name, p in theirs.named_parameters()}
        double = copy.deepcopy(theirs).double()
        double.zero_grad()
        (double(torch.from_numpy(net_fill.image("images5", *images.shape)).double())
         * torch.from_numpy(weights).double()).sum().backward()
        exact = {name: p.grad.numpy() for name, p in double.named_parameters()}
        gradients = ours.state(gradients=True)
        errors = np.array([(relative(gradients[n], exact[n]), relative(single[n], exact[n])) for n in exact])
        assert np.median(errors[:, 0]) < 2 * np.median(errors[:, 1]), (worst, errors)
        assert errors[:, 0].max() < 2 * errors[:, 1].max(), (worst, errors)
    # Running statistics and counters have moved as theirs did, and go back into the peer.
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
