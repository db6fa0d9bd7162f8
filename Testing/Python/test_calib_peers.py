# SPDX-License-Identifier: Apache-2.0
"""Calibration against independent implementations: ./run test --peers."""
import os

import numpy as np
import pytest

import rcn_calib_ctypes as calib
import rcn_ctypes

if os.environ.get("RCN_PEERS") != "1":
    pytest.skip("compares with scikit-learn, torchmetrics and netcal: ./run test --peers", allow_module_level=True)


def simulate(count, raters, seed, sharpness=1.6):
    rng = np.random.default_rng(seed)
    q = rng.random(count)
    p = (1 / (1 + np.exp(-sharpness * np.log(q / (1 - q))))).astype(np.float32)
    masks = np.stack([(rng.random(count) < q).astype(np.uint8) for _ in range(raters)])
    return p, masks


def pairs(p, masks):
    return np.tile(p.astype(np.float64), len(masks)), masks.reshape(-1)


@pytest.mark.parametrize("count, digits", [(10_000_000, None), (1_000_000, 2), (100_000, 1), (1000, 0)])
def test_auc_is_that_of_scikit_learn(lib, ctx, count, digits):
    from sklearn.metrics import roc_auc_score

    p, masks = simulate(count, 3, 1)
    if digits is not None:  # ties
        p = np.round(p, digits)
    result = calib.auc(lib, ctx, calib.make_case(lib, ctx, p, masks), 3)
    assert result.reference == pytest.approx(roc_auc_score(masks.sum(0) >= 1.5, p), abs=1e-12)
    if count <= 1_000_000:
        assert result.pairs == pytest.approx(roc_auc_score(*reversed(pairs(p, masks))), abs=1e-12)


@pytest.mark.parametrize("bins", [10, 15, 20, 50])
def test_mr_ece_is_that_of_torchmetrics_and_netcal_over_all_pairs(lib, ctx, bins):
    import torch
    import torchvision_names  # noqa: F401
    from netcal.metrics import ECE
    from torchmetrics.functional.classification import binary_calibration_error

    p, masks = simulate(200_000, 5, 2)
    p, masks = p[(p > 0) & (p < 1)], masks[:, (p > 0) & (p < 1)].copy()
    ours = calib.figures(lib, ctx, p, masks, bins)
    confidence, votes = pairs(p, masks)
    theirs = binary_calibration_error(torch.from_numpy(confidence), torch.from_numpy(votes.astype(int)), n_bins=bins, norm="l1")
    assert ours["mr_ece"] == pytest.approx(float(theirs), abs=1e-9)
    assert ours["mr_ece"] == pytest.approx(ECE(bins).measure(confidence, votes), abs=1e-9)
    mce = binary_calibration_error(torch.from_numpy(confidence), torch.from_numpy(votes.astype(int)), n_bins=bins, norm="max")
    assert ours["mce"] == pytest.approx(float(mce), abs=1e-9)
    # The mean of the raters' own, as CURVAS does it.
    own = [binary_calibration_error(torch.from_numpy(p.astype(float)), torch.from_numpy(m.astype(int)), n_bins=bins) for m in masks]
    assert ours["rater_ece"] == pytest.approx(float(np.mean(own)), abs=1e-9)


def test_where_torchmetrics_differs_a_probability_of_one_has_a_bin_of_its_own(lib, ctx):
    import torch
    import torchvision_names  # noqa: F401
    from torchmetrics.functional.classification import binary_calibration_error

    p = np.array([1, 1, 0.95, 0.95], np.float32)
    masks = np.array([[1, 0, 1, 1]], np.uint8)
    theirs = float(binary_calibration_error(torch.from_numpy(p), torch.from_numpy(masks[0].astype(int)), n_bins=10))
    assert theirs == pytest.approx((2 * 0.5 + 2 * 0.05) / 4)
    # Ours: one bin [.9, 1], in which .975 was promised and .75 came true.
    assert calib.figures(lib, ctx, p, masks, 10)["mr_ece"] == pytest.approx(0.225, abs=1e-7)


