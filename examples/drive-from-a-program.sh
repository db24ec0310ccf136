#!/bin/sh
# Makes what docs/howto/drive-from-a-program.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
land() { GIT_AUTHOR_DATE="$1T10:00:00Z" GIT_COMMITTER_DATE="$1T10:00:00Z" git commit -q -a -m "$2"; }
cat > serve.py <<'END'
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
sed -i 's/^    return answer(request)/    return answer(request, device="npu")/' workspace/server/serve.py
patchkit refresh --new answer-from-the-npu.patch --message 'Answer from the NPU

Copying the answer to the host costs 3 ms.'
cd ../upstream
sed -i 's/^    return answer(request)/    return answer(request, stream=STREAMS[0])/' serve.py
land 2026-02-03 'Answer on a stream (#7)'
sed -i 's/^    return 0/    return None/' serve.py
land 2026-03-01 'Return nothing (#9)' && git tag v2
cd ../project && printf '#!/bin/sh\nsed -i -e "/^<<<<<<</d" -e "/^|||||||/,/^>>>>>>>/d" -e "s/\\(STREAMS.0.\\))/\\1, device=\\"npu\\")/" "$1"\n' > resolver && chmod +x resolver
cd ..
