"""Which releases belong together: a small table, each row of which somebody has looked up.

- torchvision: the exact torch that each release's own metadata asks for, as in the table of the
  README of https://github.com/pytorch/vision (looked up in November 2026).
- torch_npu: the first part of its version is that of its torch; the CANN that each release was made
  for is in the README of https://gitcode.com/Ascend/pytorch and in its release notes at
  https://www.hiascend.com/document/detail/zh/Pytorch/720/releasenote (same date).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from patchkit.machine.versions import exact, release
from patchkit.manifest.environments import normal_name

_VISION = "https://github.com/pytorch/vision"
_ASCEND = "https://gitcode.com/Ascend/pytorch"

#: torch -> torchvision, exactly.
TORCHVISION = {
    "2.4.0": "0.19.0",
    "2.4.1": "0.19.1",
    "2.5.0": "0.20.0",
    "2.5.1": "0.20.1",
    "2.6.0": "0.21.0",
    "2.7.0": "0.22.0",
    "2.7.1": "0.22.1",
    "2.8.0": "0.23.0",
    "2.9.0": "0.24.0",
    "2.9.1": "0.24.1",
}

#: torch_npu -> the CANN release that it was made for.
TORCH_NPU_CANN = {
    "2.4.0.post4": "8.1.RC1",
    "2.5.1": "8.1.RC1",
    "2.5.1.post1": "8.2.RC1",
    "2.6.0": "8.2.RC1",
    "2.6.0.post3": "8.3.RC1",
    "2.6.0.post5": "8.5.0",
    "2.7.1": "8.3.RC1",
    "2.7.1.post2": "8.5.0",
    "2.7.1.post4": "9.0.0",
    "2.8.0": "8.3.RC1",
    "2.8.0.post2": "8.5.0",
    "2.8.0.post4": "9.0.0",
    "2.9.0": "8.5.0",
    "2.9.0.post2": "9.0.0",
    "2.10.0": "9.0.0",
}


class Mismatch(Struct, frozen=True):
    """Two versions that do not belong together; `certain`: the one does not work with the other."""

    name: str
    version: str
    other: str
    other_version: str
    fitting: str
    source: str
    certain: bool = True


def mismatches(versions: Mapping[str, str]) -> Iterator[Mismatch]:
    """Pairs among exact specifiers (name -> specifier) that do not belong together."""
    pinned: dict[str, str] = {}
    for name, specifier in versions.items():
        version = exact(specifier)
        if version is not None:
            pinned[normal_name(name)] = version
    torch = pinned.get("torch")
    if torch is not None:
        yield from _beside_torch(release(torch), pinned)
    yield from _beside_cann(pinned)


def _beside_torch(torch: str, pinned: Mapping[str, str]) -> Iterator[Mismatch]:
    vision = pinned.get("torchvision")
    fitting = TORCHVISION.get(torch)
    if vision is not None and fitting is not None and release(vision) != fitting:
        yield Mismatch("torchvision", vision, "torch", torch, fitting, _VISION)
    for name, source in (("torchaudio", _VISION), ("torch-npu", _ASCEND)):
        version = pinned.get(name)
        if version is not None and release(version) != torch:
            yield Mismatch(name, version, "torch", torch, torch, source)


def _beside_cann(pinned: Mapping[str, str]) -> Iterator[Mismatch]:
    cann, torch_npu = pinned.get("cann"), pinned.get("torch-npu")
    if cann is None or torch_npu is None:
        return
    made_for = TORCH_NPU_CANN.get(torch_npu)
    if made_for is None or made_for.lower() == cann.lower():
        return
    fitting = [
        version
        for version, other in TORCH_NPU_CANN.items()
        if other.lower() == cann.lower() and release(version) == release(torch_npu)
    ]
    words = fitting[0] if fitting else ""
    yield Mismatch("torch-npu", torch_npu, "cann", cann, words, _ASCEND, certain=False)
