"""How far a stack can go along its tracked branch, and at what cost of hand work.

`following` walks the files of the patches from commit to commit, across renames; `forecasting` asks
the carry engine once for each state of a file; `profiling` tells from both how far each amount of
work reaches, and `trying` carries to where each ends. `declaring` reads what components ask of each
other, `combining` chooses for several.
"""
