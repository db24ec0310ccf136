#!/bin/sh
# Makes what docs/howto/follow-a-fork.md starts from, in the current folder.
set -e
git init -q -b main upstream && cd upstream
printf '"""Greetings."""\n\n\ndef greet(name):\n    return "Hello, " + name\n\n\ndef part(name):\n    return "Bye, " + name\n' > greet.py
git add . && git commit -q -m 'Greet and part'
git clone -q . ../fork && cd ../fork && git switch -q -c polite
sed -i 's/Hello/Good day/' greet.py && git commit -q -a -m 'Greet politely' -m 'PR: https://git.example.org/greeter/pull/7'
sed -i 's/Bye/Farewell/' greet.py && git commit -q -a -m 'Part politely' -m 'Upstream-Status: Pending'
cd .. && mkdir -p project/manifests project/patches/greeter && touch project/patches/greeter/series
