"""Templates of files for a project, which a project may replace by its own.

Sandboxed: a template sees the values it is given and nothing of Python.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from patchkit.errors import BadInputError, PatchkitError, Problem

#: Where a project keeps templates of its own.
FOLDER = "templates"


class ProjectTemplates:
    """The shipped templates under those of a project's folder; `filters` by name."""

    def __init__(self, root: Path, filters: Mapping[str, Callable[..., str]]) -> None:
        self._folder = root / FOLDER
        shipped = jinja2.PackageLoader("patchkit", "templates/stack")
        # `{% extends "shipped/install.sh.j2" %}` changes a block and keeps the rest
        loaders = [
            jinja2.FileSystemLoader(self._folder),
            shipped,
            jinja2.PrefixLoader({"shipped": shipped}),
        ]
        self._environment = ImmutableSandboxedEnvironment(
            loader=jinja2.ChoiceLoader(loaders),
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # what is made is no HTML: each filter knows its notation
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(filters)

    def render(self, name: str, values: Mapping[str, object]) -> str:
        """The template `name` with `values`; raises BadInputError that says file and line."""
        try:
            return self._environment.get_template(name).render(values)
        except jinja2.TemplateSyntaxError as error:
            where = f"{error.filename or error.name or name}:{error.lineno}"
            raise BadInputError(Problem(f"template: {error.message}", where)) from error
        except (jinja2.TemplateError, UnicodeDecodeError) as error:
            raise BadInputError(Problem(f"template: {error}", self._line(name, error))) from error
        except PatchkitError:
            raise
        except Exception as error:  # a template computes: it divides by zero, calls what is no call
            kind = type(error).__name__
            what = f"template: {kind}: {error}"
            raise BadInputError(Problem(what, self._line(name, error))) from error

    def _line(self, name: str, error: Exception) -> str:
        """The line of a template where an error arose, as jinja2 puts it into the traceback."""
        found = ""
        for frame, line in traceback.walk_tb(error.__traceback__):
            file = frame.f_code.co_filename
            if file.startswith(str(self._folder)) or file == name:
                found = f"{file}:{line}"
        return found or self.place(name)

    def place(self, name: str) -> str:
        """Where a template stands, for messages."""
        own = self._folder / name
        return str(own) if own.is_file() else f"the shipped {name}"
