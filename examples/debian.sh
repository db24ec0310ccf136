#!/bin/sh
# Makes what docs/howto/debian.md starts from, in the current folder: an upstream, and a package
# with patches as Debian has them.
set -e
git init -q upstream && cd upstream
printf 'def greet(name):\n    return "Hello, " + name\n\n\ndef part(name):\n    return "Bye, " + name\n' > greet.py
git add . && git commit -q -m 'Greet and part' && git tag v1.0
cd .. && mkdir -p package/debian/patches/upstream && cd package
cat > debian/patches/upstream/polite.diff <<'END'
Description: Greet politely
 People asked for it.
Author: You <you@example.com>
Forwarded: https://example.com/12

---
--- a/greet.py
+++ b/greet.py
@@ -1,5 +1,5 @@
 def greet(name):
-    return "Hello, " + name
+    return "Good day, " + name
 
 
 def part(name):
END
printf '# what upstream will take\nupstream/polite.diff\n' > debian/patches/series
