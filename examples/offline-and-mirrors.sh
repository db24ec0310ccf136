#!/bin/sh
# Makes what docs/howto/offline-and-mirrors.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
printf 'def greet(name):\n    return "Hello, " + name\n' > greet.py
git add . && git commit -q -m 'Greet'
cd .. && mkdir -p project/manifests
cat > project/manifests/hello.yaml <<END
version: 1
components:
  greeter:
    source: {git: ../upstream}
    pin: $(git -C upstream rev-parse HEAD)
END
