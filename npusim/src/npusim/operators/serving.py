"""Operators of a rollout engine: rotary positions, a paged key and value cache, attention over it.

A paged cache is (blocks, page, heads, size). Row i of a block table has the blocks of request i in
order; a context length says how many of their tokens count.
"""

from collections.abc import Iterator
from itertools import pairwise

import torch

from npusim.operators.table import operator


@operator
def npu_mrope(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    head_size: int,
    *,
    mrope_section: list[int] | None = None,
    rotary_mode: str = "half",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotary embedding of (tokens, heads * head_size) by a cache of (positions, cos | sin).

    With sections, `positions` is (3, tokens), and each of the three turns its section of a head.
    """
    sections = mrope_section or [0, 0, 0]
    cos, sin = cos_sin_cache[positions].float().chunk(2, dim=-1)
    if positions.dim() == 2:
        if sum(sections) != cos.shape[-1]:
            raise NotImplementedError(f"npu_mrope: sections {sections} for positions (3, tokens)")
        cos, sin = (
            torch.cat([part[i] for i, part in enumerate(each.split(sections, dim=-1))], dim=-1)
            for each in (cos, sin)
        )
    turned = (_turned(each, cos, sin, head_size, rotary_mode) for each in (query, key))
    return next(turned), next(turned)


def _turned(
    values: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, head_size: int, mode: str
) -> torch.Tensor:
    heads = values.float().view(values.shape[0], -1, head_size)
    size = 2 * cos.shape[-1]
    turning, rest = heads[..., :size], heads[..., size:]
    cos, sin = cos[:, None], sin[:, None]
    if mode == "half":
        first, second = turning.chunk(2, dim=-1)
    elif mode == "interleave":
        first, second = turning[..., ::2], turning[..., 1::2]
    else:
        raise NotImplementedError(f"npu_mrope: rotary_mode {mode}")
    pair = (first * cos - second * sin, second * cos + first * sin)
    turning = torch.cat(pair, dim=-1) if mode == "half" else torch.stack(pair, dim=-1).flatten(-2)
    return torch.cat([turning, rest], dim=-1).view(values.shape).to(values.dtype)


@operator
def npu_prefetch(
    input: torch.Tensor,
    dependency: torch.Tensor | None,
    max_size: int,
    offset: int = 0,
) -> None:
    """Nothing: there is no cache to bring a weight into."""


@operator
def npu_scatter_nd_update_(
    input: torch.Tensor,
    indices: torch.Tensor,
    updates: torch.Tensor,
) -> torch.Tensor:
    """Set the rows that (..., depth) indices name, in place."""
    input[tuple(indices.long().unbind(-1))] = updates
    return input


@operator
def _npu_reshape_and_cache(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_indices: torch.Tensor,
) -> None:
    """Put each token's key and value into its slot of a paged cache."""
    slots = slot_indices.long()
    for new, cache in ((key, key_cache), (value, value_cache)):
        cache.view(-1, *cache.shape[2:])[slots] = new


@operator
def _npu_flash_attention_qlens(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    mask: torch.Tensor,
    seq_len: torch.Tensor,
    context_lens: torch.Tensor,
    num_kv_heads: int,
    num_heads: int,
    scale_value: float,
    out: torch.Tensor,
) -> None:
    """Causal attention of each request's last `seq_len` tokens to all its `context_lens` tokens."""
    if not mask.triu(1).ne(0).equal(torch.ones_like(mask).triu(1).ne(0)):
        raise NotImplementedError("_npu_flash_attention_qlens: a mask that is not causal")
    lengths = seq_len.tolist()
    queries = query.view(query.shape[0], num_heads, -1).split(lengths)
    results = out.view(out.shape[0], num_heads, -1).split(lengths)
    pages = _paged(key_cache, value_cache, block_table, context_lens)
    for mine, (keys, values), result in zip(queries, pages, results, strict=True):
        result.copy_(_attention(mine, keys, values, scale_value, causal=True))


@operator
def _npu_paged_attention(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    num_kv_heads: int,
    num_heads: int,
    scale_value: float,
    block_table: torch.Tensor,
    context_lens: torch.Tensor,
    out: torch.Tensor,
    *,
    workspace: torch.Tensor | None = None,
) -> None:
    """Attention of one token of each request to all its tokens."""
    pages = _paged(key_cache, value_cache, block_table, context_lens)
    queries, results = (each.view(each.shape[0], 1, num_heads, -1) for each in (query, out))
    for mine, (keys, values), result in zip(queries, pages, results, strict=True):
        result.copy_(_attention(mine, keys, values, scale_value, causal=False))


@operator
def _npu_flash_attention_unpad(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    seq_len: torch.Tensor,
    scale_value: float,
    num_heads: int,
    num_kv_heads: int,
    out: torch.Tensor,
) -> None:
    """Attention within each sequence of (tokens, heads, size); lengths are on the host."""
    if seq_len.device.type != "cpu":
        raise RuntimeError("_npu_flash_attention_unpad: seq_len must be on the host")
    parts = zip(*(each.split(seq_len.tolist()) for each in (query, key, value, out)), strict=True)
    for mine, keys, values, result in parts:
        result.copy_(_attention(mine, keys, values, scale_value, causal=False))


@operator
def npu_fused_infer_attention_score(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    atten_mask: torch.Tensor | None = None,
    actual_seq_lengths: list[int] | None = None,
    actual_seq_lengths_kv: list[int] | None = None,
    block_table: torch.Tensor | None = None,
    num_heads: int = 1,
    scale: float = 1.0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
    block_size: int = 0,
    workspace: torch.Tensor | None = None,
    out: list[torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of one token of each request, (requests, 1, heads * size), to its paged tokens.

    TND: within each sequence of (tokens, heads, size), whose ends are the lengths.
    """
    if sparse_mode or atten_mask is not None:
        raise NotImplementedError("npu_fused_infer_attention_score: a mask, or sparse_mode")
    made = [torch.zeros_like(query), query.new_zeros(1)] if out is None else out
    groups = num_key_value_heads or num_heads
    if input_layout == "TND" and block_table is None:
        _check_heads((query.shape[1], key.shape[1]), (num_heads, groups))
        ends = (actual_seq_lengths, actual_seq_lengths_kv)
        _by_sequence(query, key, value, ends, scale, made[0])
        return made[0], made[1]
    if input_layout != "BSH" or block_table is None or query.shape[1] != 1:
        raise NotImplementedError(f"npu_fused_infer_attention_score: {input_layout}, not paged")
    if num_heads % groups or key.shape[-1] % groups or query.shape[-1] % num_heads:
        raise ValueError(f"npu_fused_infer_attention_score: {num_heads} heads of {groups}")
    if query.shape[-1] // num_heads != key.shape[-1] // groups:
        raise ValueError("npu_fused_infer_attention_score: heads of query and key differ in size")
    if block_size != key.shape[1] or block_size % 16:
        raise ValueError(
            f"npu_fused_infer_attention_score: block_size {block_size}, pages of "
            f"{key.shape[1]}; it is a multiple of 16"
        )
    if actual_seq_lengths_kv is None or len(actual_seq_lengths_kv) != query.shape[0]:
        raise ValueError("npu_fused_infer_attention_score: a length for each request is needed")
    pages = (each.unflatten(-1, (groups, -1)) for each in (key, value))
    lengths = torch.tensor(actual_seq_lengths_kv)
    found = zip(query, _paged(*pages, block_table, lengths), made[0], strict=True)
    for mine, (keys, values), result in found:
        if not keys.shape[0]:
            result.zero_()
            continue
        heads = mine.view(1, num_heads, -1)
        result.copy_(_attention(heads, keys, values, scale, causal=False).view_as(result))
    return made[0], made[1]


npu_fused_infer_attention_score.out = npu_fused_infer_attention_score  # type: ignore[attr-defined]


def _check_heads(found: tuple[int, int], said: tuple[int, int]) -> None:
    if found != said:
        raise ValueError(
            f"npu_fused_infer_attention_score: {said[0]} heads of {said[1]} are said, query and "
            f"key have {found[0]} and {found[1]}"
        )


def _by_sequence(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    ends: tuple[list[int] | None, list[int] | None],
    scale: float,
    out: torch.Tensor,
) -> None:
    lengths = []
    for found, tensor in zip(ends, (query, key), strict=True):
        if not found or found[-1] != tensor.shape[0] or found != sorted(found):
            raise ValueError(
                f"npu_fused_infer_attention_score: {found} are not ends of sequences in "
                f"{tensor.shape[0]} tokens"
            )
        lengths.append([end - start for start, end in pairwise([0, *found])])
    parts = (query.split(lengths[0]), key.split(lengths[1]), value.split(lengths[1]))
    for mine, keys, values, result in zip(*parts, out.split(lengths[0]), strict=True):
        result.copy_(_attention(mine, keys, values, scale, causal=False))


@operator
def npu_dynamic_quant(
    input: torch.Tensor,
    *,
    smooth_scales: torch.Tensor | None = None,
    group_index: torch.Tensor | None = None,
    dst_type: torch.dtype | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Each token in int8, and the scale that brings it back."""
    others = (smooth_scales, group_index)
    if any(each is not None for each in others) or dst_type not in (None, torch.int8):
        raise NotImplementedError("npu_dynamic_quant: anything but int8 without smooth scales")
    scale = input.float().abs().amax(-1) / 127
    return (input.float() / scale.unsqueeze(-1)).round().to(torch.int8), scale


@operator
def _npu_fused_infer_attention_score_get_max_workspace(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **more: object
) -> torch.Tensor:
    """Memory that the operator works in, for the longest lengths: none of it is needed here."""
    return query.new_empty(0)


def _paged(
    keys: torch.Tensor, values: torch.Tensor, blocks: torch.Tensor, lengths: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    page = keys.shape[1]
    for whole, length in zip(blocks.long(), lengths.tolist(), strict=True):
        row = whole[: -(-length // page)]  # what is behind may be anything
        yield keys[row].flatten(0, 1)[:length], values[row].flatten(0, 1)[:length]


def _attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, *, causal: bool
) -> torch.Tensor:
    """Queries (tokens, heads, size) at the end of keys (tokens, kv heads, size), in float32."""
    group = query.shape[1] // key.shape[1]
    keys, values = (each.float().repeat_interleave(group, dim=1) for each in (key, value))
    scores = torch.einsum("qhd,khd->hqk", query.float(), keys) * scale
    if causal:
        allowed = torch.ones(scores.shape[1:], dtype=torch.bool, device=scores.device)
        scores = scores.masked_fill(~allowed.tril(key.shape[0] - query.shape[0]), -torch.inf)
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), values).to(query.dtype)
