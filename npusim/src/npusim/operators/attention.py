"""Fused attention for training.

Every layout is brought to (batch, heads, length, size), computed in float32, and brought back; TND
is one such computation per sequence.
"""

from collections.abc import Sequence

import torch
from torch.nn import functional

from npusim.operators.table import operator

_EVERYTHING = 2147483647


@operator
def npu_fusion_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    head_num: int,
    input_layout: str,
    pse: torch.Tensor | None = None,
    padding_mask: torch.Tensor | None = None,
    atten_mask: torch.Tensor | None = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = _EVERYTHING,
    next_tockens: int = _EVERYTHING,
    inner_precise: int = 0,
    prefix: Sequence[int] | None = None,
    actual_seq_qlen: Sequence[int] | None = None,
    actual_seq_kvlen: Sequence[int] | None = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    softmax_layout: str = "",
    sink: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, int, int, int]:
    """(output, softmax's maxima, softmax's sums, empty, seed, offset, length of the dropout mask).

    Maxima and sums are float32 of (batch, heads, length, 8), or (tokens, heads, 8) for TND: eight
    times the same value, as on the device. A mask is true where nothing is seen; a row that sees
    nothing gives zeros. sparse_mode 0, 1, 2, 3, 4 are known; pre_tockens and next_tockens count in
    0 (with a mask) and 4.
    """
    for name, given in (("padding_mask", padding_mask), ("prefix", prefix), ("sink", sink)):
        if given is not None:
            raise NotImplementedError(f"npu_fusion_attention: {name}")
    _check_heads(query, key, head_num, input_layout)
    if softmax_layout not in ("", input_layout):
        raise NotImplementedError(f"npu_fusion_attention: softmax_layout {softmax_layout}")
    rule = _Rule(atten_mask, sparse_mode, pre_tockens, next_tockens)
    if input_layout == "TND":
        made = _by_sequence(
            (query, key, value), (actual_seq_qlen, actual_seq_kvlen), (pse, scale, keep_prob), rule
        )
    else:
        heads = [_to_heads(query, head_num, input_layout)]
        shared = _kv_heads(key, input_layout, heads[0].shape[-1])
        heads += [_to_heads(tensor, shared, input_layout) for tensor in (key, value)]
        out, maxima, sums = _attention(heads, (pse, scale, keep_prob), rule)
        made = _from_heads(out, input_layout), maxima, sums
    out, maxima, sums = made
    empty = out.new_empty(0)
    eight = [tensor.detach().unsqueeze(-1).expand(*tensor.shape, 8) for tensor in (maxima, sums)]
    return out, eight[0].contiguous(), eight[1].contiguous(), empty, 0, 0, 0


def _check_heads(query: torch.Tensor, key: torch.Tensor, heads: int, layout: str) -> None:
    if layout not in ("BNSD", "BSND", "BSH", "SBH", "TND"):
        raise ValueError(f"npu_fusion_attention: input_layout {layout}")
    if "N" not in layout:
        if query.shape[-1] % heads:
            raise ValueError(f"npu_fusion_attention: head_num {heads} of {query.shape[-1]} values")
        return
    at = layout.index("N")
    if query.shape[at] != heads or heads % key.shape[at]:
        raise ValueError(
            f"npu_fusion_attention: head_num {heads}, query has {query.shape[at]} heads and key "
            f"{key.shape[at]}"
        )


class _Rule:
    """Which places a query sees."""

    def __init__(self, mask: torch.Tensor | None, mode: int, before: int, after: int) -> None:
        if mode not in (0, 1, 2, 3, 4):
            raise NotImplementedError(f"npu_fusion_attention: sparse_mode {mode}")
        if mode and mask is None:
            raise ValueError(f"npu_fusion_attention: sparse_mode {mode} needs atten_mask")
        if mode in (2, 3, 4) and mask is not None and mask.shape[-2:] != (2048, 2048):
            raise ValueError(
                f"npu_fusion_attention: sparse_mode {mode} needs a mask of 2048 x 2048, "
                f"found {tuple(mask.shape)}"
            )
        self.mask, self.mode, self.before, self.after = mask, mode, before, after

    def hidden(self, length: int, seen: int, device: torch.device) -> torch.Tensor | None:
        """True where a query of `length` does not see a key of `seen`."""
        if self.mask is None:
            return None
        row = torch.arange(length, device=device).unsqueeze(1)
        column = torch.arange(seen, device=device).unsqueeze(0)
        if self.mode == 2:  # causal, aligned at the first places
            return column > row
        ends = seen - length
        if self.mode == 3:  # causal, aligned at the last places
            return column > row + ends
        if self.mode == 4:  # a band, aligned at the last places
            return (column > row + ends + self.after) | (column < row + ends - self.before)
        if self.mask.shape[-2] < length or self.mask.shape[-1] < seen:
            raise ValueError(
                f"npu_fusion_attention: a mask of {tuple(self.mask.shape)} for {length} x {seen}"
            )
        given = self.mask.bool()[..., :length, :seen]
        if self.mode == 1:
            return given
        return given | (column > row + self.after) | (column < row - self.before)


