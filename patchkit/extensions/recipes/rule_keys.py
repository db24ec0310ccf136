"""Keys of manifests that name rule files."""

from typing import Annotated

from patchkit.manifest.values import RuleFile, VerifyStep


class RuleStep(VerifyStep, frozen=True, kw_only=True):
    """Rules on syntax, by a file of their own."""

    rules: Annotated[RuleFile, "A rule file: what each rule finds must be as its `expect` says."]

    @property
    def title(self) -> str:
        """Its name, else its file."""
        return self.name or self.rules
