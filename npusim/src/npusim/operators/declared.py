"""What operators take, after torch_npu's documentation: types, one type for several arguments.

A real device refuses the rest with an error of the kernel's; here the operator and the argument are
named. An operator that is not listed takes what its computation takes.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

_LOW = (torch.float16, torch.bfloat16)
_FLOATS = (*_LOW, torch.float32)
_MASKS = (torch.bool, torch.uint8)


@dataclasses.dataclass(frozen=True)
class Declared:
    """Types of tensors by argument; arguments of one type; lists that are numbers of the host."""

    types: Mapping[str, tuple[torch.dtype, ...]]
    alike: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


def _floats(*names: str) -> dict[str, tuple[torch.dtype, ...]]:
    return dict.fromkeys(names, _FLOATS)


_ATTENTION = ("query", "key", "value")
_LENGTHS = ("actual_seq_qlen", "actual_seq_kvlen", "prefix")
DECLARED: dict[str, Declared] = {
    "npu_fusion_attention": Declared(
        _floats(*_ATTENTION) | {"atten_mask": _MASKS, "padding_mask": _MASKS},
        _ATTENTION,
        _LENGTHS,
    ),
    "npu_fused_infer_attention_score": Declared(
        dict.fromkeys(_ATTENTION, _LOW) | {"block_table": (torch.int32,)},
        _ATTENTION,
        ("actual_seq_lengths", "actual_seq_lengths_kv"),
    ),
    "npu_rms_norm": Declared(_floats("self", "gamma"), ("self", "gamma")),
    "npu_add_rms_norm": Declared(_floats("x1", "x2", "gamma"), ("x1", "x2", "gamma")),
    "npu_gemma_rms_norm": Declared(_floats("self", "gamma"), ("self", "gamma")),
    "npu_swiglu": Declared(_floats("self")),
    "npu_geglu": Declared(_floats("self")),
    "npu_fast_gelu": Declared(_floats("self")),
    "npu_gelu": Declared(_floats("self")),
    "npu_scaled_masked_softmax": Declared(_floats("x") | {"mask": (torch.bool,)}),
    "npu_rotary_mul": Declared(_floats("self", "r1", "r2")),
    "_npu_reshape_and_cache": Declared({"slot_indices": (torch.int32,)}, ("key", "key_cache")),
    "_npu_paged_attention": Declared(
        dict.fromkeys(("query", "key_cache", "value_cache"), _LOW)
        | {"block_table": (torch.int32,), "context_lens": (torch.int32,)},
        ("query", "key_cache", "value_cache"),
    ),
    "_npu_flash_attention_qlens": Declared(
        dict.fromkeys(("query", "key_cache", "value_cache"), _LOW)
        | {"block_table": (torch.int32,), "seq_len": (torch.int32,)},
        ("query", "key_cache", "value_cache"),
    ),
    "_npu_flash_attention_unpad": Declared(
        dict.fromkeys(_ATTENTION, _LOW) | {"seq_len": (torch.int32,)}, _ATTENTION
    ),
}


def check(name: str, given: Mapping[str, Any]) -> None:
    """Refuse arguments, by name, that the operator's documentation does not have."""
    if (declared := DECLARED.get(name)) is None:
        return
    for argument, types in declared.types.items():
        value = given.get(argument)
        if isinstance(value, torch.Tensor) and value.dtype not in types:
            raise TypeError(
                f"{name}: {argument} is {value.dtype}; it takes {', '.join(map(str, types))}"
            )
    kinds = {
        argument: given[argument].dtype
        for argument in declared.alike
        if isinstance(given.get(argument), torch.Tensor)
    }
    if len(set(kinds.values())) > 1:
        told = ", ".join(f"{argument} is {kind}" for argument, kind in kinds.items())
        raise TypeError(f"{name}: of one type must be: {told}")
    for argument in declared.numbers:
        if isinstance(given.get(argument), torch.Tensor):
            raise TypeError(f"{name}: {argument} is a list of numbers, found a tensor")
