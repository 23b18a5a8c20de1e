#!/usr/bin/env bash
# How does a checkout get a virtual environment with uv in it, where only python3 exists?
# Usage: pipeline/setup/venv.sh DIRECTORY
set -euo pipefail

venv=$1
python=""
for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11 python3.10; do
  if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "Python 3.10 or newer is needed; set PYTHON=/path/to/python3 if it is not on PATH." >&2
  exit 2
fi

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  # Debian and Ubuntu ship python3 without these; the package is named after the minor version.
  package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package"
  else
    echo "This Python cannot make virtual environments. Type, then run make again:" >&2
    echo "    sudo apt-get install -y $package" >&2
    exit 2
  fi
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
if [ ! -x "$venv/bin/uv" ]; then
  "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip --default-pip
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'uv>=0.8,<1'
fi
