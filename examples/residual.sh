#!/bin/sh
# Makes what docs/howto/residual.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
mkdir core tests
printf 'from core.jit import fuse\n\n\n@fuse\ndef scale(x):\n    return 2 * x\n' > core/ops.py
printf 'from core.jit import fuse\n\n\n@fuse\ndef test_scale(x):\n    return x\n' > tests/test_ops.py
printf 'device = "cuda"\n' > run.py
git add . && git commit -q -m 'Fuse'
mkdir lite
printf 'class Ops:\n    @fuse\n    def shift(self, x):\n        return x + 1\n' > lite/ops.py
git add . && git commit -q -m 'Add a light version'
cd .. && mkdir -p project/manifests project/patches/fast
printf 'unfuse.patch\n' > project/patches/fast/series
cat > project/patches/fast/unfuse.recipe.yml <<END
version: 1
description: |
  Do not fuse

  The device has no compiler.

  Upstream-Status: Inappropriate [our device]
rules:
  - id: drop-fuse
    language: python
    files: ["core/**"]
    rule: {kind: decorator, has: {pattern: fuse}}
    remove: lines
END
cat > project/patches/cuda.rules.yml <<END
version: 1
description: what is written for CUDA only
rules:
  - id: cuda-device
    language: python
    files: ["**/*.py"]
    rule: {kind: string, regex: '^"cuda"\$'}
END
cat > project/manifests/fast.yaml <<END
version: 1
components:
  fast:
    source: {git: ../upstream}
    pin: $(git -C upstream rev-parse HEAD~1)
    patches: [{series: patches/fast/series}]
    residual: {rules: [patches/cuda.rules.yml]}
END
cd project && patchkit refresh && rm -f manifests/*.lock.json && cd ..
