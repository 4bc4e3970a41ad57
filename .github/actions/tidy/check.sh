# Writes the report of the recordings as Markdown and as SARIF. Fails only where nothing could be read.
set -euo pipefail

folder="$RUNNER_TEMP/torchtidy-check"
mkdir -p "$folder"
options=(--format=markdown "--output=$folder/report.md")
[[ -z "$TIDY_FAIL_ON" ]] || options+=("--fail-on=$TIDY_FAIL_ON")
[[ -z "$TIDY_BASELINE" ]] || options+=("--baseline=$TIDY_BASELINE")

tb-tidy check --format=sarif "--output=$folder/tidy.sarif" -- "$TIDY_TRACES"
code=0
tb-tidy check "${options[@]}" -- "$TIDY_TRACES" || code=$?
((code <= 1)) || exit "$code"

cat "$folder/report.md" >> "$GITHUB_STEP_SUMMARY"
{
    echo "report=$folder/report.md"
    echo "sarif=$folder/tidy.sarif"
    echo "reached=$code"
} >> "$GITHUB_OUTPUT"
