"""Other people's cases: their test suites run from their own trees, our verdict beside theirs.

`python -m bench.corpora --git CLONE --gnu-patch CLONE --slime CLONE ...` takes clones that are
there already; nothing of them is copied in. Test scripts are run as they are, with a program in
the place of `git` or `patch` (`recorder`) that notes what each call was given; then `judging` asks
both sides what they make of it. `published` goes through every patch set of slime's history.
"""
