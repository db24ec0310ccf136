"""What stands for things that a machine without CANN cannot have, each found by its name.

An index of packages, beside the one that pip asks; a folder of programs for PATH; a folder as
CANN's installers leave it. What is not in `STAND_INS` is what the scripts themselves ask for.
`python -m simulate.stand_ins -a kernels SOC` is what becomes of `bash build.sh` in sgl-kernel-npu.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from simulate.steps import HERE, NPUSIM

#: Name -> what stands for it, for the report.
STAND_INS = {
    "torch-npu": "npusim, with the version of the lock",
    "triton-ascend": "triton itself, which interprets: the real one wants CANN's compiler",
    "build.sh of sgl-kernel-npu": "wheels of the Python in its checkout: Triton kernels are "
    "interpreted, the allocator is one that nothing is allocated in",
    "CANN, NNAL, driver": "set_env.sh that set a variable; files and an npu-smi that say versions",
}
#: What a launch has beside these.
OF_A_LAUNCH = {"64 cores": "Ray is told of them, who gives one to each of 16 NPUs"}
#: What the short form has beside these, or in the place of one.
OF_THE_SHORT_FORM = {
    "python3 -m pip install": "uv, which links what its cache has (simulate/linked.py)",
}
TRITON = "triton==3.4.0"  # what torch 2.8's build for CUDA asks for
_TORCHVISION = """

for _name in ("nms", "qnms"):
    _types = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    torch.library.define(f"torchvision::{_name}", _types)
"""
_FORWARDED = "".join(
    f"""\
    def {name}(self, *a, **kw):
        return self._fwd("{name}", *a, **kw)

"""
    for name in ("all_gather_single", "all_to_all_single", "reduce_scatter_single")
)
#: What does not go with a torch after the stack's 2.8: file, text, what becomes of it, why.
NEWER = (
    *(
        (place, "str(torch.__version__) >=", '"2.6" >=', "2.13 is no release before 2.6")
        for place in (
            "workspace/sglang/python/sglang/srt/utils/common.py",
            "workspace/slime/slime/utils/distributed_utils.py",
        )
    ),
    (
        "workspace/slime/slime/utils/reloadable_process_group.py",
        "    def barrier(self, *a, **kw):\n",
        f"{_FORWARDED}    def barrier(self, *a, **kw):\n",
        "collectives that have other names since",
    ),
    (
        "workspace/MindSpeed/mindspeed/core/fusions/grouped_matmul.py",
        "def get_device_capability():",
        "def get_device_capability(device=None):",
        "torch asks for a named device's capability",
    ),
    (
        "env/lib/python3.*/site-packages/torchvision/extension.py",
        "def _assert_has_ops():",
        f"{_TORCHVISION}\n\ndef _assert_has_ops():",
        "names of operators: the compiled ones are built for another torch",
    ),
)
_ALLOCATOR = """\
class _Absent:
    def __getattr__(self, name):
        raise NotImplementedError(f"torch_memory_saver.{name} is not built here")


torch_memory_saver = _Absent()
"""
_KERNELS = """\
import npusim
from npusim.graphs import recorded

from sgl_kernel_npu import interpreted