def test_where_netcal_differs_an_edge_rounded_to_float32_falls_below(lib, ctx):
    from netcal.metrics import ECE

    p = np.array([0.7, 0.7, 0.65, 0.65], np.float32)  # 0.7f is 0.69999999
    masks = np.array([[1, 1, 0, 0]], np.uint8)
    assert ECE(10).measure(p.astype(np.float64), masks[0]) == pytest.approx(0.175, abs=1e-6)
    # Ours: 0.7f is 70 % and belongs to [.7, .8).
    assert calib.figures(lib, ctx, p, masks, 10)["mr_ece"] == pytest.approx((0.3 + 0.65) / 2, abs=1e-6)


def test_ece_of_the_thresholded_prediction(lib, ctx):
    import torch
    import torchvision_names  # noqa: F401
    from torchmetrics.functional.classification import multiclass_calibration_error

    p, masks = simulate(100_000, 3, 3)
    p, masks = p[(p > 1e-6) & (p < 1 - 1e-6)], masks[:, (p > 1e-6) & (p < 1 - 1e-6)].copy()
    two = torch.from_numpy(np.stack([1 - p.astype(float), p.astype(float)], 1))
    majority = torch.from_numpy((masks.sum(0) >= 1.5).astype(int))
    theirs = multiclass_calibration_error(two, majority, num_classes=2, n_bins=15, norm="l1")
    assert calib.figures(lib, ctx, p, masks)["ece"] == pytest.approx(float(theirs), abs=2e-5)


def test_brier_and_nll_are_those_of_scikit_learn(lib, ctx):
    from sklearn.metrics import brier_score_loss, log_loss

    p, masks = simulate(300_000, 4, 4)
    p[:1000], p[1000:2000] = 0, 1
    ours = calib.figures(lib, ctx, p, masks)
    confidence, votes = pairs(p, masks)
    assert ours["brier"] == pytest.approx(brier_score_loss(votes, confidence), abs=1e-11)
    assert ours["nll"] == pytest.approx(log_loss(votes, np.clip(confidence, 1e-7, 1 - 1e-7)), abs=1e-10)


def test_isotonic_is_that_of_scikit_learn(lib, ctx):
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(5)
    p = (rng.integers(1, 128, 20_000) / 128).astype(np.float32)  # each value has a cell of its own
    masks = np.stack([(rng.random(p.size) < p**2).astype(np.uint8) for _ in range(3)])
    ours = calib.fit(lib, ctx, p, masks, 3)
    assert ours.knots < 256
    theirs = IsotonicRegression(out_of_bounds="clip").fit(*pairs(p, masks))
    at = np.linspace(0, 1, 1001)
    assert calib.value(lib, ours, at) == pytest.approx(theirs.predict(at), abs=1e-12)


def test_platt_and_beta_are_logistic_regressions(lib, ctx):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(6)
    p = (rng.integers(1, 512, 100_000) / 512).astype(np.float32)
    masks = np.stack([(rng.random(p.size) < p**1.7).astype(np.uint8) for _ in range(2)])
    confidence, votes = pairs(p, masks)
    log_p, log_q = np.log(confidence), np.log1p(-confidence)
    exact = dict(C=np.inf, tol=1e-10, solver="newton-cholesky", max_iter=1000)
    platt = LogisticRegression(**exact).fit((log_p - log_q)[:, None], votes)
    ours = calib.fit(lib, ctx, p, masks, 1)
    assert ours.parameters[0] == pytest.approx(platt.coef_[0, 0], abs=1e-6)
    assert ours.parameters[1] == pytest.approx(platt.intercept_[0], abs=1e-6)
    beta = LogisticRegression(**exact).fit(np.stack([log_p, -log_q], 1), votes)
    ours = calib.fit(lib, ctx, p, masks, 2)
    assert list(ours.parameters) == pytest.approx([*beta.coef_[0], beta.intercept_[0]], abs=1e-6)
