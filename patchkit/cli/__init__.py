"""The command line: flags -> ops -> terminal. The only package with typer and rich."""
