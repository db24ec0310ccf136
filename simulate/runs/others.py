"""Run 8: Megatron-LM with MindSpeed's layers at the pins of the other stacks for NPUs.

Model, batches and what must be equal are those of the runs `megatron` and `mindspeed`.
"""

from __future__ import annotations

from simulate.runs import megatron, mindspeed
from simulate.steps import Figures, Place, step


@step(
    "verl-npu",
    components=["megatron-lm"],
    against=[megatron.CPU],
    environment={"TORCHDYNAMO_DISABLE": "1"},  # in a launch MindSpeed's adaptor takes it out
)
def verl_npu_megatron(place: Place) -> Figures:
    """verl's stack of August 2026, Megatron's own layers, fp32."""
    return megatron.tp1_fp32(place)


@step(
    "verl-npu",
    components=mindspeed.COMPONENTS,
    against=[mindspeed.like("others/verl-npu-megatron")],
)
def verl_npu(place: Place) -> Figures:
    """verl's stack of August 2026, MindSpeed's layers, adapted as verl's engine does it."""
    return mindspeed.train(place, kind=dict)


@step("miles-npu", components=mindspeed.COMPONENTS, against=[mindspeed.like("megatron/tp1-fp32")])
def miles_npu(place: Place) -> Figures:
    """The training side of miles with its published patches, MindSpeed's layers, fp32."""
    return mindspeed.train(place)


@step(
    "miles-npu",
    components=mindspeed.COMPONENTS,
    against=[mindspeed.like("megatron/tp1-fp32-apart")],
)
def miles_npu_packed(place: Place) -> Figures:
    """The training side of miles, MindSpeed's layers, three sequences packed in one row."""
    return mindspeed.train(place, packed=(5, 8, 3))
