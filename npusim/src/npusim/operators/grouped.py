"""Products of groups of rows, and the order of tokens that they need."""

from collections.abc import Sequence

import torch

from npusim.operators.table import operator


def _counts(group_list: Sequence[int] | torch.Tensor, kind: int) -> list[int]:
    listed = group_list.tolist() if isinstance(group_list, torch.Tensor) else list(group_list)
    if kind == 1:
        return [int(count) for count in listed]
    if kind == 0:
        return [int(end) - int(start) for start, end in zip([0, *listed], listed, strict=False)]
    raise NotImplementedError(f"npu_grouped_matmul: group_list_type {kind}")


@operator
def npu_grouped_matmul(
    x: list[torch.Tensor],
    weight: list[torch.Tensor],
    *,
    bias: list[torch.Tensor] | None = None,
    group_list: Sequence[int] | torch.Tensor | None = None,
    split_item: int = 0,
    group_type: int | None = None,
    group_list_type: int = 0,
    output_dtype: torch.dtype | None = None,
    **other: object,
) -> list[torch.Tensor]:
    """One product per group.

    group_type -1 (or None): x[i] @ weight[i]. 0: the rows of x[0] are cut into groups, one weight
    each (a list, or one tensor of three dimensions). 2: the shared dimension is cut: x[0] is (K, M)
    transposed to (M, K), weight[0] is (K, N), and each group's product is (M, N).
    group_list holds running ends (group_list_type 0) or counts (1). split_item 2 and 3 give one
    tensor.
    """
    if given := [name for name, value in other.items() if value is not None]:
        raise NotImplementedError(f"npu_grouped_matmul: {', '.join(given)}")
    if group_type in (None, -1) and group_list is None:
        products = [a @ b for a, b in zip(x, weight, strict=True)]
    elif group_type in (None, 0):
        products = _by_rows(x[0], weight, _counts(group_list, group_list_type))
    elif group_type == 2:
        parts = _counts(group_list, group_list_type)
        cut = zip(x[0].split(parts, 1), weight[0].split(parts, 0), strict=True)
        products = [a @ b for a, b in cut]
    else:
        raise NotImplementedError(f"npu_grouped_matmul: group_type {group_type}")
    if bias:
        rows = bias if len(bias) == len(products) else list(bias[0])
        products = [product + row for product, row in zip(products, rows, strict=True)]
    if output_dtype is not None:
        products = [product.to(output_dtype) for product in products]
    if group_type == 2 and split_item in (2, 3):
        return [torch.stack(products)]
    return [torch.cat(products)] if split_item in (2, 3) else products


def _by_rows(
    rows: torch.Tensor, weight: list[torch.Tensor], counts: list[int]
) -> list[torch.Tensor]:
    matrices = list(weight[0]) if len(weight) == 1 and weight[0].dim() == 3 else weight
    if sum(counts) > rows.shape[0]:
        raise ValueError(f"groups of {sum(counts)} rows for {rows.shape[0]}")
    parts = rows[: sum(counts)].split(counts)
    products = [part @ matrix for part, matrix in zip(parts, matrices, strict=True)]
    if left := rows.shape[0] - sum(counts):  # rows in no group: a real NPU leaves them as they are
        products.append(rows.new_zeros(left, products[0].shape[1]))
    return products


@operator
def npu_moe_token_permute(
    tokens: torch.Tensor,
    indices: torch.Tensor,
    num_out_tokens: int | None = None,
    padded_mode: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(rows in the order of their experts, where each (token, choice) went)."""
    if padded_mode:
        raise NotImplementedError("npu_moe_token_permute: padded_mode")
    choices = indices.shape[1] if indices.dim() == 2 else 1
    order = torch.argsort(indices.reshape(-1), stable=True)
    place = torch.argsort(order, stable=True).to(torch.int32)
    if num_out_tokens:
        order = order[: num_out_tokens if num_out_tokens > 0 else len(order) + num_out_tokens]
    return tokens.index_select(0, order // choices), place


@operator
def npu_moe_token_unpermute(
    permuted_tokens: torch.Tensor,
    sorted_indices: torch.Tensor,
    probs: torch.Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: torch.Size | None = None,
) -> torch.Tensor:
    """The other way: each token is the sum of its choices, times their probabilities."""
    if padded_mode:
        raise NotImplementedError("npu_moe_token_unpermute: padded_mode")
    choices = 1 if probs is None else probs.shape[1]
    found = sorted_indices < permuted_tokens.shape[0]
    rows = permuted_tokens.index_select(
        0, sorted_indices.clamp(max=len(permuted_tokens) - 1).long()
    )
    rows = rows * found.unsqueeze(-1).to(rows.dtype)
    rows = rows.reshape(-1, choices, rows.shape[-1])
    if probs is not None:
        rows = rows * probs.unsqueeze(-1).to(rows.dtype)
    return rows.sum(1)
