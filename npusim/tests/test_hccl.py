"""hccl between two processes; transfer_to_npu, which cannot be taken back, is in them, too."""

import socket
import subprocess
import sys
from pathlib import Path

import npusim

HERE = Path(__file__).parent


def test_every_collective() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(HERE / "hccl_process.py"), str(rank), port],
            env=npusim.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(said)


def test_cuda_is_npu_after_transfer() -> None:
    script = """
import torch, torch_npu.contrib.transfer_to_npu
x = torch.ones(2, device="cuda:1")
assert x.device == torch.device("npu:1") and x.is_cuda and torch.cuda.is_available()
assert torch.zeros(1).to("cuda").device.type == "npu" and torch.zeros(1).to(1).device.index == 1
assert torch.nn.Linear(1, 1).cuda().weight.device.type == "npu"
with torch.device("cuda"):
    assert torch.ones(1).device.type == "npu"
generator = torch.Generator(device="cuda")
assert isinstance(generator, torch.Generator) and generator.device.type == "npu"
torch.cuda.set_rng_state(torch.cuda.get_rng_state("cuda"), "cuda")
assert torch.cuda.get_device_capability() is None
assert torch.jit.script(len) is len
"""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env=npusim.environment(), check=True
    )


def test_an_extension_for_cann_stops_with_its_name() -> None:
    script = """
import torch_npu
from torch.utils.cpp_extension import load
try:
    load("swiglu_of_another", ["a.cpp"], extra_ldflags=["-ltorch_npu"])
except RuntimeError as error:
    assert "swiglu_of_another is written for a real NPU" in str(error)
else:
    raise AssertionError
"""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env=npusim.environment(), check=True
    )
