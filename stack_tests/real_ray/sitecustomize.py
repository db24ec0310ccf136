"""Runs at the start of the job and of each of Ray's workers: all but Ray and slime are stubs.

On sys.path by PYTHONPATH, like slime itself; Python imports it by this name. The device is the
variable PATCHKIT_TEST_DEVICE.
"""

import importlib
import os
import sys

PACKAGES = (
    *("deep_ep", "httpx", "mbridge", "megatron", "mindspeed", "pylatexenc", "pynvml", "sglang"),
    *("sglang_router", "torch", "torch_memory_saver", "torch_npu", "transformers", "wandb"),
)

if "PATCHKIT_TEST_DEVICE" in os.environ and "ray" not in sys.modules:
    from stack_tests.stubs import Stub, pretend, torch_for

    torch = torch_for(os.environ["PATCHKIT_TEST_DEVICE"])
    torch.__version__ = "2.8.0"
    pretend(PACKAGES, {"torch": torch, "torch.cuda": torch.cuda})

    class SGLangEngine:
        """An engine that only tells what it was given."""

        def __init__(self, args, rank, worker_type, base_gpu_id):  # type: ignore[no-untyped-def]
            self.base_gpu_id = base_gpu_id

        def init(self, **ports):  # type: ignore[no-untyped-def]
            pass

        def place(self):  # type: ignore[no-untyped-def]
            """The device it was told, and the ones that Ray counts as its own."""
            return self.base_gpu_id, importlib.import_module("job").counted()

    engine = Stub("slime.backends.sglang_utils.sglang_engine")
    engine.SGLangEngine = SGLangEngine  # type: ignore[attr-defined]
    sys.modules[engine.__name__] = engine
