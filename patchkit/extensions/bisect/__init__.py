"""Which patch of a stack, or which commit of upstream's beneath it, breaks a command."""
