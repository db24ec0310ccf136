#!/bin/sh
# Makes what docs/howto/overrides.md starts from, in the current folder.
set -e
git init -q core && cd core
mkdir layers
printf 'def scale(x, by=2):\n    return x * by\n\n\ndef shift(x):\n    return x + 1\n' > layers/ops.py
printf 'from .ops import scale, shift\n' > layers/__init__.py
git add . && git commit -q -m 'Layers'
cd .. && git init -q speed && cd speed
mkdir speed
printf 'def register(patches):\n    patches.put("layers.scale", fast_scale)\n    for name in ("shift", "fused"):\n        patches.put(f"layers.ops.{name}", fast[name])\n' > speed/features.py
git add . && git commit -q -m 'Speed'
cd .. && mkdir -p project/manifests project/patches && cd project
cat > manifests/fast.yaml <<END
version: 1
components:
  core:
    source: {git: ../core}
    pin: $(git -C ../core rev-parse HEAD)
  speed:
    source: {git: ../speed}
    pin: $(git -C ../speed rev-parse HEAD)
    overrides:
      - target: core
        rule: patches/put.rules.yml
        packages: [layers]
END
cat > patches/put.rules.yml <<END
version: 1
description: calls by which speed replaces functions
rules:
  - id: put
    language: python
    files: ["speed/**/*.py"]
    rule: {pattern: "\$_.put(\$TARGET, \$\$\$)"}
END
cd ../core
printf 'def scale(x, by=2, group=None):\n    return x * by\n\n\ndef shift(x):\n    return x - 1\n' > layers/ops.py
git commit -q -a -m 'Scale in a group'
cd ..
