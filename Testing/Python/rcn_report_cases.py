# SPDX-License-Identifier: Apache-2.0
"""Cases for tests of the report: a data list and the predictions of two models, one of levels and one of a probability."""
import json

import numpy as np

from rcn_testing import disc_list, read_nrrd, write_nrrd


def levels_of(masks, blur):
    """K + 1 level probabilities that are about what the raters say: their count a voxel further on, softened."""
    count = np.roll(np.sum(masks, 0, dtype=int), 1, -1)
    levels = np.stack([np.exp(-np.abs(count - k) / blur) for k in range(len(masks) + 1)], -1)
    return (levels / levels.sum(-1, keepdims=True)).astype(np.float32)


def report_cases(folder, raters="ABC", counts=(0, 3, 4)):
    """The list's path; predictions lie in levels/ and prob/ beside it."""
    path = disc_list(folder, counts=counts, raters=raters)
    data = json.loads(path.read_text())
    for name in ("levels", "prob"):
        (folder / name).mkdir()
    for split in ("validation", "test"):
        for case in data[split]:
            masks = [read_nrrd(folder / file).array for file in case["label"].values()]
            levels = levels_of(masks, 0.7)
            write_nrrd(folder / "levels" / f"{case['id']}_levels.nrrd", levels, components=True)
            write_nrrd(folder / "prob" / f"{case['id']}_prob.nrrd", levels[..., len(masks) // 2 + 1:].sum(-1))
    return path
