#!/bin/sh
# Makes what docs/howto/reorder-and-drop.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
printf '"""Greetings."""\n\n\ndef greet(name):\n    return "Hello, " + name\n\n\ndef part(name):\n    return "Bye, " + name\n' > greet.py
git add . && git commit -q -m 'Greet and part'
cd .. && mkdir project && cd project
patchkit init hello --git ../upstream --ref "$(git -C ../upstream rev-parse HEAD)" --component greeter
patchkit apply --manifest hello
sed -i 's/Hello/Good day/' workspace/greeter/greet.py
patchkit refresh --manifest hello --new greet-politely.patch
sed -i 's/Bye/Farewell/' workspace/greeter/greet.py
patchkit refresh --manifest hello --new part-politely.patch
cd ..
