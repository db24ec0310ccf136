"""One module per run; its steps are found by their decorator."""
