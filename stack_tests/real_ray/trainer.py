"""Stands for slime's train.py: a driver on Ray with an actor on an NPU and what the actor starts.

Writes what it was given, and where, into the folder of --save; goes on until it is ended if a file
`wait` is there.
"""

import json
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

ray: Any = import_module("ray")

ray.init(log_to_driver=False)


class Trainer:
    def start(self) -> dict[str, object]:
        """A server of its own, as SGLang is, that outlives an actor unless somebody ends it."""
        server = subprocess.Popen(["sleep", "600"], start_new_session=True)
        names = ("MASTER_ADDR", "MASTER_PORT", "no_proxy", "ASCEND_RT_VISIBLE_DEVICES")
        told = {name: os.environ.get(name, "") for name in names}
        return {
            **told,
            "pids": [os.getpid(), server.pid],
            "address": ray.util.get_node_ip_address(),
        }


machines = int(sys.argv[sys.argv.index("--actor-num-nodes") + 1])
actor = ray.remote(resources={"NPU": 1}, scheduling_strategy="SPREAD")(Trainer)
trainers = [actor.remote() for _ in range(machines)]
told = ray.get([each.start.remote() for each in trainers])
folder = Path(sys.argv[sys.argv.index("--save") + 1])
folder.mkdir(parents=True, exist_ok=True)
written = folder / "told.json.new"
written.write_text(json.dumps({"arguments": sys.argv[1:], "trainers": told, "driver": os.getpid()}))
written.rename(folder / "told.json")
while Path("wait").exists():
    time.sleep(0.1)
