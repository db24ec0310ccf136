"""Stop patchkit wherever it changes something, in every way, and see whether its laws hold.

`python -m bench.faults --points N --seed S` runs commands in made-up projects under a tracer
(`tracing`), which lets one system call fail, or sends a signal just before it, in patchkit itself
or in any git that it started (`calls` says which calls count for which fault). Afterwards `laws`
looks at what is left, and at what the next command makes of it.
"""
