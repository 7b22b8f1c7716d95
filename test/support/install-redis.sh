#!/bin/sh
# Installs redis-server from Debian's package, for the tests: the binary, not a running service.
set -e

if command -v redis-server >/dev/null; then exit 0; fi

# The package starts a server on port 6379 unless a policy forbids it.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server
