"""Which upstream commit broke which patch, and when: a branch's history judged without a checkout.

`gitcmd.firstparent` tells how the files that patches touch changed; `judging` says what a series
comes to on one state of them, and remembers it by blob ids; `timeline` puts both together.
"""
