"""Each operator beside plain torch, forward and backward."""

import math

import pytest
import torch
import torch_npu
from torch.nn import functional

TYPES = [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)]


def draw(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator).to(dtype).to("npu").requires_grad_()


def same(
    found: torch.Tensor, expected: torch.Tensor, leaves: list[torch.Tensor], within: float
) -> None:
    """Values and gradients of both, the expected one computed in float64."""
    assert found.shape == expected.shape
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(9)).to("npu")
    grads = [
        torch.autograd.grad((made.double() * weights).sum(), leaves, retain_graph=True)
        for made in (found, expected)
    ]
    for a, b in [(found, expected), *zip(*grads, strict=True)]:
        torch.testing.assert_close(a.double(), b.double(), rtol=within, atol=within)


@pytest.mark.parametrize(("dtype", "within"), TYPES)
def test_rms_norm(dtype: torch.dtype, within: float) -> None:
    x, gamma = draw(3, 5, 8, dtype=dtype), draw(8, dtype=dtype)
    found, rstd = torch_npu.npu_rms_norm(x, gamma, epsilon=1e-5)
    assert found.dtype == dtype
    assert rstd.shape == (3, 5, 1)
    expected = functional.rms_norm(x.double(), (8,), gamma.double(), 1e-5)
    same(found, expected, [x, gamma], within)
    torch.testing.assert_close(
        rstd.double(),
        (x.double().square().mean(-1, keepdim=True) + 1e-5).rsqrt(),
        check_dtype=False,
    )


@pytest.mark.parametrize(("dtype", "within"), TYPES)
def test_add_rms_norm(dtype: torch.dtype, within: float) -> None:
    a, b, gamma = draw(4, 8, dtype=dtype), draw(4, 8, dtype=dtype, seed=1), draw(8, dtype=dtype)
    found, _, total = torch_npu.npu_add_rms_norm(a, b, gamma)
    assert total.equal(a + b)
    same(found, functional.rms_norm((a + b).double(), (8,), gamma.double(), 1e-6), [a, b], within)


def test_gemma_rms_norm() -> None:
    x, gamma = draw(4, 8), draw(8)
    found, _ = torch_npu.npu_gemma_rms_norm(x, gamma)
    same(found, functional.rms_norm(x.double(), (8,), 1 + gamma.double(), 1e-6), [x, gamma], 1e-5)


@pytest.mark.parametrize(("dtype", "within"), TYPES)
@pytest.mark.parametrize("dim", [-1, 0])
def test_swiglu(dtype: torch.dtype, within: float, dim: int) -> None:
    x = draw(4, 6, dtype=dtype)
    a, b = x.double().chunk(2, dim)
    same(torch_npu.npu_swiglu(x, dim=dim), functional.silu(a) * b, [x], within)


def test_geglu_and_gelus() -> None:
    x = draw(4, 6)
    a, b = x.double().chunk(2, -1)
    same(torch_npu.npu_geglu(x)[0], a * functional.gelu(b, approximate="tanh"), [x], 1e-5)
    left = functional.gelu(a) * b
    same(torch_npu.npu_geglu(x, approximate=0, activate_left=True)[0], left, [x], 1e-5)
    same(torch_npu.npu_gelu(x), functional.gelu(x.double()), [x], 1e-5)
    fast = x.double() / (1 + torch.exp(-1.702 * x.double()))
    same(torch_npu.npu_fast_gelu(x), fast, [x], 1e-5)


@pytest.mark.parametrize("fixed", [False, True])
def test_scaled_masked_softmax(fixed: bool) -> None:
    x = draw(2, 3, 5, 5)
    mask = torch.ones(5, 5, dtype=torch.bool, device="npu").triu(1)
    given = torch.zeros(2, 1, 5, 5, dtype=torch.bool, device="npu") if fixed else mask
    found = torch_npu.npu_scaled_masked_softmax(x, given, 0.3, fixed)
    expected = torch.softmax((x.double() * 0.3).masked_fill(mask, -10000), -1)
    same(found, expected, [x], 1e-5)


