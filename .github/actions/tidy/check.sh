# Writes the report of the recordings as Markdown and as SARIF. Fails only where there is none.
set -euo pipefail

folder="$RUNNER_TEMP/torchtidy-check"
rm -rf "$folder"
mkdir -p "$folder"
options=(--format=markdown "--output=$folder/report.md" "--also=sarif=$folder/tidy.sarif")
[[ -z "$TIDY_FAIL_ON" ]] || options+=("--fail-on=$TIDY_FAIL_ON")
[[ -z "$TIDY_BASELINE" ]] || options+=("--baseline=$TIDY_BASELINE")

code=0
tb-tidy check "${options[@]}" -- "$TIDY_TRACES" || code=$?
if [[ ! -s "$folder/report.md" || ! -s "$folder/tidy.sarif" ]]; then
    echo "::error::TorchTidy: \`tb-tidy check\` ended with code $code and without a report; its messages are above."
    exit "$((code == 0 ? 1 : code))"
fi
if ((code > 2)) || { ((code == 2)) && ! grep -q '^## TorchTidy: [0-9]' "$folder/report.md"; }; then
    cat "$folder/report.md" >> "$GITHUB_STEP_SUMMARY"
    echo "::error::TorchTidy: no trace could be read; the job's summary names the reasons."
    exit "$code"
fi

cat "$folder/report.md" >> "$GITHUB_STEP_SUMMARY"
{
    echo "report=$folder/report.md"
    echo "sarif=$folder/tidy.sarif"
    echo "reached=$code"
} >> "$GITHUB_OUTPUT"
