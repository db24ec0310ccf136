#!/bin/sh
# Makes what docs/howto/share-a-workspace.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
printf '"""Greetings."""\n\n\ndef greet(name):\n    return "Hello, " + name\n' > greet.py
git add . && git commit -q -m 'Greet'
printf '\n\ndef part(name):\n    return "Bye, " + name\n' >> greet.py
git commit -q -a -m 'Part'
cd .. && git init -q other && cd other
printf 'print("quite another greeter")\n' > main.py
git add . && git commit -q -m 'Another one'
cd .. && mkdir project && cd project
patchkit init stable --git ../upstream --ref "$(git -C ../upstream rev-parse HEAD~1)" --component greeter
patchkit init next --git ../upstream --ref "$(git -C ../upstream rev-parse HEAD)" --component greeter
patchkit init rewrite --git ../other --ref "$(git -C ../other rev-parse HEAD)" --component greeter
patchkit apply --manifest stable
cd ..
