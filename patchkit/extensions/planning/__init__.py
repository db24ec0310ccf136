"""How far a stack can go along its tracked branch, and at what cost of hand work.

`metadata` reads what components ask of each other, `combination` tells from a walk
(`drift/walk.py`) how far each amount of work reaches and chooses for several, `plan_report` is the
answer.
"""
