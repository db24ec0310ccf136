"""torch_npu._C._distributed_c10d."""

import datetime
from typing import Any

from npusim.hccl import Hccl


class _Options:
    """What a caller may set for a group; gloo needs none of it."""

    def __init__(self, is_high_priority_stream: bool = False) -> None:
        self.is_high_priority_stream = is_high_priority_stream
        self.op_timeout = datetime.timedelta(minutes=30)
        self._config: dict[str, Any] = {}

    @property
    def hccl_config(self) -> dict[str, Any]:
        """Buffers and the like."""
        return self._config

    @hccl_config.setter
    def hccl_config(self, config: dict[str, Any]) -> None:
        self._config = config


class ProcessGroupHCCL(Hccl):
    """The backend; here a process group of Python."""

    Options = _Options
