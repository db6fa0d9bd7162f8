# SPDX-License-Identifier: Apache-2.0
"""Fixtures that all tests share, and the marker of the quick stage."""
import pytest

from rcn_testing import golden, write_nrrd


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: a file that trains networks, starts several processes or needs a browser; ./run test --quick leaves it out")


@pytest.fixture
def case(tmp_path):
    """Three golden raters as files."""
    return {name: write_nrrd(tmp_path / f"{name}.nrrd", mask) for name, mask in zip("ABC", golden(3))}
