# SPDX-License-Identifier: Apache-2.0
"""Fixtures that all tests share, and the marker of the quick stage."""
import pytest

import rcn_ctypes
from rcn_testing import golden, write_nrrd


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: a file that trains networks, starts several processes or needs a browser; ./run test --quick leaves it out")


def pytest_collection_modifyitems(items):
    """Slow files first: two of them run side by side, and the short ones fill what is left at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture
def case(tmp_path):
    """Three golden raters as files."""
    return {name: write_nrrd(tmp_path / f"{name}.nrrd", mask) for name, mask in zip("ABC", golden(3))}


@pytest.fixture(scope="module")
def lib():
    """The core as a shared library."""
    library = rcn_ctypes.library()
    if library is None:
        pytest.skip("the core's shared library was not built (target rcn_shared)")
    return library


@pytest.fixture(scope="module")
def ctx(lib):
    context = rcn_ctypes.Context(lib, 2)
    yield context
    context.close()
