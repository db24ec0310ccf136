"""Reports as one HTML file that needs nothing else: no network, no font, no server.

`html_page` puts a page together; `charts` and `clashes` say what its parts show, as values that the
templates in `templates/report` draw.
"""
