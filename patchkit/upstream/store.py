"""The store: every upstream as git objects, once, whatever it came from.

One bare repository per upstream below the cache folder, shared by all manifests:

    repos/<name>-<hash>.git   refs/patchkit/pins/<pin> for each pin that was fetched
    files/<sha256>-<place>    verified files of other repositories: published patches
    downloads/                archives on their way, resumed after an interruption
    manifests/, series/, ...  what was read or found last, read again where it is damaged
    locks/                    one lock file for each of them; a lock vanishes with its process
    scratch/                  what is being fetched; nothing here is ever believed

The pin's ref is written last. A pin that has one is whole and is never asked for again.
"""

from __future__ import annotations

import stat
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from patchkit.disk.files import locked, replace_file
from patchkit.errors import BadInputError, Problem, SurroundingsError
from patchkit.gitcmd.object_reader import ObjectReader, reading
from patchkit.gitcmd.pins import (
    absent_blobs,
    is_damaged,
    is_sound,
    paths_of,
    read_base,
    read_pin,
    unfit_file,
    write_pin,
)
from patchkit.gitcmd.repository import Repository, init_repository
from patchkit.manifest.values import (
    ArchivePin,
    ArchiveSource,
    Component,
    GitPin,
    GitSource,
    IndexPin,
    IndexSource,
    Manifest,
    PinnedPatch,
)
from patchkit.model.names import folder_name, readable_url
from patchkit.model.objects import Base, CommitId
from patchkit.model.progress import Progress, Stop
from patchkit.model.tree import Tree, tree_fault
from patchkit.upstream.fetching import Fetching, about, commit_ref, pin_ref, pin_words
from patchkit.upstream.identity import upstream_key

# The ways to bring a pin, one for each kind of source.


def fetch_pin(component: Component, repository: Repository, fetching: Fetching) -> CommitId:
    """Bring the component's pin with all its files into `repository`; the base commit's id.

    On disk: packs in `repository`, no ref.
    """
    # imported here: each kind of source needs libraries that the others can do without
    match component.source, component.pin:
        case GitSource() as source, GitPin(commit, name):
            from patchkit.upstream.git import (  # noqa: PLC0415
                fetch_commit,
                list_refs,
                require_unmoved,
            )

            if name:
                require_unmoved(list_refs(source, stop=fetching.stop), component)
            fetch_commit(source, commit, repository, fetching, track=component.track)
            return commit
        case IndexSource(project), IndexPin(version, digest):
            from patchkit.upstream.index import fetch_sdist  # noqa: PLC0415

            return fetch_sdist(project, version, digest, repository, fetching)
        case ArchiveSource() as source, ArchivePin(digest):
            from patchkit.upstream.archive import fetch_archive  # noqa: PLC0415

            return fetch_archive(source, digest, repository, fetching)
    what = f"the pin of {component.name} does not match its source"
    raise BadInputError(Problem(what, str(component.pin_where)))


#: How many components are fetched at once; they mostly wait for the network.
JOBS = 6