def _attention(
    heads: Sequence[torch.Tensor],
    how: tuple[torch.Tensor | None, float, float],
    rule: _Rule,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    query, key, value = heads
    pse, scale, keep = how
    groups, rest = divmod(query.shape[1], key.shape[1])
    if rest:
        raise ValueError(f"{query.shape[1]} heads of queries for {key.shape[1]} of keys")
    key, value = (tensor.repeat_interleave(groups, 1).float() for tensor in (key, value))
    scores = query.float() @ key.transpose(-1, -2) * scale
    if pse is not None:
        scores = scores + pse.float()
    hidden = rule.hidden(scores.shape[-2], scores.shape[-1], scores.device)
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    maxima = scores.detach().amax(-1, keepdim=True)
    maxima = maxima.masked_fill(maxima == float("-inf"), 0)
    weights = torch.exp(scores - maxima)
    sums = weights.sum(-1, keepdim=True)
    chances = weights / sums.masked_fill(sums == 0, 1)
    if keep < 1:
        chances = functional.dropout(chances, 1 - keep)
    return (chances @ value).to(query.dtype), maxima.squeeze(-1), sums.squeeze(-1)


def _by_sequence(
    tensors: Sequence[torch.Tensor],
    lengths: tuple[Sequence[int] | None, Sequence[int] | None],
    how: tuple[torch.Tensor | None, float, float],
    rule: _Rule,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    query, key, value = tensors
    if lengths[0] is None or lengths[1] is None:
        raise ValueError("npu_fusion_attention: TND needs actual_seq_qlen and actual_seq_kvlen")
    ends = [list(map(int, each)) for each in lengths if each is not None]
    if ends[0][-1] != query.shape[0] or ends[1][-1] != key.shape[0]:
        raise ValueError(
            f"npu_fusion_attention: sequences end at {ends[0][-1]} and {ends[1][-1]} of "
            f"{query.shape[0]} and {key.shape[0]} tokens"
        )
    if how[0] is not None:
        raise NotImplementedError("npu_fusion_attention: pse with TND")
    parts = []
    start, seen = 0, 0
    for end, until in zip(*ends, strict=True):
        if end == start:  # MindSpeed gives the 0 that the first sequence starts at, too
            seen = until
            continue
        heads = [
            part.transpose(0, 1).unsqueeze(0)
            for part in (query[start:end], key[seen:until], value[seen:until])
        ]
        out, maxima, sums = _attention(heads, how, rule)
        parts.append((out[0].transpose(0, 1), maxima[0].transpose(0, 1), sums[0].transpose(0, 1)))
        start, seen = end, until
    out, maxima, sums = (torch.cat(each) for each in zip(*parts, strict=True))
    return out, maxima, sums


def _kv_heads(tensor: torch.Tensor, layout: str, size: int) -> int:
    if layout in ("BNSD", "BSND"):
        return tensor.shape[layout.index("N")]
    return tensor.shape[-1] // size


def _to_heads(tensor: torch.Tensor, heads: int, layout: str) -> torch.Tensor:
    if layout == "BNSD":
        return tensor
    if layout == "BSND":
        return tensor.transpose(1, 2)
    if layout == "BSH":
        return tensor.unflatten(-1, (heads, -1)).transpose(1, 2)
    if layout == "SBH":
        return tensor.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)
    raise ValueError(f"npu_fusion_attention: input_layout {layout}")


def _from_heads(out: torch.Tensor, layout: str) -> torch.Tensor:
    if layout == "BNSD":
        return out
    if layout == "BSND":
        return out.transpose(1, 2).contiguous()
    if layout == "BSH":
        return out.transpose(1, 2).flatten(2)
    return out.permute(2, 0, 1, 3).flatten(2)
