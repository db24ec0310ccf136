"""The backend "hccl" of torch.distributed: gloo, on the device's memory.

A process group of Python: its collectives hand gloo the CPU's alias of each tensor, and are
finished when they return, as everything on the device; sends and receives run on, so that rings
of them do not wait for each other. As on a real device, a tensor of the CPU is refused, unless
the group was made with a backend for it, too ("cpu:gloo,npu:hccl").
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroup, ProcessGroupGloo, Work


def register() -> None:
    """Make "hccl" known; torch_npu adds is_hccl_available, too."""
    _without_capability()
    dist.Backend.register_backend("hccl", Hccl, devices=["npu"])
    dist.is_hccl_available = lambda: True  # type: ignore[attr-defined]
    dist.distributed_c10d.is_hccl_available = lambda: True  # type: ignore[attr-defined]


class _Seen:
    """A module as another one sees it, with some names of its own."""

    def __init__(self, real: Any, **own: Any) -> None:
        self._real = real
        vars(self).update(own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _without_capability() -> None:
    """Let torch's broadcast, since 2.9, not ask an NPU for its compute capability.

    After transfer_to_npu a tensor says is_cuda, and what torch.cuda answers then is None, or what
    else has been put there: releases that the stacks are for do not look at it.
    """
    cuda = _Seen(torch.cuda, get_device_capability=lambda *_: (0, 0))
    dist.distributed_c10d.torch = _Seen(torch, cuda=cuda)  # type: ignore[attr-defined]


_REDUCED = (
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32),
)
_MOVED = (*_REDUCED, torch.uint8, torch.bool, torch.float64)
_OPERATIONS = ("SUM", "AVG", "MAX", "MIN", "PRODUCT")


def _refuse(tensor: torch.Tensor, types: tuple[torch.dtype, ...]) -> None:
    """What HCCL has no kernel for: other types, and tensors with gaps."""
    if tensor.device.type == "npu" and tensor.dtype not in types:
        raise RuntimeError(f"HCCL: Unsupported data type {tensor.dtype}")
    if tensor.device.type == "npu" and not tensor.is_contiguous():
        raise RuntimeError("HCCL: Tensors must be contiguous")


class Done(Work):
    """Work that is finished; its future has the tensors."""

    def __init__(self, result: Any = None) -> None:
        super().__init__()
        self._future: torch.futures.Future[Any] = torch.futures.Future()
        self._future.set_result(result)

    def wait(self, timeout: Any = None) -> bool:
        """It is finished."""
        return True

    def is_completed(self) -> bool:
        """It is finished."""
        return True

    def is_success(self) -> bool:
        """An error would have stopped the call."""
        return True

    def get_future(self) -> torch.futures.Future[Any]:
        """The tensors that were written."""
        return self._future

    def result(self) -> Any:
        """The same."""
        return self._future.value()


def _divided(tensor: torch.Tensor, by: int) -> None:
    if tensor.is_floating_point():
        tensor.div_(by)
    else:
        tensor.div_(by, rounding_mode="trunc")


class Hccl(ProcessGroup):  # type: ignore[misc]
    """One group of processes."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
        super().__init__(rank, size)
        self._gloo = ProcessGroupGloo(store, rank, size, timeout)
        self._rank, self._size = rank, size
        self._name = self._description = "undefined"
        self._gloo._set_sequence_number_for_group()

    def getBackendName(self) -> str:
        """hccl."""
        return "hccl"

    def size(self) -> int:
        """The number of processes."""
        return self._size

    def rank(self) -> int:
        """This process in the group."""
        return self._rank

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def getGroupName(self) -> str:
        """What torch calls this group."""
        return self._name

    group_name = property(getGroupName)

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    def getGroupDesc(self) -> str:
        """What the caller calls this group."""
        return self._description

    group_desc = property(getGroupDesc)

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("npu"), *([torch.device("cpu")] if self._takes_cpu() else [])]

    def _takes_cpu(self) -> bool:
        config = dist.distributed_c10d._world.pg_backend_config.get(self, "")
        return "cpu:" in str(config)

    def _get_backend(self, device: Any) -> "Hccl":
        return self

    def _get_backend_name(self) -> str:
        return "hccl"

    def _get_sequence_number_for_group(self) -> int:
        return int(self._gloo._get_sequence_number_for_group())

    def _alias(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._alias(each) for each in value]
        if value.device.type == "npu":
            _refuse(value, _MOVED)
            return torch.ops.npusim.host(value.detach())
        if value.device.type == "cpu" and self._takes_cpu():
            return value.detach()
        raise RuntimeError(f"No backend type associated with device type {value.device.type}")

    def _sum(
        self, tensors: list[torch.Tensor], options: Any, reduce: Callable[[Any], Work]
    ) -> None:
        """Reduce with gloo, which knows no average: a sum, then divided."""
        names = [each for each in _OPERATIONS if options.reduceOp == getattr(dist.ReduceOp, each)]
        if not names:
            kinds = dist.ReduceOp.RedOpType.__members__.items()
            [asked] = [each for each, kind in kinds if options.reduceOp == kind]
            raise RuntimeError(f"HCCL: Cannot use the reduce operation {asked}")
        mean = options.reduceOp == dist.ReduceOp.AVG
        if mean:
            options.reduceOp = dist.ReduceOp.SUM
        try:
            reduce(options).wait()
        finally:
            if mean:
                options.reduceOp = dist.ReduceOp.AVG
        if mean:
            for tensor in tensors:
                _divided(tensor, self._size)

    # ---- collectives; names and arguments are torch's

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        """In place."""
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        aliases, options = self._alias(tensors), opts or dist.AllreduceOptions()
        for tensor in tensors:
            _refuse(tensor, _REDUCED)
        self._sum(aliases, options, lambda chosen: self._gloo.allreduce(aliases, chosen))
        return Done(tensors)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Work:
        """One after the other."""
        for tensor in tensors:
            options = dist.AllreduceOptions()
            if opts is not None:
                options.reduceOp = opts.reduceOp
            self.allreduce([tensor], options)
        return Done(tensors)

    def reduce(self, tensors: Any, opts: Any) -> Work:
        """To one process."""
        aliases = self._alias(tensors)
        for tensor in tensors:
            _refuse(tensor, _REDUCED)
        written = aliases if opts.rootRank == self._rank else []
        self._sum(written, opts, lambda chosen: self._gloo.reduce(aliases, chosen))
        return Done(tensors)

    def broadcast(self, tensors: Any, opts: Any) -> Work:
        """From one process."""
        self._gloo.broadcast(self._alias(tensors), opts).wait()
        return Done(tensors)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Lists of tensors."""
        self._gloo.allgather(self._alias(outputs), self._alias(inputs)).wait()
        return Done(outputs)

    def _allgather_base(self, output: Any, given: Any, opts: Any = None) -> Work:
        self._same_size(output, given)
        parts = list(self._alias(output).view(-1).chunk(self._size))
        self._gloo.allgather([parts], [self._alias(given).contiguous().view(-1)]).wait()
        return Done(output)

    all_gather_single = _allgather_base

    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """One after the other."""
        for output, given in zip(outputs, inputs, strict=True):
            self._allgather_base(output, given, opts)
        return Done(outputs)

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """One after the other."""
        for position, given in enumerate(inputs):
            self.allgather([[each[position] for each in outputs]], [given])
        return Done(outputs)

    def _reduce_scatter_base(self, output: Any, given: Any, opts: Any = None) -> Work:
        self._same_size(given, output)
        _refuse(given, _REDUCED)
        whole = self._alias(given).clone(memory_format=torch.contiguous_format)
        options = dist.AllreduceOptions()
        if opts is not None:
            options.reduceOp = opts.reduceOp
        self._sum([whole], options, lambda chosen: self._gloo.allreduce([whole], chosen))
        mine = whole.view(-1).chunk(self._size)[self._rank]
        self._alias(output).copy_(mine.view(output.shape))
        return Done(output)

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Lists of tensors."""
        for output, parts in zip(outputs, inputs, strict=True):
            flat = torch.cat([part.reshape(-1) for part in parts])
            self._reduce_scatter_base(output.view(-1), flat, opts)
        return Done(outputs)

    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """One after the other."""
        for output, given in zip(outputs, inputs, strict=True):
            self._reduce_scatter_base(output, given, opts)
        return Done(outputs)

    def _same_size(self, whole: torch.Tensor, part: torch.Tensor) -> None:
        if whole.numel() != part.numel() * self._size:
            raise ValueError(
                f"hccl: {whole.numel()} values are not {self._size} times {part.numel()}"
            )

    def alltoall_base(
        self, output: Any, given: Any, output_splits: Any, input_splits: Any, opts: Any = None
    ) -> Work:
        """One tensor, cut along its first dimension."""
        aliases = self._alias(output), self._alias(given).contiguous()
        self._gloo.alltoall_base(*aliases, list(output_splits), list(input_splits)).wait()
        return Done(output)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Lists of tensors, of any sizes; gloo has only the form of one tensor."""
        flat = torch.cat([self._alias(each).reshape(-1) for each in inputs])
        sizes = [each.numel() for each in outputs]
        made = torch.empty(sum(sizes), dtype=flat.dtype)
        self._gloo.alltoall_base(made, flat, sizes, [each.numel() for each in inputs]).wait()
        for output, part in zip(outputs, made.split(sizes), strict=True):
            self._alias(output).copy_(part.view(output.shape))
        return Done(outputs)

    def gather(self, outputs: Any, inputs: Any, opts: Any) -> Work:
        """To one process."""
        self._gloo.gather(self._alias(outputs), self._alias(inputs), opts).wait()
        return Done(outputs)

    def scatter(self, outputs: Any, inputs: Any, opts: Any) -> Work:
        """From one process."""
        self._gloo.scatter(self._alias(outputs), self._alias(inputs), opts).wait()
        return Done(outputs)

    def barrier(self, opts: Any = None) -> Work:
        """Wait for all."""
        self._gloo.barrier().wait()
        return Done()

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """Wait for all."""
        self._gloo.barrier().wait()

    def send(self, tensors: Any, to: int, tag: int = 0) -> Work:
        """Goes on while the caller does."""
        return self._gloo.send([each.contiguous() for each in self._alias(tensors)], to, tag)

    def recv(self, tensors: Any, source: int, tag: int = 0) -> Work:
        """Goes on while the caller does."""
        return self._gloo.recv(self._alias(tensors), source, tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        """From whoever sends first."""
        return self._gloo.recv_anysource(self._alias(tensors), tag)

    def _start_coalescing(self, device: Any = None) -> None:
        pass

    def _end_coalescing(self, device: Any = None) -> Work:
        return Done()
