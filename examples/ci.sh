#!/bin/sh
# Makes what docs/howto/ci.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
printf 'def greet(name):\n    return "Hello, " + name\n\n\ndef part(name):\n    return "Bye, " + name\n' > greet.py
git add . && git commit -q -m 'Greet'
sed -i 's/return "Hello, " + name/return f"Hello, {name}"/' greet.py
git commit -q -a -m 'Use an f-string'
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
    pin: $(git -C upstream rev-parse HEAD~1)
    patches: [{series: patches/greeter/series}]
END
