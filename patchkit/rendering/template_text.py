"""A document through its template: the notation's filters, the mark's digest."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from patchkit.errors import BadInputError, Problem
from patchkit.rendering import notation, shell
from patchkit.rendering.documents import Document
from patchkit.rendering.marking import UNSIGNED, signed
from patchkit.templates.project import ProjectTemplates

_FILTERS: Mapping[str, Callable[..., str]] = {
    "argument": shell.argument,
    "body": shell.step_body,
    "code": notation.code,
    "comment": shell.comment,
    "copy": notation.copy_words,
    "html_comment": notation.html_comment,
    "in_workspace": shell.in_workspace,
    "json": lambda text: json.dumps(text, ensure_ascii=False),
    "md": notation.markdown,
    "oneline": shell.one_line,
    "paths": shell.prepended,
    "quote": shell.quote,
    "short": shell.short,
    "word": shell.word,
}


def templates_of(root: Path) -> ProjectTemplates:
    """The templates for a project: its own before the shipped ones."""
    return ProjectTemplates(root, _FILTERS)


def document_text(document: Document, templates: ProjectTemplates) -> str:
    """A document's text, signed, with one newline at its end.

    Raises BadInputError for a template that fails, or that leaves out the mark.
    """
    text = templates.render(document.template, document.context)
    if UNSIGNED not in text:
        hint = f'add the line `# {UNSIGNED}`, as in `{{% include "mark.j2" %}}`'
        where = templates.place(document.template)
        raise BadInputError(Problem("has no line for the digest", where, hint))
    return signed(text.strip("\n") + "\n")
