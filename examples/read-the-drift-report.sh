#!/bin/sh
# Makes what docs/howto/read-the-drift-report.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
export GIT_AUTHOR_NAME='Ann Author' GIT_AUTHOR_EMAIL=ann@example.com
export GIT_COMMITTER_NAME='Ann Author' GIT_COMMITTER_EMAIL=ann@example.com
land() { export GIT_AUTHOR_DATE="$1T10:00:00Z" GIT_COMMITTER_DATE="$1T10:00:00Z"; git add . && git commit -q -m "$2"; }
printf 'def greet(name):\n    return "Hello, " + name\n' > greet.py
printf 'def leave(name):\n    return "Bye, " + name\n' > leave.py
land 2025-10-01 'Greet and leave'
git branch -M main
cd .. && mkdir -p project/manifests project/patches/greeter
printf 'polite.patch\nwarm.patch\n' > project/patches/greeter/series
cat > project/patches/greeter/polite.patch <<'END'
Subject: Greet politely

diff --git a/greet.py b/greet.py
--- a/greet.py
+++ b/greet.py
@@ -1,2 +1,2 @@
 def greet(name):
-    return "Hello, " + name
+    return "Good day, " + name
END
sed 's/greet/leave/g; s/Greet politely/Part warmly/; s/Hello/Bye/; s/Good day/Farewell/' project/patches/greeter/polite.patch > project/patches/greeter/warm.patch
cat > project/manifests/hello.yaml <<END
version: 1
components:
  greeter:
    source: {git: ../upstream}
    pin: $(git -C upstream rev-parse HEAD)
    track: main
    patches: [{series: patches/greeter/series}]
END
cd upstream
printf 'def greet(name, *, loud=False):\n    return shout("Hello, " + name) if loud else "Hello, " + name\n' > greet.py
land 2025-12-05 'Greet loudly on demand (#12)'
cd ..
