"""HTML pages as jinja2 templates, in which no text of others can be more than text.

Everything that a template prints is made harmless and escaped, unless it is `Markup`.
"""

from __future__ import annotations

import base64
from functools import cache
from hashlib import sha256

import jinja2
from markupsafe import Markup

from patchkit.model.text import clean


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
