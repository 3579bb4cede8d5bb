#!/bin/sh
# The five acts from a script. Whatever is given goes to `herdbook demo` as it is, and so does its exit code:
#
#   ./run-demo.sh                             told as it happens
#   KEEP=1 ./run-demo.sh                      keep both boxes, so that the next run need not make them
#   ./run-demo.sh --json > acts.json          everything that was measured, as one object
#   ./run-demo.sh --suite my-suite            another project with the same two settings
#   ./run-demo.sh --provider unsafe-process   without isolation, where none can be had
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
herdbook=$root/.venv/bin/herdbook
if [ ! -x "$herdbook" ]; then
    herdbook=$(command -v herdbook) || {
        echo "run-demo.sh: herdbook is not set up yet: run 'make demo' in $root, once" >&2
        exit 1
    }
fi

exec "$herdbook" demo "$@"
