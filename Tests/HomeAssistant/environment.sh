#!/bin/sh
# environment.sh FOLDER: makes an environment with Home Assistant from the Python package index in FOLDER.
# Exits with 77 where none can be had: Home Assistant needs Python 3.13.
set -eu
folder=$1
here=$(dirname "$0")
[ -x "$folder/bin/hass" ] && cmp -s "$here/requirements.txt" "$folder/requirements.txt" && exit

skip() { echo "make: no Home Assistant: $1" >&2; exit 77; }

find_python() {
    for python in python3.13 python3 "$HOME"/.pyenv/versions/3.13*/bin/python3; do
        "$python" -c 'import sys, venv; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null && return
    done
    return 1
}

find_python || skip 'it needs Python 3.13'
echo 'make: installing Home Assistant into .build (about 4 minutes, once)'
rm -rf "$folder"
"$python" -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" ||
    skip 'it cannot be installed from the Python package index'
cp "$here/requirements.txt" "$folder/requirements.txt"
