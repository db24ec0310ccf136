#!/bin/sh
# The tour that `make demo` gives: the stack verl-npu-index.yaml on its real upstreams.
#
# Needs a package index and nothing else. Works on a copy of manifests/ and patches/ in .demo/, so
# the project's own files stay as they are; .demo/cache is kept, so a second run needs no network.
# Every step says what it shows, and the script stops at the first thing that is not as it says.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
demo=$here/.demo
patchkit=${PATCHKIT:-patchkit}
manifest=verl-npu-index
steps=9
step=0

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$(printf '\033[1m') faint=$(printf '\033[2m') plain=$(printf '\033[0m')
else
    bold='' faint='' plain=''
fi

say() {
    step=$((step + 1))
    printf '\n%s%s of %s. %s%s\n' "$bold" "$step" "$steps" "$1" "$plain"
    shift
    [ $# -eq 0 ] || printf '   %s\n' "$@"
}

fail() {
    printf '\nThe demo stops here: %s\n' "$*" >&2
    exit 1
}

# run CODE COMMAND...: show the command, run it, insist on its exit code.
run() {
    expected=$1
    shift
    printf '%s$ %s%s\n' "$faint" "$*" "$plain"
    code=0
    "$@" || code=$?
    [ "$code" -eq "$expected" ] || fail "exit code $code, not $expected, from: $*"
}

patchkit() { command $patchkit "$@"; }

started=$(date +%s)
export PATCHKIT_CACHE="$demo/cache"
rm -rf "$demo/manifests" "$demo/patches" "$demo/workspace"
mkdir -p "$demo"
cp -R "$here/manifests" "$here/patches" "$demo/"
rm -f "$demo"/manifests/*.lock.json
cd "$demo"

say 'Fetch and apply' \
    'Five upstreams as source distributions from the package index, checked against their SHA-256,' \
    'become git checkouts in .demo/workspace; each patch of ours becomes one commit.'
run 0 patchkit fetch --manifest "$manifest" --quiet
run 0 patchkit apply --manifest "$manifest"
run 0 git -C workspace/megatron-core log --oneline --decorate

say 'Apply again' 'Nothing has changed, so nothing is touched, and nothing is asked of the network.'
run 0 patchkit apply --manifest "$manifest" --offline

say 'Check' 'The same verdict without a checkout: what a CI job runs.'
run 0 patchkit check --manifest "$manifest"

say 'Who did this?' 'The patch that last touched a line of a checkout.'
run 0 git -C workspace/megatron-core blame -L17,17 megatron/core/jit.py

say 'Edit a checkout' \
    'A function of ours gets a better name. patchkit finds the patch that the lines belong to;' \
    '--dry-run shows the plan, refresh writes it.'
edited=workspace/mbridge/mbridge/models/ext/deepseek_v3/dequant_fp8_safetensor_io.py
sed 's/_accelerator/_device_name/' "$edited" > edited.tmp && cat edited.tmp > "$edited" && rm edited.tmp
run 0 patchkit refresh --manifest "$manifest" --dry-run
run 0 patchkit refresh --manifest "$manifest" --quiet
run 1 git diff --no-index --stat "$here/patches" patches

say 'Take it back' 'The edit undone in the checkout, the patch files are what they were, to the byte.'
sed 's/_device_name/_accelerator/' "$edited" > edited.tmp && cat edited.tmp > "$edited" && rm edited.tmp
run 0 patchkit refresh --manifest "$manifest" --quiet
run 0 diff -r "$here/patches" patches

say 'A drift' \
    'Someone moves the pin of megatron-bridge from 0.3.1 to 0.4.0. One patch still fits, at other' \
    'lines; the other does not. check fails (exit code 1), and shows what it expected and found.'
sed -e 's/version: "0.3.1"/version: "0.4.0"/' \
    -e 's/3d5b7400fcabd6e49ae2dfabebd6db2a6a5de3bb6c2b2f96c02e2c825301a763/a66f5c6ac7fe62c4b19cc4ede90d1b9105e74d553541d96e0b60fca08626ddef/' \
    "$here/manifests/$manifest.yaml" > "manifests/$manifest.yaml"
run 1 patchkit check --manifest "$manifest" --component megatron-bridge

before=$(git -C workspace/megatron-bridge rev-parse HEAD)
run 1 patchkit apply --manifest "$manifest" --component megatron-bridge --quiet
[ "$(git -C workspace/megatron-bridge rev-parse HEAD)" = "$before" ] || fail 'the checkout has moved'
printf '   apply refuses as well, and the checkout is still where it was.\n'

say 'The way out' \
    'Upstream has made the same change in 0.4.0. So the patch leaves the series, refresh carries the' \
    'other one to the new pin, and check passes again.'
series=patches/megatron-bridge-0.3.1/series
sed 's/^deepstack-checkpoint.*/# &  (solved upstream in 0.4.0)/' "$here/$series" > "$series"
run 0 patchkit refresh --manifest "$manifest" --component megatron-bridge
run 0 patchkit apply --manifest "$manifest" --component megatron-bridge
run 0 patchkit check --manifest "$manifest" --strict --quiet

say 'A bump' \
    'megatron-core from 0.16.0 to 0.19.2: bump moves the pin and carries each patch there.'
run 0 patchkit bump megatron-core --to 0.19.2 --manifest "$manifest"
run 0 patchkit apply --manifest "$manifest" --component megatron-core

printf 'Done in %s seconds. The checkouts are in .demo/workspace: look around.\n' \
    "$(($(date +%s) - started))"
