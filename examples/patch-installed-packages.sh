#!/bin/sh
# Makes what docs/howto/patch-installed-packages.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
mkdir -p src/greeter
printf '"""Greetings."""\n\n\ndef greet(name):\n    return "Hello, " + name\n' > src/greeter/__init__.py
printf '[project]\nname = "greeter"\nversion = "1.0"\n' > pyproject.toml
git add . && git commit -q -m 'Greet'
cd .. && mkdir -p project/manifests project/patches/greeter
printf 'warmly.patch\n' > project/patches/greeter/series
cat > project/patches/greeter/warmly.patch <<'END'
From: You <you@example.com>
Date: Sat, 21 Nov 2026 12:00:00 +0000
Subject: Greet warmly

Upstream-Status: Pending

diff --git a/src/greeter/__init__.py b/src/greeter/__init__.py
--- a/src/greeter/__init__.py
+++ b/src/greeter/__init__.py
@@ -2,4 +2,4 @@
 
 
 def greet(name):
-    return "Hello, " + name
+    return "Dear " + name
END
cat > project/manifests/greeter.yaml <<END
version: 1
components:
  greeter:
    source: {git: ../upstream}
    pin: $(git -C upstream rev-parse HEAD)
    patches: [{series: patches/greeter/series}]
END
mkdir -p project/site-packages/greeter-1.0.dist-info
cp -r upstream/src/greeter project/site-packages
python3 - <<'END'
import base64, hashlib, pathlib
site = pathlib.Path("project/site-packages")
data = (site / "greeter/__init__.py").read_bytes()
digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
record = f"greeter/__init__.py,sha256={digest},{len(data)}\ngreeter-1.0.dist-info/RECORD,,\n"
(site / "greeter-1.0.dist-info/RECORD").write_text(record)
END
