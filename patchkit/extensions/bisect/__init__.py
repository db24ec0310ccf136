"""Which commit of upstream's beneath a stack breaks a command."""
