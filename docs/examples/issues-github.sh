#!/bin/sh
# Posts one issue for each open cause, updates it, and closes it when it is mended:
#   patchkit drift --format json --output drift.json; sh issues-github.sh drift.json
# Needs gh with a token that may write issues. The folder issues/ is the memory (keep it in a cache or
# on a branch); where it was lost, issues are found again by the id in their text.
set -eu
patchkit ci --issues "$@" -o issues --json > issues.json
python3 - <<'END' > issues.tsv
import json
for each in json.load(open("issues.json"))["issues"]:
    if each["change"] != "unchanged":
        print(each["id"], "open" if each["is_open"] else "closed", each["title"], sep="\t")
END
while IFS="$(printf '\t')" read -r id state title; do
    number=$(gh issue list --state all --search "$id in:body" --json number --jq '.[0].number // ""')
    if [ -z "$number" ] && [ "$state" = open ]; then
        gh issue create --title "$title" --body-file "issues/$id.md" --label patchkit
    elif [ -n "$number" ]; then
        gh issue edit "$number" --title "$title" --body-file "issues/$id.md"
        if [ "$state" = open ]; then gh issue reopen "$number"; else gh issue close "$number"; fi
    fi
done < issues.tsv
