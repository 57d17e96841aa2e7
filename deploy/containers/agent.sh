#!/bin/sh
# Starts a command in the agent's image, or waits for those that are started in it later. The agent's key is made at the
# first start and never leaves; its public half goes to /keys/agent/authorized, from where hosts read it.
#   start [COMMAND [ARGUMENT...]]
set -eu
key=$HOME/.ssh/id_ed25519
[ -f "$key" ] || { mkdir -p -m 700 "$HOME/.ssh" && ssh-keygen -q -t ed25519 -N '' -C agent -f "$key"; }
cp "$key.pub" /keys/agent/authorized
[ $# -eq 0 ] || exec "$@"
# The first process takes in those whose parents have ended: `sleep` would not.
sleep infinity &
trap 'kill $!; exit' TERM INT
wait
