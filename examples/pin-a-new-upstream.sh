#!/bin/sh
# Makes what docs/howto/pin-a-new-upstream.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
printf 'def greet(name):\n    return "Hello, " + name\n' > greet.py
git add . && git commit -q -m 'Greet' && git tag v1
cd ..
