"""Which upstreams files of other tools fetch, with the places of their pins: vcpkg's portfile,
gclient's DEPS, west's manifest. `init --here` believes them first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchkit.adoption.carrier import Carrier
from patchkit.adoption.upstreams import VERSION, Upstream, pin_files, words_of
from patchkit.manifest.pin_places import named_values

#: In gclient's DEPS: a variable, and a URL that is made of two.
_VARIABLE = re.compile(r"""["']([\w.]+)["']:\s*["']([^"'\n]+)["']""")
_DEPENDENCY = re.compile(
    r"""Var\(["']([\w.]+)["']\)\)?\s*\+\s*["'](/[^"'\n]+)@["']\s*\+\s*\(?Var\(["']([\w.]+)["']\)"""
)
# In a portfile of vcpkg's: from where it fetches, and what is said of it.
_PORT = re.compile(r"\bvcpkg_from_git(?:hub|lab)?\s*\(((?:[^()#]|#.*\n)*)")
_SAID = re.compile(
    r"\b(OUT_SOURCE_PATH|URL|REPO|REF|GITHUB_HOST|GITLAB_URL|PATCHES)\s+\"?([^\s\"]+)"
)
_PORT_FILES = "portfile.cmake", "vcpkg.json"
_VERSIONS = frozenset(("version", "version-semver", "version-string", "version-date"))

# In west's manifests: remotes, projects, their fields, and what leads to a revision.
_REMOTE = re.compile(r"- name: *[\"']?([^\s\"'#]+)[\"']?\s+url-base: *[\"']?([^\s\"'#]+)")
_PROJECT = re.compile(r"- name:(?:(?!- name:)[\s\S])*")
_FIELD = re.compile(
    r"^[ -]*(name|url|remote|repo-path|revision): *[\"']?([^\s\"'#]+)", re.MULTILINE
)
_DEFAULT = re.compile(r"\bdefaults:\s+(?:revision:.*\s+)?remote: *[\"']?([^\s\"'#]+)")
_REVISION = r"- name: *[\"']?NAME[\"']?\s(?:(?!- name:)[\s\S])*?\srevision: *[\"']?([^\s\"'#]+)"


def dependencies(carrier: Carrier, folder: str) -> Iterator[Upstream]:
    """The dependencies in gclient's DEPS whose URL and commit are variables."""
    path = f"{folder}/DEPS".lstrip("/")
    text = carrier.text(path)
    variables = {found[1]: found for found in _VARIABLE.finditer(text)}
    for found in _DEPENDENCY.finditer(text):
        start, ref = (variables.get(name) for name in (found[1], found[3]))
        if start and ref and VERSION.fullmatch(ref[2]):
            pin, line = (("file", path), ("deps", ref[1])), text.count("\n", 0, ref.start(2)) + 1
            where, about = f"{path}:{line}", words_of(found[2])
            yield Upstream(start[2] + found[2], pin, ref[2], where, about)


def ports(carrier: Carrier, folder: str) -> Iterator[Upstream]:
    """The repositories that vcpkg's portfile in a folder fetches, only those that it patches if it
    patches any, with their REF, or the version that a REF is made of.
    """
    portfile, manifest = (f"{folder}/{name}".lstrip("/") for name in _PORT_FILES)
    text, values = carrier.text(portfile), named_values(carrier.text(manifest), ("variable",))
    versions = [(manifest, found) for found in values if found.name in _VERSIONS]
    ports = [dict(_SAID.findall(said)) for said in _PORT.findall(text)]
    for said in [port for port in ports if "PATCHES" in port] or ports:
        site = said.get("GITHUB_HOST") or said.get("GITLAB_URL") or "https://github.com"
        url = said.get("URL", f"{site.rstrip('/')}/{said.get('REPO')}")
        name, values = said.get("OUT_SOURCE_PATH"), named_values(text, ("cmake",))
        places = [(portfile, found) for found in values if found.name == name]
        for file, found in places or versions:
            pin, where = (("file", file), (found.form, found.name)), f"{file}:{found.line}"
            yield Upstream(url, pin, found.value, where, words_of(url.rpartition("/")[2]))


def projects(carrier: Carrier, folder: str) -> Iterator[Upstream]:
    """The projects that west's manifests in a folder name, with their revisions."""
    for path in pin_files(carrier).get(folder, ()):
        text = carrier.text(path)
        sites = dict(_REMOTE.findall(text))
        for found in _PROJECT.finditer(text):
            said = {"remote": "", **dict(_FIELD.findall(found[0]))}
            name, revision = said["name"], said.get("revision", "")
            site = sites.get(said["remote"] or "".join(_DEFAULT.findall(text)))
            url = said.get("url", f"{site}/{said.get('repo-path', name)}")
            if VERSION.fullmatch(revision):
                start = found.start() + found[0].index(revision)
                pin = ("file", path), ("pattern", _REVISION.replace("NAME", re.escape(name)))
                where = f"{path}:{text.count(chr(10), 0, start) + 1}"
                yield Upstream(url, pin, revision, where, words_of(name))
