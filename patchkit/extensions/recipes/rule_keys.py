"""Keys of manifests that name rule files."""

from typing import Annotated

from msgspec import Struct

from patchkit.manifest.types import InnerFile, Key, also
from patchkit.manifest.values import RuleFile, VerifyStep


class Residual(Struct, frozen=True):
    """Sites that a rule names and no patch covers."""

    rules: Annotated[
        tuple[RuleFile, ...],
        "Rule files (recipes without `fix`) whose sites are looked for, besides those of the "
        "recipes in the series.",
        also("rule", "lint"),
    ] = ()
    baseline: Annotated[
        InnerFile, Key(default="residual.yml beside the series"), "The file of reviewed sites."
    ] = ""


class ScanKeys(Struct, frozen=True):
    """Keys that are added to a component's."""

    residual: Annotated[
        Residual, "What to look for in the whole patched tree.", also("lint", "scan")
    ] = Residual()


class RuleStep(VerifyStep, frozen=True, kw_only=True):
    """Rules on syntax, by a file of their own."""

    rules: Annotated[RuleFile, "A rule file: what each rule finds must be as its `expect` says."]

    @property
    def title(self) -> str:
        """Its name, else its file."""
        return self.name or self.rules
