"""Importing this makes "cuda" mean "npu", as torch_npu's module of this name does."""

from npusim import transfer

transfer.transfer()
