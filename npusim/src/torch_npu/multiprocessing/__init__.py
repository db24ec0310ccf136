"""torch_npu.multiprocessing."""
