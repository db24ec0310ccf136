"""Whether a file of an upstream is YAML at all: any YAML, not only what manifests may use."""

from __future__ import annotations

from typing import Any

import yaml

#: Whose word it is.
YAML_READER = f"PyYAML {yaml.__version__}"

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def yaml_problem(data: bytes) -> str:
    """Why the bytes are no YAML, "" if they are; nothing is built from them."""
    try:
        for _ in yaml.parse(data, _LOADER):
            pass
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        return f"{line}{error.problem}"
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        return str(error).partition("\n")[0]
    return ""
