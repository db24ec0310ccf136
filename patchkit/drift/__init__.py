"""Which upstream commit broke which patch, and when: a branch's history judged without a checkout.

`follow` tells how the files that patches touch changed and where they went; `forecast` asks the
carry engine once for each state of them, and `forecast_cache` keeps its answers; `walk` goes along
the branch, `trial` carries to single commits in full, and `describe` makes of all that what
`drift_report` says of each patch.
"""