interpreted.interpret(npusim.host, recorded)
"""


def make(folder: Path, versions: Mapping[str, str]) -> dict[str, str]:
    """Everything, in `folder`, its programs in `programs`: the site values that lead there.

    versions: what a stack pins, without "==".
    """
    index, programs, ascend = (folder / name for name in ("index", "programs", "ascend"))
    _listed(
        index,
        "torch-npu",
        f"{versions['torch-npu']}+npusim",  # before the real one, of the same version
        {file.relative_to(NPUSIM).as_posix(): file.read_bytes() for file in _sources(NPUSIM)},
        "[torch.backends]\ntorch_npu = torch_npu:_autoload\n",
    )
    _listed(index, "triton-ascend", f"{versions['triton-ascend']}+nothing", {}, needs=TRITON)
    programs.mkdir(parents=True, exist_ok=True)
    _program(
        programs / "bash",
        f'[ "$1" = build.sh ] || exec /bin/bash "$@"\nshift\nexec {_own("stand_ins")} "$@"',
    )
    said = f"npu-smi {versions['hdk']}"
    _program(programs / "npu-smi", f'echo "| {said}   Version: {versions["hdk"]} |"')
    toolkit, library = ascend / "ascend-toolkit", ascend / "nnal" / "atb"
    _software(
        toolkit,
        "ASCEND_HOME_PATH",
        "version.cfg",
        f"toolkit_running_version=[7.7:{versions['cann']}]",
    )
    _software(library, "ATB_HOME_PATH", "version.info", f"Ascend-cann-atb : {versions['nnal']}")
    more = " ".join(filter(None, (index.as_uri(), os.environ.get("PIP_EXTRA_INDEX_URL"))))
    return {"torch_cpu_index": more, "ascend_home": str(ascend)}


def with_newer_torch(site: Path) -> None:
    """Change what was installed at `site` as NEWER says, each text once.

    A file is replaced: it may be a link into uv's cache.
    """
    for place, old, new, _ in NEWER:
        [path] = site.glob(place)
        text = path.read_text()
        if text.count(old) != 1:
            raise AssertionError(f"{path} has {old!r} {text.count(old)} times")
        path.unlink()
        path.write_text(text.replace(old, new))


def link(folder: Path, environment: Path) -> None:
    """Have `python3 -m pip install` done by uv, and all else of python3 by the environment's."""
    (folder / "programs").mkdir(parents=True)
    _program(
        folder / "programs" / "python3",
        f'[ "$1 $2 $3" = "-m pip install" ] || exec {environment}/bin/python3 "$@"\n'
        f'shift 3\nexec {_own("linked")} {environment} "$@"',
    )


def _own(module: str) -> str:
    """The command that runs a module of ours in the Python that this is."""
    return f"env PYTHONPATH={HERE.parent} {sys.executable} -m simulate.{module}"


def _sources(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*.*")) if "__pycache__" not in file.parts]


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _software(folder: Path, variable: str, file: str, version: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(f"{version}\n")
    (folder / "set_env.sh").write_text(f"export {variable}={folder}\n")


def _listed(
    index: Path, name: str, version: str, files: dict[str, bytes], points: str = "", needs: str = ""
) -> None:
    """A wheel in the index (PEP 503)."""
    wheel = _wheel(index / name, name, version, files, points, needs)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    link = f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>\n'
    (index / name / "index.html").write_text(link)


def _wheel(
    folder: Path,
    name: str,
    version: str,
    files: dict[str, bytes],
    points: str = "",
    needs: str = "",
) -> Path:
    """A wheel, the same bytes each time; `needs` is the one thing that it asks for."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    told = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    told += "Summary: stands for the real one, see simulate/stand_ins.py\n"
    told += f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        **files,
        f"{info}/METADATA": told.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": points.encode(),
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, data in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(zipfile.ZipInfo(path), data)
    return made


def build(words: list[str], checkout: Path) -> None:
    """What `build.sh -a kernels SOC` and `build.sh -a memory-saver` leave in `output/`."""
    match words:
        case ["-a", "kernels", _]:
            root = checkout / "python" / "sgl_kernel_npu"
            sources = (file for file in _sources(root / "sgl_kernel_npu") if file.suffix == ".py")
            files = {file.relative_to(root).as_posix(): file.read_bytes() for file in sources}
            files["sgl_kernel_npu/__init__.py"] = _KERNELS.encode()
            files["sgl_kernel_npu/interpreted.py"] = (HERE / "kernels.py").read_bytes()
            _wheel(checkout / "output", "sgl_kernel_npu", "2026.2.1", files)
        case ["-a", "memory-saver"]:
            files = {"torch_memory_saver/__init__.py": _ALLOCATOR.encode()}
            _wheel(checkout / "output", "torch_memory_saver", "0.0.8", files)
        case _:
            raise SystemExit(f"simulate.stand_ins: build.sh {' '.join(words)} has no stand-in")


if __name__ == "__main__":
    build(sys.argv[1:], Path.cwd())
