#!/bin/sh
# Installs a program from its Debian package, for the tests: the binary, not a running service.
#   install-package.sh PROGRAM PACKAGE
set -e

if command -v "$1" >/dev/null; then exit 0; fi

# A package may start a service unless a policy forbids it.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2"
