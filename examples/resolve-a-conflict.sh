#!/bin/sh
# Makes what docs/howto/resolve-a-conflict.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
land() { GIT_AUTHOR_DATE="$1T10:00:00Z" GIT_COMMITTER_DATE="$1T10:00:00Z" git commit -q -a -m "$2"; }
cat > serve.py <<'END'
import os


def start(port):
    return listen(port)


def serve(request):
    check(request)
    return answer(request)


def stop(server):
    server.close()
    return 0
END
git add . && land 2026-01-01 'Serve' && git tag v1
cd .. && mkdir project && cd project
patchkit init hello --git ../upstream --ref "$(git -C ../upstream rev-parse HEAD)" --component server
patchkit apply --manifest hello
sed -i 's/^    return listen(port)/    return listen(port, device="npu")/' workspace/server/serve.py
patchkit refresh --new listen-on-the-npu.patch --message 'Listen on the NPU

Its queue is where requests come in.'
sed -i 's/^    return answer(request)/    return answer(request, device="npu")/' workspace/server/serve.py
patchkit refresh --new answer-from-the-npu.patch --message 'Answer from the NPU

The answer is there already, and copying it to the host costs 3 ms.'
sed -i 's/^    return 0/    return "stopped"/' workspace/server/serve.py
patchkit refresh --new say-that-it-stopped.patch --message 'Say that it stopped

Our callers ask.'
cd ../upstream
sed -i 's/^    return answer(request)/    return answer(request, stream=STREAMS[0])/' serve.py
land 2026-02-03 'Answer on a stream (#7)'
sed -i 's/^import os/import os\nimport sys/' serve.py
land 2026-02-07 'Import sys (#8)'
sed -i 's/^    return 0/    return None/' serve.py
land 2026-03-01 'Return nothing (#9)' && git tag v2
cd ../project && git init -q && echo workspace > .gitignore && git add . && git commit -q -m 'Start'
cd ..
