#!/bin/sh
# Makes what docs/howto/carry-across-a-bump.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
cat > serve.py <<'END'
import os
import sys

MODES = {
    "fast": 1,
    "safe": 2,
}


def serve(request):
    check(request)
    return answer(request)


def stop(server):
    server.close()
    return 0
END
git add . && git commit -q -m 'Serve' && git tag v1
cd .. && mkdir project && cd project
patchkit init hello --git ../upstream --ref "$(git -C ../upstream rev-parse HEAD)" --component server
patchkit apply --manifest hello
sed -i 's/^    return answer(request)/    return answer(request, device="npu")/' workspace/server/serve.py
sed -i 's/^    "safe": 2,/    "safe": 2,\n    "npu": 3,/' workspace/server/serve.py
patchkit refresh --manifest hello --new answer-from-the-npu.patch --message 'Answer from the NPU'
sed -i 's/^    return 0/    return "stopped"/' workspace/server/serve.py
patchkit refresh --manifest hello --new say-that-it-stopped.patch --message 'Say that it stopped'
cd ../upstream
sed -i 's/^    check(request)/    check(request, deep=True)/; s/^    "safe": 2,/    "safe": 2,\n    "slow": 4,/' serve.py
git commit -q -a -m 'Check deeply, and serve slowly (#7)'
sed -i 's/^    return 0/    return None/' serve.py
git commit -q -a -m 'Return nothing (#9)' && git tag v2
cd ..
