#!/usr/bin/env bash
# Installs the Debian packages that tests and local mode need, or those that it is given. Does nothing when they are there.
set -euo pipefail

packages=(ca-certificates conntrack containerd containernetworking-plugins gcc git haproxy iproute2 iptables kmod libc6-dev make nftables procps runc util-linux)
[ $# -eq 0 ] || packages=("$@")
missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
done
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
