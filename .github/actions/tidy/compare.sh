# Compares the recordings with those that the last push to the base branch kept; says so where there are none.
set -euo pipefail

if [[ -z "${GITHUB_BASE_REF:-}" ]]; then
    echo "Not a pull request: there is no base branch to compare with."
    exit
fi
folder="$RUNNER_TEMP/torchtidy-compare"
rm -rf "$folder"
mkdir -p "$folder"

# Of pushes only: a fork may have a branch of the same name, whose artefact would be compared with.
run="$(gh run list "--repo=$GITHUB_REPOSITORY" "--branch=$GITHUB_BASE_REF" "--workflow=$GITHUB_WORKFLOW" --event=push \
    --status=success --limit=1 --json=databaseId '--jq=.[0].databaseId // empty')"
if [[ -z "$run" ]] || ! gh run download "$run" "--repo=$GITHUB_REPOSITORY" "--name=$TIDY_ARTIFACT" "--dir=$folder/base"; then
    echo "::notice::TorchTidy: the base branch has kept no recordings yet, so nothing was compared."
    exit
fi

options=(--format=markdown)
[[ -z "$TIDY_FAIL_ON_REGRESSION" ]] || options+=("--fail-on=regression:$TIDY_FAIL_ON_REGRESSION")
code=0
tb-tidy compare "${options[@]}" -- "$folder/base" "$TIDY_TRACES" > "$folder/comparison.md" || code=$?
((code <= 1)) || [[ "$code" == 2 && -s "$folder/comparison.md" ]] || exit "$code"

cat "$folder/comparison.md" >> "$GITHUB_STEP_SUMMARY"
{
    echo "comparison=$folder/comparison.md"
    echo "slower=$code"
} >> "$GITHUB_OUTPUT"
