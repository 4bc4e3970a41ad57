#!/bin/sh
# `tests/fuzz/sanitized.sh PYTHON [options of tests.fuzz]`: fuzzes with the compiled decoder under AddressSanitizer and
# UndefinedBehaviorSanitizer, built by gcc into a folder of its own. Python's own allocator would hide what is behind an
# object; what Python itself never frees is no finding.
set -eu
python=$1
shift
built=build/sanitized
mkdir -p "$built/tb_tidy_plugin"
cp -r tb_tidy_plugin setup.py README.md LICENSE tests "$built/"
rm -f "$built"/tb_tidy_plugin/*/*.so
cd "$built"
flags="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1 -g"
CFLAGS=$flags LDFLAGS="-fsanitize=address,undefined" TORCHTIDY_EXTENSION=require \
    "$python" setup.py --quiet build_ext --inplace
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
    PYTHONMALLOC=malloc PYTHONPATH=. "$python" -m tests.fuzz "$@"
