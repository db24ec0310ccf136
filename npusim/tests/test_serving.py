"""Operators of a rollout engine against plain torch, and their signatures against torch_npu's."""

import functools
import inspect

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("npusim", reason="PYTHONPATH=npusim/src")

import torch_npu
from torch.nn.functional import scaled_dot_product_attention

# As torch_npu 2.8.0 registers them
SCHEMAS = """
npu_mrope(Tensor positions, Tensor query, Tensor key, Tensor cos_sin_cache, int head_size, *, int[]? mrope_section=None, str? rotary_mode='half') -> (Tensor, Tensor)
npu_prefetch(Tensor input, Tensor? dependency, int max_size, int offset=0) -> ()
npu_scatter_nd_update_(Tensor(a!) input, Tensor indices, Tensor updates) -> Tensor(a!)
_npu_reshape_and_cache(Tensor key, Tensor value, Tensor(a!) key_cache, Tensor(b!) value_cache, Tensor slot_indices) -> ()
_npu_flash_attention_qlens(Tensor query, Tensor key_cache, Tensor value_cache, Tensor block_table, Tensor mask, Tensor seq_len, Tensor context_lens, int num_kv_heads, int num_heads, float scale_value, Tensor(a!) out) -> ()
_npu_flash_attention_unpad(Tensor query, Tensor key, Tensor value, Tensor seq_len, float scale_value, int num_heads, int num_kv_heads, Tensor(a!) out) -> ()
_npu_paged_attention(Tensor query, Tensor key_cache, Tensor value_cache, int num_kv_heads, int num_heads, float scale_value, Tensor block_table, Tensor context_lens, Tensor(a!) out, *, Tensor? workspace=None) -> ()
""".strip().splitlines()  # noqa: E501

HEADS, GROUPS, SIZE, PAGE = 4, 2, 8, 16
LENGTHS, NEW = [22, 3], [4, 3]  # tokens of each request, and how many of them are queries


@pytest.mark.parametrize("text", SCHEMAS, ids=lambda text: text.partition("(")[0])
def test_signature(text: str) -> None:
    expected = [
        (each.name, each.kwarg_only, each.default_value if each.has_default_value() else None)
        for each in torch._C.parse_schema(text).arguments
    ]
    found = inspect.signature(getattr(torch_npu, text.partition("(")[0])).parameters.values()
    assert expected == [
        (
            each.name,
            each.kind is each.KEYWORD_ONLY,
            None if each.default is each.empty else each.default,
        )
        for each in found
    ]


close = functools.partial(torch.testing.assert_close, rtol=2e-3, atol=1e-3)  # half's rounding


def rand(*shape: int) -> "torch.Tensor":
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator).half().npu()


@pytest.fixture
def cache() -> "tuple[torch.Tensor, torch.Tensor, torch.Tensor]":
    """Keys and values of two requests in blocks that are out of order, and the block table."""
    blocks = torch.tensor([[3, 1], [2, 0]])
    slots = torch.cat(
        [
            (row[:, None] * PAGE + torch.arange(PAGE)).flatten()[:length]
            for row, length in zip(blocks, LENGTHS, strict=True)
        ]
    )
    keys, values = (torch.zeros(4, PAGE, GROUPS, SIZE).half().npu() for _ in range(2))
    tokens = (sum(LENGTHS), GROUPS, SIZE)
    torch_npu._npu_reshape_and_cache(rand(*tokens), -rand(*tokens), keys, values, slots.int().npu())
    return keys, values, blocks.int().npu()


def expected(query: "torch.Tensor", *, causal: bool) -> list["torch.Tensor"]:
    tokens = rand(sum(LENGTHS), GROUPS, SIZE).cpu().split(LENGTHS)
    queries = query.cpu().view(-1, HEADS, SIZE).split([NEW, [1, 1]][not causal])
    results = []
    for mine, keys in zip(queries, tokens, strict=True):
        mask = torch.ones(len(mine), len(keys), dtype=torch.bool)
        mask = mask.tril(len(keys) - len(mine)) if causal else mask
        parts = (each.transpose(0, 1)[None] for each in (mine, keys, -keys))
        result = scaled_dot_product_attention(*parts, attn_mask=mask, enable_gqa=True)
        results.append(result[0].transpose(0, 1))
    return results


