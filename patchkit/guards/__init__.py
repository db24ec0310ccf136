"""What `check` says beyond single patches: functions that another component replaces (`overrides`),
code that no patch covers (`residual`), what must hold in the patched tree (`verify`), and calls
between components (`contracts`).
"""
