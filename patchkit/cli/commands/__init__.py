"""One module per command; named in `patchkit.cli.catalog`, imported only when it runs."""
