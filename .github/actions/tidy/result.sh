# Fails the job where a limit was reached, once everything is written.
set -euo pipefail

failed=0
if [[ "$TIDY_REACHED" == 1 ]]; then
    echo "::error::TorchTidy: a finding is as severe as fail-on says, or more."
    failed=1
fi
if [[ "$TIDY_REACHED" == 2 || "$TIDY_SLOWER" == 2 ]]; then
    echo "::error::TorchTidy: a trace could not be read; the report names it."
    failed=1
fi
if [[ "$TIDY_SLOWER" == 1 ]]; then
    echo "::error::TorchTidy: steps are slower than on the base branch."
    failed=1
fi
exit "$failed"
