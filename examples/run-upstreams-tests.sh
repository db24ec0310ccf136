#!/bin/sh
# Makes what docs/howto/run-upstreams-tests.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
mkdir tests
printf 'def double(n):\n    return 2 * n\n\n\ndef name():\n    return "cuda"\n' > lib.py
cat > tests/run.py <<'END'
import os, sys
sys.path.insert(0, ".")
import lib
cases = {"test_double": lib.double(2) == 4, "test_name": lib.name() == "cuda", "test_zero": lib.double(0) == 0}
rows = "".join(f'<testcase classname="tests" name="{n}">{"" if ok else "<failure/>"}</testcase>' for n, ok in cases.items())
open(os.environ["PATCHKIT_JUNIT"], "w").write(f"<testsuite>{rows}</testsuite>")
END
git add . && git commit -q -m 'Double'
sed -i 's/return 2 \* n/return n + 2/' lib.py && git commit -q -a -m 'Add instead'
cd .. && mkdir -p project/manifests project/patches/lib && cd project
git clone -q ../upstream scratch && cd scratch && git reset -q --hard HEAD~1
sed -i 's/"cuda"/"npu"/' lib.py && git commit -q -a -m 'Name the NPU'
git format-patch -q -1 --stdout --no-signature > ../patches/lib/npu.patch
cd .. && rm -rf scratch && printf 'npu.patch\n' > patches/lib/series
cat > manifests/lib.yaml <<END
version: 1
components:
  lib:
    source: {git: ../upstream}
    pin: $(git -C ../upstream rev-parse HEAD~1)
    track: $(git -C ../upstream symbolic-ref --short HEAD)
    patches: [{series: patches/lib/series}]
    upstream_tests:
      run: python3 tests/run.py
END
cd ..
