#!/bin/sh
# Makes what docs/howto/bump.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
printf '"""Greetings."""\n\n\ndef greet(name):\n    return "Hello, " + name\n\n\ndef part(name):\n    return "Bye, " + name\n' > greet.py
git add . && git commit -q -m 'Greet and part' && git tag v1.0
cd .. && mkdir project && cd project
patchkit init hello --git ../upstream --ref "$(git -C ../upstream rev-parse HEAD)" --component greeter
sed -i 's/^    # track: .*/    track: v1.*/; /^    pin:/a\    track: v1.*' manifests/hello.yaml
patchkit apply --manifest hello
sed -i 's/Hello/Good day/' workspace/greeter/greet.py
patchkit refresh --manifest hello --new greet-politely.patch --message 'Greet politely'
sed -i 's/Bye/Farewell/' workspace/greeter/greet.py
patchkit refresh --manifest hello --new part-politely.patch --message 'Part politely'
cd ../upstream
sed -i '1a\\import sys' greet.py
git commit -q -a -m 'Import sys' && git tag v1.9
sed -i 's/^def greet(name):/def greet(name: str) -> str:/; s/"Bye, "/"Farewell, "/' greet.py
git commit -q -a -m 'Say what goes in and out, and part politely (#12)' && git tag v1.10
sed -i 's/^    return "Hello, ".*/    return GREETINGS[language()].format(name)/' greet.py
git commit -q -a -m 'Greet in the language of the user (#14)' && git tag v2.0
cd ../project && git init -q && echo workspace > .gitignore && git add . && git commit -q -m 'Start'
cd ..
