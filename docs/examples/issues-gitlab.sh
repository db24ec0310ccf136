#!/bin/sh
# The same with GitLab's command line (glab), as issues-github.sh says.
set -eu
patchkit ci --issues "$@" -o issues --json > issues.json
python3 - <<'END' > issues.tsv
import json
for each in json.load(open("issues.json"))["issues"]:
    if each["change"] != "unchanged":
        print(each["id"], "open" if each["is_open"] else "closed", each["title"], sep="\t")
END
while IFS="$(printf '\t')" read -r id state title; do
    number=$(glab issue list --all --search "$id" --in description --output json \
        | python3 -c 'import json, sys; print(*[each["iid"] for each in json.load(sys.stdin)][:1])')
    if [ -z "$number" ] && [ "$state" = open ]; then
        glab issue create --yes --title "$title" --description "$(cat "issues/$id.md")" --label patchkit
    elif [ -n "$number" ]; then
        glab issue update "$number" --title "$title" --description "$(cat "issues/$id.md")"
        if [ "$state" = open ]; then glab issue reopen "$number"; else glab issue close "$number"; fi
    fi
done < issues.tsv
