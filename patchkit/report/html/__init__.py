"""Reports as one HTML file that needs nothing else: no network, no font, no server.

`pages` puts a page together; `timeline`, `clashes` and `trends` say what its parts show, as values
that the templates in `templates/report` draw.
"""
