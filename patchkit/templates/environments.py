"""The three ways in which jinja2 is used: files that patchkit writes once for people, HTML pages,
and templates that a project may replace by its own.
"""

from __future__ import annotations

import base64
import traceback
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from patchkit.errors import BadInputError, PatchkitError, Problem
from patchkit.manifest.write import quoted, yaml_text
from patchkit.model.text import clean


def render_template(name: str, **values: object) -> str:
    """The template `name` ("manifest.yaml.j2") with `values`; a value it lacks is an error.

    The filter `yaml` writes plain data as a block, `quoted` a text as one scalar.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("patchkit", "templates"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # the templates here are no HTML
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["yaml"] = lambda data: yaml_text(data).rstrip("\n")
    environment.filters["quoted"] = quoted
    return environment.get_template(name).render(values)


# HTML pages, in which no text of others can be more than text: everything that a template prints is
# made harmless and escaped, unless it is `Markup`.


def render_page(name: str, **values: object) -> str:
    """The template `name` of `templates/report` with `values`; one that it lacks is an error."""
    return _environment().get_template(name).render(values)


def page_part(name: str) -> Markup:
    """A style sheet or script of `templates/report`, as it is."""
    environment = _environment()
    assert environment.loader is not None
    return Markup(environment.loader.get_source(environment, name)[0])


def digest_source(text: str) -> str:
    """What a content security policy calls an inline style or script by."""
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("patchkit", "templates/report"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _harmless(value: object) -> object:
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


# Templates of files for a project, which a project may replace by its own.
#
# Sandboxed: a template sees the values it is given and nothing of Python.


#: Where a project keeps templates of its own.
FOLDER = "templates"


class ProjectTemplates:
    """The shipped templates under those of a project's folder; `filters` by name."""

    def __init__(self, root: Path, filters: Mapping[str, Callable[..., object]]) -> None:
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
