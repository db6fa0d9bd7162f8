# SPDX-License-Identifier: Apache-2.0
"""Import this before a package that imports torchvision (timm, torchmetrics).

torchvision's compiled operators have no CPU build for every PyTorch; it is installed without them, and
their names are all that is asked for on import.
"""
import contextlib

import torch

_library = torch.library.Library("torchvision", "FRAGMENT")  # operators vanish with it
for _name in ("nms", "qnms"):
    with contextlib.suppress(RuntimeError):
        _library.define(f"{_name}(Tensor a, Tensor b, float c) -> Tensor")
