#!/bin/sh
# Makes what docs/howto/yocto.md starts from, in the current folder: an upstream, a layer with a
# recipe for it, and the sources of an RPM package.
set -e
git init -q upstream && cd upstream
printf 'def greet(name):\n    return "Hello, " + name\n\n\ndef part(name):\n    return "Bye, " + name\n' > greet.py
git add . && git commit -q -m 'Greet and part' && git tag v1.0
cd .. && mkdir -p layer/recipes-greet/greet/greet rpm/SPECS rpm/SOURCES project
cat > layer/recipes-greet/greet/greet/0001-greet-politely.patch <<'END'
From: You <you@example.com>
Subject: Greet politely

People asked for it.

Upstream-Status: Pending
---
--- a/greet.py
+++ b/greet.py
@@ -1,5 +1,5 @@
 def greet(name):
-    return "Hello, " + name
+    return "Good day, " + name
 
 
 def part(name):
END
cat > layer/recipes-greet/greet/greet/part.diff <<'END'
Part politely, too.

--- greet.py
+++ greet.py
@@ -3,4 +3,4 @@
 
 
 def part(name):
-    return "Bye, " + name
+    return "Goodbye, " + name
END
cat > layer/recipes-greet/greet/greet_1.0.bb <<'END'
SUMMARY = "Greets"
SRC_URI = "git://example.com/greet.git;branch=main \
    file://0001-greet-politely.patch \
"
SRC_URI:append = " file://part.diff;striplevel=0"
SRC_URI:append:class-native = " file://native.patch"
END
cp layer/recipes-greet/greet/greet/0001-greet-politely.patch rpm/SOURCES
cat > rpm/SPECS/greet.spec <<'END'
Name:    greet
Version: 1.0
Patch1:  0001-greet-politely.patch

%prep
%autosetup -p1
END
