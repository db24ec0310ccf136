"""How things stand that a stack needs, and which torch_npu was made for which CANN.

No metadata says the latter: it is in the README of https://gitcode.com/Ascend/pytorch and in its
release notes at https://www.hiascend.com/document/detail/zh/Pytorch/720/releasenote (looked up in
November 2026).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum

from msgspec import Struct

from patchkit.extensions.machine.ascend import AscendHost, InstalledSoftware
from patchkit.extensions.machine.lock import EnvironmentLock
from patchkit.extensions.machine.notation import quote
from patchkit.extensions.machine.topic import Topic
from patchkit.extensions.machine.wishes import Wishes, wished
from patchkit.gitcmd.target_python import TargetPython
from patchkit.manifest.values import SYSTEM_SOFTWARE, Environment, normal_name
from patchkit.upstream.requirements import DeclaredRequirement, exact, satisfies

# What was found out about one thing that a stack needs, and what to do about it.


class MachineVerdict(str, Enum):
    """How a thing stands."""

    OK = "ok"
    WRONG = "wrong"
    MISSING = "missing"
    UNCERTAIN = "uncertain"  # it could not be found out
    NOTE = "note"  # worth knowing, and known to be harmless


#: These are findings; an uncertainty is reported, and fails nothing.
FINDINGS = (MachineVerdict.WRONG, MachineVerdict.MISSING)


class Diagnosis(Struct, frozen=True):
    """One thing.

    `name` is what it is called in the manifest, `wanted` what the manifest says of it, `found` what
    is there, in words; `where` is the file or program that told it; `advice` what to do.
    """

    topic: Topic  # what was looked at
    name: str
    verdict: MachineVerdict  # how it stands
    wanted: str = ""
    found: str = ""
    where: str = ""
    advice: str = ""


_ASCEND = "https://gitcode.com/Ascend/pytorch"

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


# A diagnosis for each thing that a manifest wants: how it stands, and what to do about it.


RELOCK = "make the lock again: `patchkit export --format machine lock`"
_CHANGE = "change one of them, or install the component with --no-deps"

#: What documents call it, and where it is had.
_SOFTWARE = {
    "cann": ("CANN", "install CANN {}, or `. env.sh` of the stack if it is installed elsewhere"),
    "nnal": ("NNAL", "install NNAL {}; its release is that of CANN"),
    "hdk": ("HDK", "install driver and firmware of HDK {}"),
    "driver": ("driver", "install driver {}"),
}


def diagnose_python(specifier: str, python: TargetPython | str, program: str) -> Diagnosis:
    """The Python itself; `python` is why it could not be asked if it could not."""
    wanted = ("system", "python", specifier)
    if isinstance(python, str):
        advice = "name one with --python, or activate the environment of the stack"
        return _of(wanted, MachineVerdict.MISSING, python, program, advice)
    advice = (
        f"make an environment with Python {specifier}, and activate it or name it with --python"
    )
    return _compared(wanted, InstalledSoftware(python.version, python.path), advice)


def diagnose_software(name: str, specifier: str, host: AscendHost) -> Diagnosis:
    """CANN, NNAL, HDK, driver or firmware."""
    wanted = ("system", name, specifier)
    if name == "firmware":
        advice = "compare it yourself: npu-smi info -t board -i 0"
        return _of(wanted, MachineVerdict.UNCERTAIN, "no file here records it", "", advice)
    label, install = _SOFTWARE[name]
    advice = install.format(specifier.removeprefix("=="))
    found = {"cann": host.cann, "nnal": host.nnal}.get(name, host.driver)()
    if found is None and name in ("hdk", "driver"):
        return _of(
            wanted,
            MachineVerdict.UNCERTAIN,
            "no NPU driver found: not an Ascend host?",
            str(host.home / "driver"),
            advice,
        )
    if found is None:
        return _of(wanted, MachineVerdict.MISSING, f"no {label} found", str(host.home), advice)
    return _compared(wanted, found, advice)


def _compared(wanted: tuple[str, str, str], found: InstalledSoftware, advice: str) -> Diagnosis:
    if found.version is None:
        what = "found, but its version is unknown"
        return _of(
            wanted, MachineVerdict.UNCERTAIN, what, found.where, f"look whether it is {wanted[2]}"
        )
    fits = satisfies(found.version, wanted[2])
    verdict, todo = {
        True: (MachineVerdict.OK, ""),
        False: (MachineVerdict.WRONG, advice),
        None: (MachineVerdict.UNCERTAIN, "compare it yourself"),
    }[fits]
    return _of(wanted, verdict, found.version, found.where, todo)


def diagnose_packages(environment: Environment, python: TargetPython) -> Iterator[Diagnosis]:
    """Every package that is wanted, then every one that is there and does not work."""
    for name, specifier in environment.versions.items():
        normal = normal_name(name)
        if normal in SYSTEM_SOFTWARE:
            continue
        wanted = ("packages", name, specifier)
        version = python.packages.get(normal)
        word = quote(f"{name}{specifier}")
        advice = f"{quote(python.path)} -m pip install {word}"
        if version is None:
            yield _of(wanted, MachineVerdict.MISSING, "not installed", "", advice)
        else:
            yield _compared(wanted, InstalledSoftware(version, ""), advice)
    for name, reason in environment.unsupported.items():
        version = python.packages.get(normal_name(name))
        if version is not None:
            advice = f"{quote(python.path)} -m pip uninstall {quote(name)}"
            found = f"{version}; {' '.join(reason.split())}"
            yield _of(("packages", name, "none"), MachineVerdict.WRONG, found, "", advice)


def diagnose_variables(
    variables: Mapping[str, str | None],
    paths: Mapping[str, Sequence[str]],
    shell: Mapping[str, str],
) -> Iterator[Diagnosis]:
    """What is set in this shell; a wanted value of None is one that only the site knows."""
    for name, text in variables.items():
        there = shell.get(name)
        advice = f"export {name}={'...' if text is None else quote(text)}"
        if there is None:
            verdict = MachineVerdict.MISSING
        elif text is None:
            verdict, advice = MachineVerdict.UNCERTAIN, "give the site's values with --set"
        elif there == text:
            verdict, advice = MachineVerdict.OK, ""
        else:
            verdict = MachineVerdict.WRONG
        wanted = ("variables", name, "a value of this site" if text is None else text)
        yield _of(wanted, verdict, "not set" if there is None else there, "", advice)
    for name, folders in paths.items():
        present = shell.get(name, "").split(":")
        lacking = [folder for folder in folders if folder not in present]
        verdict = MachineVerdict.MISSING if lacking else MachineVerdict.OK
        front = quote(":".join(lacking))
        advice = f"export {name}={front}${{{name}:+:${name}}}" if lacking else ""
        found = f"lacks {', '.join(lacking)}" if lacking else "has them"
        yield _of(("variables", name, ":".join(folders)), verdict, found, "", advice)


def diagnose_profile(versions: Mapping[str, str], where: str) -> Iterator[Diagnosis]:
    """Warn of a torch_npu of the manifest that was made for another CANN, and may not work."""
    pinned = {normal_name(name): exact(specifier) for name, specifier in versions.items()}
    torch_npu, cann = pinned.get("torch-npu") or "", pinned.get("cann") or ""
    made_for = TORCH_NPU_CANN.get(torch_npu, cann)
    if not cann or made_for.lower() == cann.lower():
        return
    fitting = [
        version
        for version, other in TORCH_NPU_CANN.items()
        if (other.lower(), version.split(".post")[0]) == (cann.lower(), torch_npu.split(".post")[0])
    ]
    told = f"; for {cann} it is {fitting[0]}" if fitting else ""
    wanted = ("metadata", "torch-npu", f"torch-npu {torch_npu} beside cann {cann}")
    found = f"made for another CANN{told} ({_ASCEND})"
    advice = "ask whoever runs it whether it works"
    yield _of(wanted, MachineVerdict.UNCERTAIN, found, where, advice)


def diagnose_wishes(
    wishes: Wishes,
    unsupported: Collection[str],
    lock: EnvironmentLock,
    markers: Mapping[str, str],
) -> Iterator[Diagnosis]:
    """Requirements that do not allow the version that somebody before them asks for, the lock
    first; and what it lacks. `markers` are the values of markers on the machine.
    """
    left = {normal_name(name) for name in unsupported}
    locked = [*wished((f"{one.name}=={one.version}" for one in lock.packages), lock.file)]
    needed = {wish for wish in wishes.packages() if wish.name not in wishes.elsewhere}
    alone = {wish.name for wish in wishes.alone}
    exactly: dict[str, tuple[str, DeclaredRequirement]] = {}
    for wish in (*locked, *wishes.asked):
        asked = wish.requirement
        if asked.marker is not None and not asked.marker.evaluate(dict(markers)):
            continue
        version, before = exactly.get(wish.name, ("", wish))
        wanted = ("metadata", wish.file, str(asked))
        if wish.name in left:
            found = "does not work here, and is left out"
            yield _of(wanted, MachineVerdict.NOTE, found)
        elif version and satisfies(version, str(asked.specifier)) is False:
            # a step may keep pip from one of them, and code may ask for another
            certain = wish.certain and before.certain
            verdict = MachineVerdict.WRONG if certain else MachineVerdict.UNCERTAIN
            followed = wish.enforced and before.enforced and wish.name not in alone
            verdict = verdict if followed else MachineVerdict.NOTE
            found = f"{before.file} asks for {wish.name} {version}"
            todo = RELOCK if locked else _CHANGE
            yield _of(wanted, verdict, found, "", todo if verdict in FINDINGS else "")
        elif locked and not version and wish in needed:
            yield _of(wanted, MachineVerdict.MISSING, f"{lock.file} lacks it", "", RELOCK)
        own = exact(str(asked.specifier))
        if own is not None:
            exactly.setdefault(wish.name, (own, wish))


def _of(
    wanted: tuple[str, str, str],
    verdict: MachineVerdict,
    found: str,
    where: str = "",
    advice: str = "",
) -> Diagnosis:
    topic, name, words = wanted
    return Diagnosis(Topic(topic), name, verdict, words, found, where, advice)
