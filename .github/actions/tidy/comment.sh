# Writes the comparison and the report into one comment of the pull request, which later runs update.
set -euo pipefail

most_bytes=60000 # GitHub takes 65,536 characters
body="$RUNNER_TEMP/torchtidy-comment.md"
mark="<!-- torchtidy: ${TIDY_ARTIFACT//[^A-Za-z0-9._-]/-} -->"
{
    echo "$mark"
    [[ -z "$TIDY_COMPARISON" ]] || { cat "$TIDY_COMPARISON"; echo; }
    cat "$TIDY_REPORT"
} | LC_ALL=C awk -v most="$most_bytes" '
    cut { next }
    (bytes += length($0) + 1) > most { cut = 1; print "\nThe rest is in the summary of the job."; next }
    { print }
' > "$body"

# Only a bot's own comment is updated: anybody may write the mark.
comments="repos/$GITHUB_REPOSITORY/issues/$TIDY_PULL_REQUEST/comments"
if ! found="$(gh api --paginate "$comments" \
    "--jq=.[] | select(.user.type == \"Bot\" and (.body | startswith(\"$mark\"))) | .id")"; then
    echo "::warning::TorchTidy: the comments cannot be read; the job needs the permission pull-requests: write."
    exit
fi
if [[ -n "$found" ]]; then
    target=(--method=PATCH "repos/$GITHUB_REPOSITORY/issues/comments/${found%%$'\n'*}")
else
    target=(--method=POST "$comments")
fi
gh api "${target[@]}" "--field=body=@$body" --silent ||
    echo "::warning::TorchTidy: the comment cannot be written; the job needs the permission pull-requests: write."