def test_extend(cache: "tuple[torch.Tensor, torch.Tensor, torch.Tensor]") -> None:
    keys, values, blocks = cache
    query = rand(sum(NEW), HEADS * SIZE)
    out = torch.empty_like(query)
    given = {
        "query": query,
        "key_cache": keys,
        "value_cache": values,
        "block_table": blocks,
        "seq_len": torch.tensor(NEW, dtype=torch.int32),
        "context_lens": torch.tensor(LENGTHS, dtype=torch.int32),
        "num_kv_heads": GROUPS,
        "num_heads": HEADS,
        "scale_value": SIZE**-0.5,
        "out": out,
    }
    torch_npu._npu_flash_attention_qlens(mask=torch.ones(8, 8).triu(1).npu(), **given)
    close(out.cpu().view(-1, HEADS, SIZE), torch.cat(expected(query, causal=True)))
    with pytest.raises(NotImplementedError, match="causal"):
        torch_npu._npu_flash_attention_qlens(mask=torch.zeros(8, 8).npu(), **given)


def test_decode(cache: "tuple[torch.Tensor, torch.Tensor, torch.Tensor]") -> None:
    keys, values, blocks = cache
    query = rand(2, HEADS, SIZE)
    out = torch.empty_like(query)
    torch_npu._npu_paged_attention(
        query, keys, values, GROUPS, HEADS, SIZE**-0.5, blocks, torch.tensor(LENGTHS).int(), out
    )
    close(out.cpu(), torch.cat(expected(query, causal=False)))


def test_sequences() -> None:
    query, key, value = (rand(sum(LENGTHS), heads, SIZE) for heads in (HEADS, GROUPS, GROUPS))
    out = torch.empty_like(query)
    lengths = torch.tensor(LENGTHS, dtype=torch.int32)
    torch_npu._npu_flash_attention_unpad(query, key, value, lengths, SIZE**-0.5, HEADS, GROUPS, out)
    for parts in zip(
        *(each.cpu().split(LENGTHS) for each in (query, key, value, out)), strict=True
    ):
        *inputs, result = (each.transpose(0, 1)[None] for each in parts)
        close(result, scaled_dot_product_attention(*inputs, enable_gqa=True))
    with pytest.raises(RuntimeError, match="on the host"):
        torch_npu._npu_flash_attention_unpad(
            query, key, value, lengths.npu(), SIZE**-0.5, HEADS, GROUPS, out
        )


