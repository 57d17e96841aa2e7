#!/bin/sh
# Starts the sshd of a host's image. Its key is made at the first start and never leaves; its public half stands in
# /keys/host/known, in the form of known_hosts. Who holds a key of /keys/agent/authorized may log in as dev.
#   start [OPTION OF SSHD...]
set -eu
key=/etc/ssh/ssh_host_ed25519_key
[ -f "$key" ] || ssh-keygen -q -t ed25519 -N '' -C "$(hostname)" -f "$key"
printf '%s %s\n' "$(hostname)" "$(cut -d ' ' -f 1,2 "$key.pub")" >/keys/host/known
exec /usr/sbin/sshd -D -e "$@"
