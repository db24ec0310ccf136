"""`python -m npusim [--transfer] [-m MODULE | SCRIPT] [ARGUMENTS ...]`: run it with the device.

--transfer also turns "cuda" into "npu", as `import torch_npu.contrib.transfer_to_npu` does.
Without a script: say what is there.
"""

import os
import runpy
import sys

import npusim


def main(arguments: list[str]) -> int:
    """Run what the arguments name as `__main__`, in this process."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    os.environ.update(npusim.environment())
    npusim.install()
    import torch

    if arguments[:1] == ["--transfer"]:
        arguments = arguments[1:]
        import torch_npu.contrib.transfer_to_npu  # noqa: F401
    if not arguments:
        print(f"torch {torch.__version__}, {torch.npu.device_count()} simulated devices")
        return 0
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path.insert(0, "")
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))  # noqa: PTH100, PTH120
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
