"""The module `torch_npu.profiler`, over torch's own: what the host did is all there is."""

import enum
from typing import Any

from torch.profiler import (
    ProfilerAction,
    profile,
    schedule,
    tensorboard_trace_handler,
)
from torch.profiler import ProfilerActivity as _Activity

__all__ = [
    "AiCMetrics",
    "ExportType",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerLevel",
    "profile",
    "schedule",
    "tensorboard_trace_handler",
]


class ProfilerActivity:
    """CPU, and NPU, which is the CPU here."""

    CPU = _Activity.CPU
    NPU = _Activity.CPU


class ProfilerLevel(enum.Enum):
    """How much a real device records."""

    Level_none = 0
    Level0 = 1
    Level1 = 2
    Level2 = 3


class AiCMetrics(enum.Enum):
    """What a real device counts."""

    AiCoreNone = 0
    PipeUtilization = 1


class ExportType(enum.Enum):
    """Forms of a real device's records."""

    Text = "text"
    Db = "db"


class _ExperimentalConfig:
    def __init__(self, **options: Any) -> None:
        self.options = options