def _angles(length: int, size: int, interleave: bool) -> tuple[torch.Tensor, torch.Tensor]:
    angle = torch.outer(torch.arange(length), 0.3 ** torch.arange(size // 2)).float()
    whole = angle.repeat_interleave(2, -1) if interleave else torch.cat((angle, angle), -1)
    return whole.cos().to("npu"), whole.sin().to("npu")


@pytest.mark.parametrize("interleave", [False, True])
def test_rotary(interleave: bool) -> None:
    """A pair of values, as a complex number, is turned by its angle."""
    x = draw(2, 7, 3, 8)
    cos, sin = (each[None, :, None] for each in _angles(7, 8, interleave))
    wide = x.double()
    if interleave:
        pairs = torch.stack((wide[..., ::2], wide[..., 1::2]), -1)
        turns = torch.stack((cos[..., ::2], sin[..., ::2]), -1).double()
    else:
        pairs = torch.stack(wide.chunk(2, -1), -1)
        turns = torch.stack((cos[..., :4], sin[..., :4]), -1).double()
    real = pairs[..., 0] * turns[..., 0] - pairs[..., 1] * turns[..., 1]
    imaginary = pairs[..., 0] * turns[..., 1] + pairs[..., 1] * turns[..., 0]
    made = torch.stack((real, imaginary), -1)
    expected = made.flatten(-2) if interleave else torch.cat((made[..., 0], made[..., 1]), -1)
    mode = "interleave" if interleave else "half"
    same(torch_npu.npu_rotary_mul(x, cos, sin, mode), expected, [x], 1e-5)
    found = torch_npu.npu_rotary_position_embedding(x, cos, sin, int(interleave))
    same(found, expected, [x], 1e-5)
    query, key = torch_npu.npu_apply_rotary_pos_emb(x, x[:, :, :1], cos, sin, rotary_mode=mode)
    same(query, expected, [x], 1e-5)
    same(key, expected[:, :, :1], [x], 1e-5)


# ---- attention

BATCH, LENGTH, HEADS, GROUPS, SIZE = 2, 6, 4, 2, 8


def _plain(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, seen: torch.Tensor | None
) -> torch.Tensor:
    """(B, N, S, D) in float64; `seen` is true where a query sees a key."""
    key, value = (each.double().repeat_interleave(HEADS // GROUPS, 1) for each in (key, value))
    scores = query.double() @ key.transpose(-1, -2) / math.sqrt(SIZE)
    if seen is not None:
        scores = scores.masked_fill(~seen, float("-inf"))
    return torch.softmax(scores, -1).nan_to_num(0) @ value


def _laid_out(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """From (B, N, S, D)."""
    return {
        "BNSD": lambda: tensor,
        "BSND": lambda: tensor.transpose(1, 2),
        "BSH": lambda: tensor.transpose(1, 2).flatten(2),
        "SBH": lambda: tensor.permute(2, 0, 1, 3).flatten(2),
    }[layout]()


def _qkv(dtype: torch.dtype = torch.float32, keys: int = LENGTH) -> list[torch.Tensor]:
    shapes = (BATCH, HEADS, LENGTH, SIZE), (BATCH, GROUPS, keys, SIZE), (BATCH, GROUPS, keys, SIZE)
    return [draw(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes)]


@pytest.mark.parametrize(("dtype", "within"), TYPES)
@pytest.mark.parametrize("layout", ["BNSD", "BSND", "BSH", "SBH"])
def test_attention_in_every_layout(layout: str, dtype: torch.dtype, within: float) -> None:
    qkv = _qkv(dtype)
    mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool, device="npu").triu(1)
    found, maxima, sums, *_ = torch_npu.npu_fusion_attention(
        *(_laid_out(each, layout) for each in qkv),
        HEADS,
        layout,
        atten_mask=mask,
        scale=1 / math.sqrt(SIZE),
    )
    assert maxima.shape == sums.shape == (BATCH, HEADS, LENGTH, 8)
    same(found, _laid_out(_plain(*qkv, ~mask), layout), qkv, within)


def _index(keys: int) -> tuple[torch.Tensor, torch.Tensor]:
    row = torch.arange(LENGTH, device="npu").unsqueeze(1)
    return row, torch.arange(keys, device="npu").unsqueeze(0)


@pytest.mark.parametrize("keys", [LENGTH, LENGTH + 3, LENGTH - 2])
@pytest.mark.parametrize("mode", [2, 3, 4])
def test_attention_with_a_compressed_mask(mode: int, keys: int) -> None:
    qkv = _qkv(keys=keys)
    compressed = torch.ones(2048, 2048, dtype=torch.bool, device="npu").triu(1)
    found = torch_npu.npu_fusion_attention(
        *qkv,
        HEADS,
        "BNSD",
        atten_mask=compressed,
        scale=1 / math.sqrt(SIZE),
        sparse_mode=mode,
        pre_tockens=2,
        next_tockens=1,
    )[0]
    row, column = _index(keys)
    ends = keys - LENGTH
    seen = {
        2: column <= row,
        3: column <= row + ends,
        4: (column <= row + ends + 1) & (column >= row + ends - 2),
    }[mode]
    same(found, _plain(*qkv, seen), qkv, 1e-5)


def test_attention_with_a_window_and_a_mask() -> None:
    qkv = _qkv()
    mask = torch.rand(BATCH, 1, LENGTH, LENGTH, generator=torch.Generator().manual_seed(1)) > 0.7
    mask = mask.to("npu")
    row, column = _index(LENGTH)
    window = (column <= row + 1) & (column >= row - 2)
    given = {"scale": 1 / math.sqrt(SIZE), "pre_tockens": 2, "next_tockens": 1}
    both = torch_npu.npu_fusion_attention(*qkv, HEADS, "BNSD", atten_mask=mask, **given)[0]
    same(both, _plain(*qkv, ~mask & window), qkv, 1e-5)
    whole = torch_npu.npu_fusion_attention(
        *qkv, HEADS, "BNSD", atten_mask=mask, sparse_mode=1, **given
    )[0]
    same(whole, _plain(*qkv, ~mask), qkv, 1e-5)
    alone = torch_npu.npu_fusion_attention(*qkv, HEADS, "BNSD", **given)[0]
    same(alone, _plain(*qkv, None), qkv, 1e-5)


@pytest.mark.parametrize("ends", [[3, 8, 12], [0, 3, 8, 12]])
def test_attention_of_packed_sequences(ends: list[int]) -> None:
    query, key, value = (
        draw(12, HEADS, SIZE),
        draw(12, GROUPS, SIZE, seed=1),
        draw(12, GROUPS, SIZE),
    )
    compressed = torch.ones(2048, 2048, dtype=torch.bool, device="npu").triu(1)
    found, maxima, *_ = torch_npu.npu_fusion_attention(
        *(query, key, value, HEADS, "TND"),
        atten_mask=compressed,
        scale=1 / math.sqrt(SIZE),
        sparse_mode=2,
        actual_seq_qlen=ends,
        actual_seq_kvlen=ends,
    )
    assert maxima.shape == (12, HEADS, 8)
    cuts = [slice(0, 3), slice(3, 8), slice(8, 12)]
    parts = []
    for cut in cuts:
        heads = [each[cut].transpose(0, 1).unsqueeze(0) for each in (query, key, value)]
        length = cut.stop - cut.start
        seen = torch.ones(length, length, dtype=torch.bool, device="npu").tril()
        parts.append(_plain(*heads, seen)[0].transpose(0, 1))
    same(found, torch.cat(parts), [query, key, value], 1e-5)


def test_attention_says_what_it_does_not_know() -> None:
    qkv = _qkv()
    with pytest.raises(NotImplementedError, match="sparse_mode 7"):
        torch_npu.npu_fusion_attention(*qkv, HEADS, "BNSD", sparse_mode=7)
    with pytest.raises(ValueError, match="2048 x 2048"):
        small = torch.ones(LENGTH, LENGTH, dtype=torch.bool, device="npu")
        torch_npu.npu_fusion_attention(*qkv, HEADS, "BNSD", atten_mask=small, sparse_mode=2)
    with pytest.raises(ValueError, match="input_layout BDSN"):
        torch_npu.npu_fusion_attention(*qkv, HEADS, "BDSN")
    with pytest.raises(NotImplementedError, match="prefix"):
        torch_npu.npu_fusion_attention(*qkv, HEADS, "BNSD", prefix=[1])


# ---- groups


@pytest.mark.parametrize("ends", [True, False])
def test_grouped_matmul_by_rows(ends: bool) -> None:
    rows, weights = draw(7, 4), draw(3, 4, 5)
    groups = torch.tensor([2, 2, 7] if ends else [2, 0, 5], device="npu")
    found = torch_npu.npu_grouped_matmul(
        [rows],
        [weights],
        group_list=groups,
        split_item=3,
        group_type=0,
        group_list_type=0 if ends else 1,
    )[0]
    expected = torch.cat(
        [rows[:2].double() @ weights[0].double(), rows[2:].double() @ weights[2].double()]
    )
    same(found, expected, [rows, weights], 1e-5)


def test_grouped_matmul_by_the_shared_dimension() -> None:
    a, b = draw(4, 7), draw(7, 5)
    found = torch_npu.npu_grouped_matmul([a], [b], group_list=[3, 7], split_item=3, group_type=2)[0]
    expected = torch.stack([a[:, :3].double() @ b[:3].double(), a[:, 3:].double() @ b[3:].double()])
    same(found, expected, [a, b], 1e-5)


def test_grouped_matmul_one_by_one_with_bias() -> None:
    left, right, bias = [draw(2, 3), draw(4, 3)], [draw(3, 5), draw(3, 6)], [draw(5), draw(6)]
    found = torch_npu.npu_grouped_matmul(left, right, bias=bias)
    for made, a, b, shift in zip(found, left, right, bias, strict=True):
        same(made, a.double() @ b.double() + shift.double(), [a, b, shift], 1e-5)
    with pytest.raises(NotImplementedError, match="antiquant_scale"):
        torch_npu.npu_grouped_matmul(left, right, antiquant_scale=bias)


def test_tokens_there_and_back() -> None:
    tokens = draw(5, 3)
    experts = torch.tensor([[2, 0], [1, 2], [0, 1], [2, 1], [0, 2]], device="npu")
    permuted, places = torch_npu.npu_moe_token_permute(tokens, experts)
    order = experts.reshape(-1).argsort(stable=True)
    same(permuted, tokens[order // 2].double(), [tokens], 1e-6)
    chances = (
        torch.rand(5, 2, generator=torch.Generator().manual_seed(0)).to("npu").requires_grad_()
    )
    back = torch_npu.npu_moe_token_unpermute(permuted, places, chances)
    same(back, tokens.double() * chances.double().sum(1, keepdim=True), [tokens, chances], 1e-5)


def test_a_weights_gradient_is_added_up() -> None:
    from torch.utils import cpp_extension

    extension = cpp_extension.load("npu_matmul_add_fp32", [], extra_ldflags=["-ltorch_npu"])
    grads, inputs = draw(6, 3, dtype=torch.bfloat16), draw(6, 4, dtype=torch.bfloat16)
    kept = torch.ones(3, 4, device="npu")
    extension.npu_matmul_add_fp32(grads, inputs, kept)
    torch.testing.assert_close(kept, 1 + (grads.float().t() @ inputs.float()).detach())


def test_formats() -> None:
    tensor = torch.ones(2, 2, device="npu")
    cast = torch_npu.npu_format_cast(tensor, 29)
    assert cast.equal(tensor)
    assert (torch_npu.get_npu_format(cast), torch_npu.get_npu_format(tensor)) == (29, 2)
    assert torch_npu.npu_format_cast_(tensor, cast * 3) is tensor
    assert tensor.tolist() == [[3, 3], [3, 3]]
    with pytest.raises(NotImplementedError, match="customize_dtype"):
        torch_npu.npu_format_cast(tensor, 29, customize_dtype=1)


class TestRefused:
    """What the documentation of torch_npu does not have."""

    def attention(self, *, heads: int = 2, key: torch.Tensor | None = None, **more: object) -> None:
        dtype = more.pop("dtype", torch.bfloat16)
        query = torch.ones(1, 2, 4, 8, dtype=dtype, device="npu")
        torch_npu.npu_fusion_attention(
            query, query if key is None else key, query, heads, "BNSD", **more
        )

    def test_attention(self) -> None:
        with pytest.raises(TypeError, match=r"query is torch.float64"):
            self.attention(dtype=torch.float64)
        with pytest.raises(
            TypeError, match=r"of one type must be: query is torch.bfloat16, key is"
        ):
            self.attention(key=torch.ones(1, 2, 4, 8, device="npu"))
        with pytest.raises(ValueError, match="head_num 5, query has 2 heads"):
            self.attention(heads=5)
        with pytest.raises(TypeError, match=r"atten_mask is torch.float32"):
            self.attention(atten_mask=torch.ones(4, 4, device="npu"))
        with pytest.raises(TypeError, match="actual_seq_qlen is a list of numbers"):
            self.attention(actual_seq_qlen=torch.tensor([4], device="npu"))

    def test_norms(self) -> None:
        x, weight = torch.ones(2, 8, dtype=torch.bfloat16, device="npu"), torch.ones(8).npu()
        with pytest.raises(TypeError, match=r"self is torch.bfloat16, gamma is torch.float32"):
            torch_npu.npu_rms_norm(x, weight)
