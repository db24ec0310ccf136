"""Which Python packages are there because somebody asks for them: by the metadata, read not run."""

from __future__ import annotations

from collections.abc import Iterable

from patchkit.machine.requirements import ReadFile, read_requirements
from patchkit.manifest.values import InstallStep, normal_name

#: Distributions whose module has another name than they have.
_MODULES = {
    "antlr4-python3-runtime": ("antlr4",),
    "attrs": ("attr", "attrs"),
    "beautifulsoup4": ("bs4",),
    "decord2": ("decord",),
    "gitpython": ("git",),
    "grpcio": ("grpc",),
    "grpcio-health-checking": ("grpc_health",),
    "grpcio-reflection": ("grpc_reflection",),
    "grpcio-tools": ("grpc_tools",),
    "hydra-core": ("hydra",),
    "msgpack-python": ("msgpack",),
    "opencv-python": ("cv2",),
    "opencv-python-headless": ("cv2",),
    "pillow": ("PIL",),
    "protobuf": ("google",),
    "pyjwt": ("jwt",),
    "python-dateutil": ("dateutil",),
    "python-multipart": ("multipart", "python_multipart"),
    "pyyaml": ("yaml",),
    "pyzmq": ("zmq",),
    "scikit-learn": ("sklearn",),
    "triton-ascend": ("triton",),
}


def modules_asked_for(read: ReadFile, steps: tuple[InstallStep, ...]) -> frozenset[str]:
    """The first names of the modules of what a component's metadata asks for."""
    return modules_of(each.requirement.name for each in read_requirements(read, steps).requirements)


def modules_of(distributions: Iterable[str]) -> frozenset[str]:
    """The first names of the modules that distributions have, as a rule or as is known."""
    names: set[str] = set()
    for distribution in distributions:
        name = normal_name(distribution)
        names |= set(_MODULES.get(name, (name.replace("-", "_"),)))
        names.add(distribution)  # as IPython, which is written so in both places
    return frozenset(names)
