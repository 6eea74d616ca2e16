#!/bin/bash
# The machine as this program finds it: a container with 64 MiB of shared memory, as Docker's default is.
exec unshare --user --map-root-user --mount bash -c 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"' machine "$@"
