"""One of two processes that try every collective; test_hccl.py starts them."""

import sys

import torch
import torch.distributed as dist
import torch_npu.contrib.transfer_to_npu  # noqa: F401 - "cuda" and "nccl" below are npu and hccl


def main(rank: int, port: str) -> None:
    dist.init_process_group("nccl", rank=rank, world_size=2, init_method=f"tcp://127.0.0.1:{port}")
    torch.cuda.set_device(rank)
    assert dist.get_backend() == "hccl"

    def full(*shape: int, value: float = 1.0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        tensor = torch.full(shape, float(value), device="cuda", dtype=dtype)
        assert tensor.device == torch.device("npu", rank)
        return tensor

    total = full(4, value=rank + 1)
    dist.all_reduce(total)
    assert total.tolist() == [3] * 4
    mean = full(4, value=rank + 1, dtype=torch.bfloat16)
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    assert mean.tolist() == [1.5] * 4
    most = full(2, value=rank)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    assert most.tolist() == [1, 1]

    every = full(4)
    dist.all_gather_into_tensor(every, full(2, value=rank))
    assert every.tolist() == [0, 0, 1, 1]
    parts = [full(2), full(2)]
    dist.all_gather(parts, full(2, value=rank))
    assert [part.tolist() for part in parts] == [[0, 0], [1, 1]]
    part = full(2)
    dist.reduce_scatter_tensor(part, torch.arange(4.0, device="cuda"))
    assert part.tolist() == [4 * rank, 4 * rank + 2]
    dist.reduce_scatter(part, [full(2, value=1), full(2, value=2)])
    assert part.tolist() == [2 * (rank + 1)] * 2

    sent = full(3, value=7 * rank)
    dist.broadcast(sent, 1)
    assert sent.tolist() == [7] * 3
    dist.reduce(sent, 0)
    assert sent[0] == (14 if rank == 0 else 7) or rank == 1
    outs = [full(1), full(2)]
    dist.all_to_all(outs, [full(1 + rank, value=each + 10 * rank) for each in range(2)])
    assert [out.tolist() for out in outs] == [[rank], [10 + rank] * 2]
    mixed = full(2)
    dist.all_to_all_single(mixed, torch.tensor([10.0 * rank, 10.0 * rank + 1], device="cuda"))
    assert mixed.tolist() == [rank, 10 + rank]
    gathered = [full(1), full(1)] if rank == 0 else None
    dist.gather(full(1, value=rank), gathered, 0)
    assert gathered is None or [each.item() for each in gathered] == [0, 1]
    dist.scatter(part[:1], [full(1, value=3), full(1, value=4)] if rank == 0 else None, 0)
    assert part[0] == 3 + rank

    def refused(what: str, tensor: torch.Tensor, **more: object) -> None:
        try:
            dist.all_reduce(tensor, **more)
        except RuntimeError as error:
            assert what in str(error), error
        else:
            raise AssertionError(f"{what}: not refused")

    for dtype in (torch.float64, torch.bool, torch.uint8):
        refused("Unsupported data type", full(2, dtype=dtype))
    refused("Cannot use the reduce operation", full(2, dtype=torch.int32), op=dist.ReduceOp.BAND)
    refused("must be contiguous", full(4, 2).t())
    turned = full(2, dtype=torch.complex64) * (1 + 2j)
    dist.all_reduce(turned)  # as torch does on every device: HCCL sees pairs of float32
    assert torch.view_as_real(turned).tolist() == [[2, 4]] * 2
    try:
        dist.group.WORLD.allreduce([turned])
    except RuntimeError as error:
        assert "Unsupported data type torch.complex64" in str(error)
    else:
        raise AssertionError("complex numbers went through hccl")
    marks = [full(1, dtype=torch.bool), full(1, dtype=torch.bool)]
    dist.all_gather(marks, full(1, value=rank, dtype=torch.bool))  # moved, not added up: any type
    assert [bool(each) for each in marks] == [False, True]

    # a ring: both send before they receive
    got = full(2)
    work = dist.isend(full(2, value=rank), 1 - rank)
    dist.irecv(got, 1 - rank).wait()
    work.wait()
    assert got[0] == 1 - rank
    both = [
        dist.P2POp(dist.isend, full(2, value=5 + rank), 1 - rank),
        dist.P2POp(dist.irecv, got, 1 - rank),
    ]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    assert got[0] == 6 - rank

    objects = [None, None]
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 0}, {"rank": 1}]

    try:
        dist.all_reduce(torch.ones(1))
    except RuntimeError as error:
        assert "No backend type associated with device type cpu" in str(error)
    else:
        raise AssertionError("a tensor of the CPU went through hccl")
    either = dist.new_group([0, 1], backend="cpu:gloo,npu:hccl")
    for tensor in (torch.ones(1), full(1)):
        dist.all_reduce(tensor, group=either)
        assert tensor.item() == 2

    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1).cuda())
    model(full(2, value=rank)).sum().backward()
    assert model.module.weight.grad.tolist() == [[0.5, 0.5]]
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
