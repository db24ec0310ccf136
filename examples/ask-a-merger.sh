#!/bin/sh
# Makes what docs/howto/ask-a-merger.md starts from, in the current folder.
set -e
sh "$(dirname "$0")/resolve-a-conflict.sh"
cd project
cat > unite.py <<'EOF'
"""Unite the arguments that both sides add to one call, in the file with conflict markers."""
import os, re, sys
result = os.environ["PATCHKIT_RESULT"]
text = open(result).read()
conflict = re.compile(r"<<<<<<< .*\n(.*)\n\|\|\|\|\|\|\| .*\n(.*)\n=======\n(.*)\n>>>>>>> .*")
def united(found):
    upstream, base, patch = found.groups()
    if not upstream.startswith(base[:-1]) or not patch.startswith(base[:-1]):
        sys.exit(1)
    return upstream[:-1] + patch[len(base) - 1:]
open(result, "w").write(conflict.sub(united, text))
EOF
cat >> manifests/hello.yaml <<EOF
mergers:
  - files: ['**/*.py']
    run: python3 $PWD/unite.py
    name: unite
EOF
git add . && git commit -q -m 'Name a merger'
cd ..
