"""How far a stack can go along its tracked branch, and at what cost of hand work.

`effort` tells from a walk (`drift/walk.py`) how far each amount of work reaches. `metadata` reads
what components ask of each other, `combine` chooses for several, `plan_report` is the answer.
"""
