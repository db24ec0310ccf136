#!/bin/sh
# Makes what docs/howto/contracts.md starts from, in the current folder.
set -e
git init -q kernels && cd kernels
mkdir kernels
printf 'from .norm import rms_norm\n' > kernels/__init__.py
printf 'def rms_norm(x, hidden_size, eps, weight=None):\n    return x\n' > kernels/norm.py
git add . && git commit -q -m 'Kernels'
cd .. && git init -q engine && cd engine
mkdir engine
printf '' > engine/__init__.py
cat > engine/model.py <<'END'
from engine.device import is_npu

if is_npu():
    from kernels import rms_norm


class Model:
    def forward(self, x):
        if not is_npu():
            from vllm import fast_norm

            return fast_norm(x)
        x = rms_norm(x, self.weight, self.hidden_size, self.eps)
        return self.head(x, mask=None)
END
printf 'def is_npu():\n    return True\n' > engine/device.py
git add . && git commit -q -m 'Engine'
cd .. && mkdir -p project/manifests && cd project
cat > manifests/fast.yaml <<END
version: 1
components:
  kernels:
    source: {git: ../kernels}
    pin: $(git -C ../kernels rev-parse HEAD)
    contracts:
      packages: [kernels]
  engine:
    source: {git: ../engine}
    pin: $(git -C ../engine rev-parse HEAD)
    contracts:
      packages: [engine]
END
cd ..
