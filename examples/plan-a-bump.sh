#!/bin/sh
# Makes what docs/howto/plan-a-bump.md starts from, in the current folder.
set -e
git init -q engine && git init -q trainer
export GIT_AUTHOR_NAME='Ann Author' GIT_AUTHOR_EMAIL=ann@example.com
export GIT_COMMITTER_NAME='Ann Author' GIT_COMMITTER_EMAIL=ann@example.com
land() { export GIT_AUTHOR_DATE="$2T10:00:00Z" GIT_COMMITTER_DATE="$2T10:00:00Z"; git -C $1 add . && git -C $1 commit -q -m "$3"; }
version() { printf 'from setuptools import setup\n\nsetup(name="%s", version="%s", install_requires=[%s])\n' $1 $2 "$3" > $1/setup.py; }
version engine 1.0
printf 'def start(size):\n    check(size)\n    run(size)\n\n\ndef stop():\n    wait()\n' > engine/engine.py
land engine 2026-01-01 'Start'
printf '\n\ndef pause():\n    wait(1)\n' >> engine/engine.py
land engine 2026-01-20 'Pause, too (#3)'
sed -i 's/    run(size)/    run(size, now=True)/' engine/engine.py
land engine 2026-02-10 'Run now (#5)'
version engine 2.0 && land engine 2026-02-15 'Release 2.0'
sed -i 's/    check(size)/    assert size/' engine/engine.py
land engine 2026-03-20 'Assert in place of a check (#9)'
version trainer 0.7 '"engine==1.*"'
printf 'def train():\n    fit()\n    save()\n' > trainer/train.py
land trainer 2026-01-02 'Train'
printf 'Train with it.\n' > trainer/README && land trainer 2026-01-25 'Read me'
sed -i 's/    save()/    save("all")/' trainer/train.py && version trainer 0.8 '"engine>=1.5"'
land trainer 2026-03-10 'Save all, with engine 2 (#6)'
git -C engine branch -M main && git -C trainer branch -M main
mkdir -p project/manifests project/patches/engine project/patches/trainer
printf 'careful.patch\n' > project/patches/engine/series
printf 'often.patch\n' > project/patches/trainer/series
cat > project/patches/engine/careful.patch <<'END'
From: You <you@example.com>
Date: Sat, 21 Nov 2026 12:00:00 +0000
Subject: Check twice

diff --git a/engine.py b/engine.py
--- a/engine.py
+++ b/engine.py
@@ -1,5 +1,5 @@
 def start(size):
-    check(size)
+    check(size, twice=True)
     run(size)
 
 
END
cat > project/patches/trainer/often.patch <<'END'
From: You <you@example.com>
Date: Sat, 21 Nov 2026 12:00:00 +0000
Subject: Save only the best

diff --git a/train.py b/train.py
--- a/train.py
+++ b/train.py
@@ -1,3 +1,3 @@
 def train():
     fit()
-    save()
+    save("best")
END
cat > project/manifests/stack.yaml <<END
version: 1
components:
  engine:
    source: {git: ../engine}
    pin: $(git -C engine rev-list --max-parents=0 main)
    track: main
    patches: [{series: patches/engine/series}]
  trainer:
    source: {git: ../trainer}
    pin: $(git -C trainer rev-list --max-parents=0 main)
    track: main
    patches: [{series: patches/trainer/series}]
END
