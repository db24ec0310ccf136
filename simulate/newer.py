"""The packages of qwen3-vl-npu-next that are of other versions than the other stacks'."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

_declared: list[Any] = []  # what torch takes back with the object that declared it


def use() -> None:
    """Import them in the place of the others'; torchvision without its compiled part.

    That part is a build for CUDA. transformers 5 imports all of its image processors when MindSpeed
    looks for names in every module, and these import torchvision.
    """
    packages = Path(sys.prefix) / "next"
    if not packages.is_dir():
        raise FileNotFoundError(f"{packages} is not there: make .simenv")
    sys.path.insert(0, str(packages))
    import torch

    compiled = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        compiled.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _declared.append(compiled)
