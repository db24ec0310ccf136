"""What it costs, and what it withstands: each module or folder is run by `python -m bench.NAME`.

Ratios to git and to a bare interpreter, never seconds: run (`make bench`, docs/benchmarks.md; with
peers, scenes, moving, measure and page), drift, report.
Other people's work: carry (real bumps, docs/carry.md), corpora (docs/corpora.md), recipes
(docs/recipes-figures.md).
Trouble: faults (`make faults`, docs/faults.md), remotes, fuzz (`make fuzz`, docs/fuzzing.md).
What the tests reach and notice: coverage and mutation (docs/testing.md).
"""
