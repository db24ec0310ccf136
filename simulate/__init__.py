"""Runs of the patched stacks on small random models: a simulated NPU, a real one, CUDA, a CPU."""
