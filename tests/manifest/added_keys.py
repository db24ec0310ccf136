"""What an extension declares: a key of components, and what stands under it."""

from typing import Annotated

from msgspec import Struct

from patchkit.manifest.types import Line, Number
from patchkit.manifest.values import Location


class Audit(Struct, frozen=True):
    """Somebody looked."""

    by: Annotated[Line, "Who."]
    where: Location
    level: Annotated[int, Number(1, 9), "How closely."] = 1


class AuditKeys(Struct, frozen=True):
    """Keys that are added to a component's."""

    audit: Annotated[tuple[Audit, ...], "Who looked at the component."] = ()
