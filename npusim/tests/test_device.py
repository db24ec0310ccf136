"""The device behaves as torch's others do, and refuses what they refuse."""

import io

import pytest
import torch
from torch.nn import functional

import npusim


def test_a_tensor_moves_there_and_back() -> None:
    here = torch.arange(12.0).reshape(3, 4)
    there = here.to("npu")
    assert there.device == torch.device("npu:0")
    assert there.is_npu
    assert there.t().contiguous().cpu().equal(here.t())


def test_views_share_memory() -> None:
    tensor = torch.zeros(3, 4, device="npu")
    tensor[1].add_(5)
    tensor.t().reshape(4, 3)[2].mul_(2)
    tensor.view(-1)[0] = 7
    tensor.unfold(0, 2, 1)[0, 3, 1] = 9
    assert tensor.tolist() == [[7, 0, 0, 0], [5, 5, 10, 9], [0, 0, 0, 0]]


def test_out_and_resizing() -> None:
    out = torch.empty(0, device="npu")
    torch.add(torch.ones(5, device="npu"), 1, out=out)
    assert out.tolist() == [2] * 5
    out.untyped_storage().resize_(0)
    assert out.untyped_storage().nbytes() == 0


def test_gradients_equal_the_cpus() -> None:
    def loss(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        hidden = functional.layer_norm(functional.gelu(x @ w), (8,))
        scores = functional.scaled_dot_product_attention(hidden, hidden, hidden, is_causal=True)
        image = functional.conv2d(scores.unsqueeze(1), w[:3, :3].reshape(1, 1, 3, 3))
        return functional.cross_entropy(image.flatten(1), torch.tensor([1, 2], device=x.device))

    torch.manual_seed(0)
    given = torch.randn(2, 6, 8), torch.randn(8, 8)
    made = []
    for device in ("cpu", "npu"):
        inputs = [each.to(device, copy=True).requires_grad_() for each in given]
        value = loss(*inputs)
        value.backward()
        made.append([value.item(), *(each.grad.cpu() for each in inputs)])
    # The CPU's fused attention goes backward in an order of its own.
    assert made[0][0] == pytest.approx(made[1][0], rel=1e-6)
    for a, b in zip(made[0][1:], made[1][1:], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_devices_do_not_mix() -> None:
    there = torch.ones(3, device="npu")
    with pytest.raises(RuntimeError, match="same device"):
        there + torch.ones(3)
    with pytest.raises(RuntimeError, match="index_select: expected all tensors"):
        there.index_select(0, torch.tensor([1]))
    with pytest.raises(RuntimeError, match="same device"):
        there + torch.ones(3, device="npu:1")
    assert (there + torch.tensor(1.0)).tolist() == [2, 2, 2]
    assert there[torch.tensor([0, 2])].tolist() == [1, 1]


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(RuntimeError, match="there are 8 devices"):
        torch.ones(1, device="npu:8")


def test_random_numbers_are_the_cpus_for_the_same_seed() -> None:
    torch.manual_seed(3)
    there = torch.rand(4, device="npu")
    state = torch.npu.get_rng_state()
    more = functional.dropout(torch.ones(50, device="npu"), 0.5)
    torch.manual_seed(3)
    assert there.cpu().equal(torch.rand(4))
    torch.npu.set_rng_state(state)
    assert more.equal(functional.dropout(torch.ones(50, device="npu"), 0.5))


def test_the_cpus_random_numbers_stay_as_they_were() -> None:
    torch.manual_seed(3)
    first = torch.rand(2)
    torch.manual_seed(3)
    torch.rand(5, device="npu")
    assert torch.rand(2).equal(first)


def test_a_module_keeps_its_parameters() -> None:
    module = torch.nn.Linear(2, 2)
    weight = module.weight
    weight.tensor_model_parallel = True
    module.to("npu")
    assert module.weight is weight
    assert weight.device.type == "npu"
    assert weight.tensor_model_parallel


def test_memory_is_counted() -> None:
    before = torch.npu.memory_allocated()
    tensor = torch.empty(1000, device="npu")
    assert torch.npu.memory_allocated() - before == 4000
    torch.npu.reset_peak_memory_stats()
    del tensor
    assert torch.npu.memory_allocated() == before
    assert torch.npu.max_memory_allocated() == before + 4000


def test_host_is_the_same_memory() -> None:
    tensor = torch.zeros(2, device="npu")
    npusim.host(tensor)[0] = 3
    assert tensor.tolist() == [3, 0]


def test_autocast_and_types() -> None:
    tensor = torch.ones(2, 2, device="npu")
    with torch.autocast("npu", torch.bfloat16):
        assert (tensor @ tensor).dtype == torch.bfloat16
    assert tensor.type() == "torch.npu.FloatTensor"
    assert isinstance(tensor, torch.npu.FloatTensor)
    assert not isinstance(tensor.cpu(), torch.npu.FloatTensor)


def test_saved_and_loaded() -> None:
    buffer = io.BytesIO()
    torch.save({"a": torch.ones(2, device="npu:1")}, buffer)
    buffer.seek(0)
    assert torch.load(buffer)["a"].device == torch.device("npu:1")
    buffer.seek(0)
    assert torch.load(buffer, map_location="cpu")["a"].device.type == "cpu"


def test_a_stream_is_entered_again() -> None:
    """As SGLang's scheduler does at each batch."""
    other = torch.npu.Stream()
    before, context = torch.npu.current_stream(), torch.npu.stream(other)
    for _ in range(2):
        with context:
            assert torch.npu.current_stream() == other
        assert torch.npu.current_stream() == before


def test_streams_and_events() -> None:
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream
    assert torch.npu.current_stream() == torch.npu.default_stream()
    first, second = (torch.npu.Event(enable_timing=True) for _ in range(2))
    with pytest.raises(RuntimeError, match="must be recorded"):
        first.elapsed_time(second)
    first.record()
    second.record()
    assert first.elapsed_time(second) >= 0


class TestCopiesThatDoNotBlock:
    """To the host: garbage until the stream, or an event after the copy, was waited for."""

    def begin(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.full((3,), 2, dtype=dtype, device="npu").to("cpu", non_blocking=True)

    @pytest.mark.parametrize(
        "dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
    )
    def test_garbage_first(self, dtype: torch.dtype) -> None:
        found = self.begin(dtype)
        wanted = torch.full((3,), 2, dtype=dtype)
        assert not found.eq(wanted).any()
        torch.npu.current_stream().synchronize()
        assert found.equal(wanted)

    def test_an_event_after_it(self) -> None:
        early, event = torch.npu.Event(), torch.npu.Event()
        early.record()
        found = self.begin()
        event.record()
        early.synchronize()
        assert found.isnan().all()
        event.synchronize()
        assert found.tolist() == [2, 2, 2]

    def test_another_stream_that_waits(self) -> None:
        found, other = self.begin(), torch.npu.Stream()
        other.synchronize()
        assert found.isnan().all()
        other.wait_stream(torch.npu.current_stream())
        other.synchronize()
        assert found.tolist() == [2, 2, 2]

    def test_what_blocks_waits(self) -> None:
        for wait in (torch.npu.synchronize, lambda: torch.ones(1, device="npu").item()):
            found = self.begin()
            wait()
            assert found.tolist() == [2, 2, 2]

    def test_work_of_the_stream_sees_its_data(self) -> None:
        found = self.begin()
        back = found.to("npu", non_blocking=True)
        assert found.isnan().all()
        assert back.tolist() == [2, 2, 2]

    def test_to_the_device_it_is_done(self) -> None:
        there = torch.ones(3).pin_memory().to("npu", non_blocking=True)
        assert (there * 2).tolist() == [2, 2, 2]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int32, torch.float8_e4m3fn])
def test_products_of_matrices_have_their_types(dtype: torch.dtype) -> None:
    matrix = torch.ones(2, 2).to(dtype).npu()
    with pytest.raises(RuntimeError, match="not implemented for"):
        matrix @ matrix


def test_unknown_names_are_said() -> None:
    import torch_npu

    with pytest.raises(AttributeError, match="npu_nonsense"):
        torch_npu.npu_nonsense(torch.ones(1))
    with pytest.raises(AttributeError, match="npu_nonsense"):
        torch.ops.npu.npu_nonsense(torch.ones(1))