class Store:
    """The cache folder; safe to use from several threads and processes at once."""

    def __init__(self, cache: Path, *, offline: bool = False) -> None:
        self.cache = cache
        self.offline = offline
        self.stop = Stop()

    def repository(self, component: Component) -> Repository:
        """Where the component's upstream is kept; need not exist yet."""
        key = upstream_key(component.source)
        return Repository(self.cache / "repos" / f"{folder_name(key)}.git")

    def cached_base(self, component: Component) -> Base | None:
        """The component's base if its pin is here and whole; asks nobody."""
        return read_pin(self.repository(component), pin_ref(component))

    def base(self, component: Component, progress: Progress) -> Base:
        """The component's base, fetched if it is not here; every problem names the component."""
        base = self.cached_base(component)
        if base is not None:
            return base
        self.require_network(component.name, f"{pin_words(component)} is not in the cache")
        repository = self.repository(component)
        with self.locked(repository.git_dir.stem, component.name, progress):
            base = self.cached_base(component)  # somebody else may have brought it meanwhile
            return base if base is not None else self._build(component, progress)

    def bring_base(self, old: Component, new: Component, progress: Progress) -> None:
        """Have the base of `old` where that of `new` is, which must be here: archives by different
        URLs are kept apart, and patches are carried within one repository.

        On disk: a pack and a pin in that repository.
        """
        base, target, ref = self.base(old, progress), self.repository(new), pin_ref(old)
        if read_pin(target, ref) is not None:
            return
        with self.locked(target.git_dir.stem, new.name, progress):
            revision = f"{base.commit}\n".encode()
            packed = self.repository(old).git(
                "pack-objects", "-q", "--revs", "--stdout", stdin=revision
            )
            target.git("index-pack", "--stdin", stdin=packed.out)
            write_pin(target, ref, base)

    def absent_paths(self, component: Component) -> tuple[str, ...]:
        """The files of a component's base, which must be here, that no server gives.

        The upstream's own repository is damaged there.
        """
        repository = self.repository(component)
        return paths_of(repository, pin_ref(component), absent_blobs(repository))

    def verify(self, component: Component, progress: Progress) -> bool:
        """Read every byte of the component's cached repository; whether all of it is right.

        True where nothing is cached. On disk: a repository that is damaged is thrown away.
        """
        repository = self.repository(component)
        if not repository.exists or is_sound(repository, pin_ref(component)):
            return True
        from patchkit.gitcmd.scratch import discard  # noqa: PLC0415 (for what is damaged)

        with self.locked(repository.git_dir.stem, component.name, progress):
            discard(repository, self.cache / "scratch")
        return False

    def cached_file(self, manifest: Manifest, entry: PinnedPatch) -> bytes | None:
        """The file's bytes if they were found at the entry's place and verified; asks nobody."""
        try:
            data = self._file(manifest, entry).read_bytes()
        except FileNotFoundError:
            return None
        return data if _fits(entry, data) else None

    def pinned_file(
        self, manifest: Manifest, component: Component, entry: PinnedPatch, progress: Progress
    ) -> bytes:
        """The bytes of a file in another pinned repository, verified.

        Where it is not here, that commit is fetched as any pin is. BadInputError if the file is not
        there or is another one.
        """
        data = self.cached_file(manifest, entry)
        if data is None:
            source, commit = home_of(manifest, entry)
            home = replace(component, source=source, pin=GitPin(commit), track=None)
            self.base(home, progress)
            data = _read_file(self.repository(home), commit, entry)
            self._keep(manifest, entry, data)
        return data

    def _build(self, component: Component, progress: Progress) -> Base:
        """Fetch the component's pin and record it; the caller holds the lock."""
        from patchkit.gitcmd.scratch import discard, sweep  # noqa: PLC0415 (most is cached)

        repository, ref = self.repository(component), pin_ref(component)
        if is_damaged(repository, ref):
            progress.step(component.name, "the cached copy is damaged, fetching it again")
            discard(repository, self.cache / "scratch")
        sweep(self.cache / "scratch")
        progress.step(component.name, "fetching")
        with about(component.name):
            init_repository(repository.git_dir)
            commit = fetch_pin(component, repository, self.fetching(component.name, progress))
            with reading(repository) as reader:
                base = read_base(repository, commit, reader)
                _require_plain_tree(reader, base)
            write_pin(repository, ref, base)
            return base

    def _keep(self, manifest: Manifest, entry: PinnedPatch, data: bytes) -> None:
        """Verify the bytes and put them into the cache."""
        if not _fits(entry, data):
            raise BadInputError(
                Problem(
                    f"{entry.path} has sha256 {sha256(data).hexdigest()},"
                    f" the manifest says {entry.sha256}",
                    str(entry.where),
                    "look at the file at that commit; if it is the one you mean, correct sha256",
                )
            )
        path = self._file(manifest, entry)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)

    def _file(self, manifest: Manifest, entry: PinnedPatch) -> Path:
        """Its name has the place, too: a right hash must not hide that another commit is named."""
        place = "\0".join((*_place(manifest, entry), entry.path))
        key = sha256(place.encode("utf-8", "surrogatepass")).hexdigest()
        return self.cache / "files" / f"{entry.sha256}-{key[:16]}"

    def require_network(
        self, name: str, lacking: str, hint: str = "`patchkit fetch` without --offline brings it"
    ) -> None:
        """Raise a SurroundingsError that says what of component `name` is lacking, if offline."""
        if self.offline:
            raise SurroundingsError(Problem(lacking, name, hint))

    def locked(self, what: str, name: str, progress: Progress) -> AbstractContextManager[None]:
        """Hold the lock of one upstream; waits for whoever has it, and says so."""

        def waiting() -> None:
            progress.step(name, "waiting for another patchkit that fetches it")

        return locked(self.cache / "locks" / f"{what}.lock", self.stop, waiting)

    def fetching(self, name: str, progress: Progress) -> Fetching:
        """What a source needs to fetch for component `name`."""
        return Fetching(name, self.cache, progress, self.stop)


