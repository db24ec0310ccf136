"""Settings of the compiler."""
