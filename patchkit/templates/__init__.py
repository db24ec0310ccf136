"""Text files that patchkit writes for people, as jinja2 templates beside this module."""

from __future__ import annotations

import jinja2

from patchkit.manifest.write import quoted, yaml_text


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
