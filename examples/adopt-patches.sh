#!/bin/sh
# Makes what docs/howto/adopt-patches.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
printf '"""Greetings."""\n\n\ndef greet(name):\n    return "Hello, " + name\n\n\ndef part(name):\n    return "Bye, " + name\n' > greet.py
git add . && git commit -q -m 'Greet and part'
sed -i 's/Hello/Good day/' greet.py && git diff > ../0001-polite.diff && git add .
sed -i 's/Bye/Farewell/' greet.py && git diff > ../0002-part.diff
git reset -q --hard && cd .. && mkdir old && mv *.diff old/
mkdir project && cd project
patchkit init hello --git ../upstream --ref "$(git -C ../upstream rev-parse HEAD)" --component greeter
