#!/bin/sh
# Makes what docs/howto/generate-a-patch.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
mkdir -p fast/ops
printf 'from fast.jit import fuser\n\n\n@fuser\ndef scale(x, factor):\n    return x * factor\n\n\n@fuser\ndef shift(x, by):\n    return x + by\n' > fast/ops/basic.py
printf 'from fast.jit import fuser\n\n\nclass Norm:\n    @fuser  # hot\n    def forward(self, x):\n        return x / x.sum()\n' > fast/ops/norm.py
printf 'def fuser(function):\n    return function\n' > fast/jit.py
git add . && git commit -q -m 'Operators'
sed -i 's/x + by/by + x/' fast/ops/basic.py
printf '\n\n@fuser\ndef clip(x, limit):\n    return min(x, limit)\n' >> fast/ops/basic.py
git commit -q -a -m 'Clip'
cd .. && mkdir project && cd project
patchkit init fast --git ../upstream --ref "$(git -C ../upstream rev-parse HEAD~1)" --component fast
cd ..
