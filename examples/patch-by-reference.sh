#!/bin/sh
# Makes what docs/howto/patch-by-reference.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
printf 'def greet(name):\n    return "Hello, " + name\n' > greet.py
git add . && git commit -q -m 'Greet'
cd .. && git init -q publisher && cd publisher && mkdir patches
printf 'diff --git a/greet.py b/greet.py\n--- a/greet.py\n+++ b/greet.py\n@@ -1,2 +1,2 @@\n def greet(name):\n-    return "Hello, " + name\n+    return "Good day, " + name\n' > patches/polite.patch
git add . && git commit -q -m 'Publish a patch'
cd .. && mkdir -p project/manifests
