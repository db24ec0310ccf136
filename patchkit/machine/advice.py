"""A diagnosis for each thing that a manifest wants: how it stands, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from patchkit.machine.ascend import AscendHost, Found
from patchkit.machine.compatibility import Mismatch, mismatches
from patchkit.machine.diagnosis import Diagnosis, Topic, Verdict
from patchkit.machine.programs import TargetPython
from patchkit.machine.requirements import Wish, Wishes
from patchkit.machine.versions import exact, satisfies
from patchkit.manifest.environments import SYSTEM_SOFTWARE, normal_name
from patchkit.manifest.values import Environment
from patchkit.rendering.shell import quote

#: Pythons that a specifier may mean, oldest first.
_PYTHONS = [f"3.{minor}" for minor in range(8, 14)]

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
        return _of(wanted, Verdict.MISSING, python, program, advice)
    if satisfies(python.version, specifier):
        return _of(wanted, Verdict.OK, python.version, python.path)
    advice = (
        f"make an environment with Python {specifier}, and activate it or name it with --python"
    )
    return _of(wanted, Verdict.WRONG, python.version, python.path, advice)


def diagnose_software(name: str, specifier: str, host: AscendHost) -> Diagnosis:
    """CANN, NNAL, HDK, driver or firmware."""
    wanted = ("system", name, specifier)
    if name == "firmware":
        advice = "compare it yourself: npu-smi info -t board -i 0"
        return _of(wanted, Verdict.UNCERTAIN, "no file of this machine says it", "", advice)
    label, install = _SOFTWARE[name]
    advice = install.format(specifier.removeprefix("=="))
    found = {"cann": host.cann, "nnal": host.nnal}.get(name, host.driver)()
    if found is None and name in ("hdk", "driver"):
        return _of(
            wanted,
            Verdict.UNCERTAIN,
            "no NPU driver found: not an Ascend host?",
            str(host.home / "driver"),
            advice,
        )
    if found is None:
        return _of(wanted, Verdict.MISSING, f"no {label} found", str(host.home), advice)
    return _compared(wanted, found, advice)


def _compared(wanted: tuple[str, str, str], found: Found, advice: str) -> Diagnosis:
    if found.version is None:
        what = "it is there, and nothing says which version"
        return _of(wanted, Verdict.UNCERTAIN, what, found.where, f"look whether it is {wanted[2]}")
    fits = satisfies(found.version, wanted[2])
    if fits is None:
        return _of(wanted, Verdict.UNCERTAIN, found.version, found.where, "compare it yourself")
    if fits:
        return _of(wanted, Verdict.OK, found.version, found.where)
    return _of(wanted, Verdict.WRONG, found.version, found.where, advice)


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
            yield _of(wanted, Verdict.MISSING, "not installed", "", advice)
        elif satisfies(version, specifier):
            yield _of(wanted, Verdict.OK, version)
        else:
            yield _of(wanted, Verdict.WRONG, version, "", advice)
    for name, reason in environment.unsupported.items():
        version = python.packages.get(normal_name(name))
        if version is not None:
            advice = f"{quote(python.path)} -m pip uninstall {quote(name)}"
            found = f"{version}; {' '.join(reason.split())}"
            yield _of(("packages", name, "none"), Verdict.WRONG, found, "", advice)


def diagnose_variables(
    variables: Mapping[str, str | None],
    paths: Mapping[str, Sequence[str]],
    shell: Mapping[str, str],
) -> Iterator[Diagnosis]:
    """What is set in this shell; a wanted value of None is one that only the site knows."""
    for name, text in variables.items():
        there = shell.get(name)
        shown = "a value of this site" if text is None else text
        wanted = ("variables", name, shown)
        advice = f"export {name}={'...' if text is None else quote(text)}"
        if there is None:
            yield _of(wanted, Verdict.MISSING, "not set", "", advice)
        elif text is None:
            told = "give the site's values with --values or --set"
            yield _of(wanted, Verdict.UNCERTAIN, there, "", told)
        else:
            right = there == text
            verdict = Verdict.OK if right else Verdict.WRONG
            yield _of(wanted, verdict, there, "", "" if right else advice)
    for name, folders in paths.items():
        present = shell.get(name, "").split(":")
        lacking = [folder for folder in folders if folder not in present]
        verdict = Verdict.MISSING if lacking else Verdict.OK
        front = quote(":".join(lacking))
        advice = f"export {name}={front}${{{name}:+:${name}}}" if lacking else ""
        found = f"lacks {', '.join(lacking)}" if lacking else "has them"
        yield _of(("variables", name, ":".join(folders)), verdict, found, "", advice)


def diagnose_profile(versions: Mapping[str, str], where: str) -> Iterator[Diagnosis]:
    """Versions of the manifest that do not belong together."""
    for each in mismatches(versions):
        yield _mismatch(each, where)


def _mismatch(each: Mismatch, where: str) -> Diagnosis:
    wanted = (
        "metadata",
        each.name,
        f"{each.name} {each.version} beside {each.other} {each.other_version}",
    )
    if each.certain:
        found = f"{each.other} {each.other_version} goes with {each.name} {each.fitting}"
        return _of(wanted, Verdict.WRONG, f"{found} ({each.source})", where, "change one of them")
    fitting = f"; for {each.other_version} it is {each.fitting}" if each.fitting else ""
    found = f"made for another {each.other.upper()}{fitting} ({each.source})"
    return _of(wanted, Verdict.UNCERTAIN, found, where, "ask whoever runs it whether it works")


class Offer(Struct, frozen=True):
    """What a stack gives to its components, all by normal name.

    `versions` are the manifest's specifiers and the versions of components; `unsupported` are
    packages and why; `taken_off` are those that an install step uninstalls.
    """

    versions: Mapping[str, str]
    unsupported: Mapping[str, str]
    taken_off: frozenset[str] = frozenset()


def diagnose_component(component: str, wishes: Wishes, offer: Offer) -> Iterator[Diagnosis]:
    """What a component's own metadata asks for that the manifest does not give."""
    yield from _python(component, wishes, offer.versions)
    seen: set[tuple[str, str]] = set()
    for wish in wishes.wishes:
        for each in _wish(component, wish, offer):
            if (each.name, each.wanted) not in seen:
                seen.add((each.name, each.wanted))
                yield each
    for text in wishes.unread:
        wanted = ("metadata", component, "its requirements")
        yield _of(wanted, Verdict.UNCERTAIN, text, "", "look at them yourself")


