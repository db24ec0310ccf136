"""Feed damaged input to everything that reads what others wrote: `python -m bench.fuzz`.

Every case is a number: it seeds the dice that make the input, so that a number is a regression
test (tests/fuzz). `targets` says what is read, and what must hold; `damage` breaks things.
"""
