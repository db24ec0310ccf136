#!/bin/sh
# Makes what docs/howto/verify.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
mkdir core tests
printf 'def fuse(f):\n    return compile(f)\n\n\njit = fuse\n' > core/jit.py
printf 'from core.jit import jit\n\n\n@jit\ndef scale(x):\n    return 2 * x\n' > core/ops.py
git add . && git commit -q -m 'Compile'
sed -i 's/jit = fuse/import other\n\njit = other.fuse/' core/ops.py
printf 'import other\n\n\njit = other.fuse\n\n\n@jit\ndef scale(x):\n    return 2 * x\n' > core/ops.py
git commit -q -a -m 'Let ops compile otherwise'
cd .. && mkdir -p project/manifests project/patches/fast
printf 'uncompiled.patch\n' > project/patches/fast/series
cat > project/patches/fast/uncompiled.patch <<'END'
From: You <you@example.com>
Date: Sat, 21 Nov 2026 12:00:00 +0000
Subject: Run uncompiled

The device has no compiler.

Upstream-Status: Inappropriate [our device]

diff --git a/core/jit.py b/core/jit.py
index 7b2ba5b4ad0b2ed53b5f1ea03adb9b8e6e6ec5e5..3e5ac64a2e6d3a3f8b3f4a2b9e8b3e0b0c0d0e0f 100644
--- a/core/jit.py
+++ b/core/jit.py
@@ -1,5 +1,5 @@
 def fuse(f):
-    return compile(f)
+    return f
 
 
 jit = fuse
END
sed -i '/^index /d' project/patches/fast/uncompiled.patch
cat > project/manifests/fast.yaml <<END
version: 1
components:
  fast:
    source: {git: ../upstream}
    pin: $(git -C upstream rev-parse HEAD~1)
    patches: [{series: patches/fast/series}]
    verify:
      - name: nothing is compiled
        absent: compile(
        files: ["core/**/*.py"]
      - rules: patches/fast/verify.rules.yml
      - name: the module can be loaded
        run: python3 core/ops.py
END
cat > project/patches/fast/verify.rules.yml <<END
version: 1
description: nobody goes round core/jit.py
rules:
  - id: one-source-of-jit
    language: python
    files: ["core/**/*.py"]
    ignores: [core/jit.py]
    rule: {pattern: jit = \$_}
    expect: 0
END