def cached_whole(store: Store, manifest: Manifest, component: Component) -> Base | None:
    """The component's base, if it is here with all files that its patches are taken from."""
    base = store.cached_base(component)
    files = (store.cached_file(manifest, entry) for entry in component.references)
    return base if base is not None and all(file is not None for file in files) else None


def _require_plain_tree(reader: ObjectReader, base: Base) -> None:
    """BadInputError if the upstream has paths or files that no checkout can have, or too many.

    Before the pin is recorded, so that every command refuses it alike.
    """
    fault = tree_fault(reader, base.tree) or unfit_file(reader.repository, base.commit)
    if fault is not None:
        path, what = fault
        place = f" at {path}" if path else ""
        hint = "pin another commit: nothing of this one is written anywhere"
        raise BadInputError(
            Problem(f"the upstream has a tree that is refused{place}: {what}", hint=hint)
        )


def _place(manifest: Manifest, entry: PinnedPatch) -> tuple[str, str]:
    """Upstream and pin that the file is taken from, the same for every way to write them."""
    source, commit = home_of(manifest, entry)
    return upstream_key(source), commit_ref(commit)


def home_of(manifest: Manifest, entry: PinnedPatch) -> tuple[GitSource, CommitId]:
    """The repository and commit that a file is taken from."""
    if entry.git is not None:
        return source_of(manifest, entry.git), entry.commit or CommitId("")
    other = manifest.component(entry.component or "")
    assert other is not None  # a manifest that names a stranger is refused
    assert isinstance(other.source, GitSource)  # as is one with another source
    assert isinstance(other.pin, GitPin)
    return other.source, other.pin.commit


def source_of(manifest: Manifest, url: str) -> GitSource:
    """The upstream at `url`, with the mirrors that a component of the manifest gives for it."""
    sources = [c.source for c in manifest.components if isinstance(c.source, GitSource)]
    same = [s for s in sources if upstream_key(s) == upstream_key(GitSource(url))]
    return GitSource(url, tuple(dict.fromkeys(mirror for s in same for mirror in s.mirrors)))


def _fits(entry: PinnedPatch, data: bytes) -> bool:
    return sha256(data).hexdigest() == entry.sha256


def _read_file(repository: Repository, commit: CommitId, entry: PinnedPatch) -> bytes:
    """The bytes of an ordinary file of a commit; BadInputError if it has none there."""
    with reading(repository) as reader:
        found = Tree(reader, reader.root(commit)).entry(entry.path)
        if found is not None and stat.S_ISREG(found.mode):
            return reader.blob(found.oid)
    place = f"{readable_url(entry.git)} at {entry.commit}" if entry.git else entry.component
    hint = "look up the file's path at that commit"
    raise BadInputError(Problem(f"{entry.path} is not in {place}", str(entry.where), hint))
