#!/bin/sh
# Makes what docs/howto/watch-for-drift.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
export GIT_AUTHOR_NAME='Ann Author' GIT_AUTHOR_EMAIL=ann@example.com
export GIT_COMMITTER_NAME='Ann Author' GIT_COMMITTER_EMAIL=ann@example.com
land() { export GIT_AUTHOR_DATE="$1T10:00:00Z" GIT_COMMITTER_DATE="$1T10:00:00Z"; git add . && git commit -q -m "$2"; }
printf 'def greet(name):\n    return "Hello, " + name\n\n\ndef part(name):\n    return "Bye, " + name\n' > greet.py
land 2026-01-01 'Greet'
sed -i 's/return "Hello, " + name/return f"Hello, {name}"/' greet.py
land 2026-01-10 'Use an f-string (#7)'
sed -i 's/return f"Hello, {name}"/return "Hello, " + name/' greet.py
land 2026-01-11 'Revert "Use an f-string (#7)" (#8)'
printf '\n\ndef wave():\n    return "~"\n' >> greet.py
land 2026-02-01 'Wave, too (#9)'
sed -i 's/def greet(name):/def greet(name: str) -> str:/' greet.py
land 2026-03-05 'Say what goes in and out (#12)'
git branch -M main
cd .. && mkdir -p project/manifests project/patches/greeter
printf 'polite.patch\n' > project/patches/greeter/series
cat > project/patches/greeter/polite.patch <<'END'
From: You <you@example.com>
Date: Sat, 21 Nov 2026 12:00:00 +0000
Subject: Greet politely

Our customers expect it.

diff --git a/greet.py b/greet.py
--- a/greet.py
+++ b/greet.py
@@ -1,3 +1,3 @@
 def greet(name):
-    return "Hello, " + name
+    return "Good day, " + name
 
END
cat > project/manifests/hello.yaml <<END
version: 1
components:
  greeter:
    source: {git: ../upstream}
    pin: $(git -C upstream rev-parse HEAD~4)
    track: main
    patches: [{series: patches/greeter/series}]
END