@pytest.mark.parametrize("mode", ["half", "interleave"])
@pytest.mark.parametrize("sections", [None, [1, 1, 1]])
def test_rotary(mode: str, sections: list[int] | None) -> None:
    size, turning, tokens = 8, 6, 5
    angles = torch.outer(torch.arange(16.0), 10.0 ** -torch.arange(turning // 2))
    positions = torch.arange(3 * tokens).view(3, tokens) if sections else torch.arange(tokens) + 2
    query, key = rand(tokens, 2 * size).float(), rand(tokens, size).float()
    results = torch_npu.npu_mrope(
        positions.npu(),
        query,
        key,
        torch.cat([angles.cos(), angles.sin()], dim=-1).npu(),
        size,
        mrope_section=sections,
        rotary_mode=mode,
    )
    for given, result in zip((query, key), results, strict=True):
        for token in range(tokens):
            at = [positions[i, token] for i in range(3)] if sections else [positions[token]] * 3
            heads = zip(
                given.cpu()[token].split(size), result.cpu()[token].split(size), strict=True
            )
            for head, turned in heads:
                for i in range(turning // 2):
                    pair = (i, i + turning // 2) if mode == "half" else (2 * i, 2 * i + 1)
                    turn = torch.polar(torch.tensor(1.0), angles[at[i], i])
                    number = torch.complex(head[pair[0]], head[pair[1]]) * turn
                    found = torch.complex(turned[pair[0]], turned[pair[1]])
                    torch.testing.assert_close(found, number)
                torch.testing.assert_close(turned[turning:], head[turning:])


def test_scatter() -> None:
    rows = torch.zeros(4, 1, 2).half().npu()
    torch_npu.npu_scatter_nd_update_(rows, torch.tensor([[2], [0]]).npu(), rand(2, 1, 2))
    torch.testing.assert_close(rows.cpu()[[2, 0]], rand(2, 1, 2).cpu())
    assert not rows.cpu()[[1, 3]].any()


Cache = "tuple[torch.Tensor, torch.Tensor, torch.Tensor]"


def fused(query: "torch.Tensor", cache: Cache, lengths: list[int], **more: object) -> None:
    keys, values, blocks = cache
    torch_npu.npu_fused_infer_attention_score.out(
        query.view(2, 1, -1),
        keys.flatten(2),
        values.flatten(2),
        block_table=blocks,
        num_heads=HEADS,
        scale=SIZE**-0.5,
        num_key_value_heads=GROUPS,
        actual_seq_lengths_kv=lengths,
        **{"block_size": PAGE, **more},
    )


def test_fused_attention_within_sequences() -> None:
    """Ends of sequences, where the other operators have lengths."""
    query, key = rand(sum(NEW), HEADS, SIZE), rand(sum(NEW), GROUPS, SIZE)
    ends = torch.tensor(NEW).cumsum(0).tolist()
    said = {"num_heads": HEADS, "num_key_value_heads": GROUPS, "scale": SIZE**-0.5}

    def asked(lengths: list[int], **more: object) -> "torch.Tensor":
        return torch_npu.npu_fused_infer_attention_score(
            query,
            key,
            -key,
            actual_seq_lengths=lengths,
            actual_seq_lengths_kv=lengths,
            input_layout="TND",
            **said | more,
        )[0]

    parts = zip(*(each.cpu().split(NEW) for each in (query, key, -key, asked(ends))), strict=True)
    for part in parts:
        *inputs, result = (each.transpose(0, 1)[None] for each in part)
        close(result, scaled_dot_product_attention(*inputs, enable_gqa=True))
    with pytest.raises(ValueError, match="not ends of sequences in 7 tokens"):
        asked(NEW)
    with pytest.raises(ValueError, match="2 heads of 2 are said, query and key have 4 and 2"):
        asked(ends, num_heads=GROUPS)
    with pytest.raises(NotImplementedError, match="sparse_mode"):
        asked(ends, sparse_mode=3)


def test_dynamic_quant() -> None:
    values = rand(5, 16)
    made, scale = torch_npu.npu_dynamic_quant(values, dst_type=torch.int8)
    assert made.dtype == torch.int8
    assert made.cpu().abs().amax(-1).eq(127).all()
    worst = (made * scale.unsqueeze(-1) - values.float()).cpu().abs().amax(-1)
    assert worst.le(scale.cpu() / 2 + 1e-6).all()


def test_a_captured_decode_step(cache: Cache) -> None:
    """Memory of the capture, lengths of the update; without an update it does not end."""
    query, out = torch.zeros(2, HEADS, SIZE).half().npu(), rand(2, 1, HEADS * SIZE)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, auto_dispatch_capture=True):
        turned = query * 2
        fused(turned, cache, [0, 0], out=[out, out.new_zeros(1)])
    assert not out.any()
    query.copy_(rand(2, HEADS, SIZE) / 2)
    graph.update(cpu_update_input=[{"actual_seq_lengths_kv": LENGTHS}])
    graph.replay()
    wanted = torch.cat(expected(rand(2, HEADS, SIZE), causal=False))
    close(out.cpu().view(2, HEADS, SIZE), wanted)
    torch.testing.assert_close(turned, rand(2, HEADS, SIZE))
    with pytest.raises(RuntimeError, match=r"nothing to update in .'context_lens'"):
        graph.update(cpu_update_input=[{"context_lens": LENGTHS}])


def test_a_replay_waits_for_its_update(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npusim.graphs.PATIENCE", 0.05)
    query = rand(2, HEADS, SIZE)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, auto_dispatch_capture=True):
        fused(query, cache, LENGTHS, out=[torch.empty_like(query), query.new_zeros(1)])
    with pytest.raises(RuntimeError, match="without an update"):
        graph.replay()


def test_the_host_reads_nothing_in_a_capture() -> None:
    with (
        pytest.raises(RuntimeError, match="host reads from the device"),
        torch.npu.graph(torch.npu.NPUGraph()),
    ):
        torch.ones(2).npu().sum().item()
    assert not torch.npu.is_current_stream_capturing()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"block_size": 8}, "block_size 8"),
        ({"num_key_value_heads": 3}, "4 heads of 3"),
        ({"actual_seq_lengths_kv": [1]}, "a length for each request"),
        ({"actual_seq_lengths_kv": torch.ones(2)}, "a list of numbers"),
    ],
)
def test_what_fused_attention_refuses(cache: Cache, change: dict[str, object], what: str) -> None:
    keys, values, blocks = cache
    given = {
        "block_table": blocks,
        "block_size": PAGE,
        "num_heads": HEADS,
        "num_key_value_heads": GROUPS,
        "actual_seq_lengths_kv": LENGTHS,
    }
    with pytest.raises((TypeError, ValueError), match=what):
        torch_npu.npu_fused_infer_attention_score(
            rand(2, 1, HEADS * SIZE), keys.flatten(2), values.flatten(2), **(given | change)
        )