def _python(component: str, wishes: Wishes, versions: Mapping[str, str]) -> Iterator[Diagnosis]:
    ours = versions.get("python", "")
    if not wishes.python or not ours:
        return
    if not set(_pythons(ours)) & set(_pythons(wishes.python)):
        wanted = ("metadata", component, f"Python {wishes.python}")
        advice = "no Python fits both: another pin of the component, or another Python"
        yield _of(wanted, Verdict.WRONG, f"the manifest says {ours}", wishes.python_file, advice)


def _pythons(specifier: str) -> list[str]:
    """The Pythons of which some release fits."""
    return [p for p in _PYTHONS if any(satisfies(f"{p}.{n}", specifier) for n in range(40))]


def _wish(component: str, wish: Wish, offer: Offer) -> Iterator[Diagnosis]:
    requirement, name = wish.requirement, normal_name(wish.requirement.name)
    if requirement.marker is not None and not requirement.marker.evaluate(_target(offer.versions)):
        return
    wanted = ("metadata", component, str(requirement))
    reason = offer.unsupported.get(name)
    if reason is not None:
        found = f"does not work here: {' '.join(reason.split())}"
        if name in offer.taken_off:
            yield _of(wanted, Verdict.NOTE, f"{found}; an install step takes it off", wish.file)
        else:
            yield _settled(wanted, wish, found)
        return
    version = exact(offer.versions.get(name, ""))
    if version is not None and satisfies(version, str(requirement.specifier)) is False:
        yield _settled(wanted, wish, f"the manifest says {name} {version}")


def _settled(wanted: tuple[str, str, str], wish: Wish, found: str) -> Diagnosis:
    """A contradiction, unless no step lets pip follow the metadata, or nobody knows yet."""
    if not wish.enforced:
        return _of(wanted, Verdict.NOTE, f"{found}; --no-deps keeps pip from it", wish.file)
    if not wish.certain:
        advice = "look at what its build asks for here, or install it with --no-deps"
        return _of(
            wanted, Verdict.UNCERTAIN, f"{found}; code may ask for another", wish.file, advice
        )
    advice = f"pip goes by {wish.file}: patch it, or install the component with --no-deps"
    return _of(wanted, Verdict.WRONG, found, wish.file, advice)


def _target(versions: Mapping[str, str]) -> dict[str, str]:
    """The machine that markers are about: Linux, and the newest Python that the manifest allows."""
    python = (_pythons(versions.get("python", "")) or ["3.11"])[-1]
    return {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "platform_machine": "aarch64",
        "extra": "",
    }


def _of(
    wanted: tuple[str, str, str], verdict: Verdict, found: str, where: str = "", advice: str = ""
) -> Diagnosis:
    topic, name, words = wanted
    return Diagnosis(Topic(topic), name, verdict, words, found, where, advice)
