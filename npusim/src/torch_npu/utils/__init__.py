"""torch_npu.utils."""
