# SPDX-License-Identifier: Apache-2.0
"""Scores of volumes against SciPy: ./run test --peers."""
import os

import numpy as np
import pytest

import rcn_volumes_ctypes as core
import rcn_volumes_twin as twin

if os.environ.get("RCN_PEERS") != "1":
    pytest.skip("compares with SciPy: ./run test --peers", allow_module_level=True)


def curvas(expected, volumes):
    """A normal distribution of the raters' volumes against the expected one, over three deviations to both sides."""
    from scipy.integrate import quad
    from scipy.stats import norm

    mean, deviation = np.mean(volumes), np.std(volumes)
    low, high = mean - 3 * deviation, mean + 3 * deviation
    edge = [min(max(expected, low), high)]
    return sum(quad(lambda y: (norm.cdf(y, mean, deviation) - (y >= expected)) ** 2, a, b, epsabs=1e-12, epsrel=1e-12)[0]
               for a, b in ((low, edge[0]), (edge[0], high)))


@pytest.mark.parametrize("raters", [2, 3, 5, 12])
def test_curvas_crps_is_the_integral(lib, raters):
    rng = np.random.default_rng(raters)
    for scale in (1e-3, 1.0, 50.0):
        volumes = scale * rng.lognormal(1, 0.4, raters)
        for expected in scale * np.array([0, 1.5, 2.7, 3.3, 8, 100]):
            found = core.curvas_crps(lib, expected, volumes)
            assert abs(found - curvas(expected, volumes)) <= 1e-6 * max(scale, found)


@pytest.mark.parametrize("raters", [1, 2, 4, 9])
def test_crps_is_that_of_an_ensemble(lib, raters):
    from scipy.stats import energy_distance

    rng = np.random.default_rng(raters)
    for x in (0.0, 3.0, 8.0):
        volumes = np.sort(rng.uniform(0, 10, raters))[::-1]
        found = core.crps(lib, core.of(volumes), x)
        assert abs(found - twin.crps(volumes, x)) < 1e-9
        # The energy distance to a single value is sqrt(2 E|V - x| - E|V - V'|), and CRPS half of its square.
        assert abs(found - energy_distance(volumes, [x]) ** 2 / 2) < 1e-9
