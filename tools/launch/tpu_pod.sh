#!/usr/bin/env bash
# Runs a config on a Cloud TPU pod slice that is asked for as a queued resource.
#
#     PROJECT=my-project ZONE=us-west4-a NAME=nope-fig4 TYPE=v5litepod-256 \
#     VERSION=v2-alpha-tpuv5-lite WORKDIR=/mnt/shared/nope \
#         tools/launch/tpu_pod.sh --config=configs/first_paper/fig4.py:paper [--config.compute.mesh.data=16 ...]
#
#     NODES=2         so many slices, which the data axis spans (compute.mesh.data a multiple of it)
#     SPOT=1          cheaper machines that may be taken away
#     PYTHON=python3.11   on the hosts, 3.11 or newer (default: python3)
#
# Several slices: give the later mesh a data axis over them too, for example for two slices
#     --config.compute.mesh.data=2 --config.compute.later_mesh.data=2 \
#         --config.compute.later_mesh.fsdp=4
#
# Copies what git tracks here, as it is now, to every host, and installs it there the first time.
# WORKDIR must be a folder on a file system that all hosts mount (Filestore, or a bucket by gcsfuse).
# Set on every host: nothing; `--distributed=on` has JAX find the others by the TPU's metadata.
# Ctrl-C here, or a lost connection, leaves the hosts at work; a second start there is refused.
# When a slice is taken away: the same line again. It asks for the slice anew (a queued resource that
# was taken away stays so), and the command goes on from its checkpoint.
set -euo pipefail

fail() {
    echo "tpu_pod.sh: $*" >&2
    exit 2
}

for name in PROJECT ZONE NAME TYPE VERSION WORKDIR; do
    [ -n "${!name:-}" ] || fail "$name is not set; see the first lines of this file"
done
[ "$#" -gt 0 ] || fail 'give the arguments of nope run, --config=... first'

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
where=(--project="$PROJECT" --zone="$ZONE")
request=(--accelerator-type="$TYPE" --runtime-version="$VERSION")
[ -z "${SPOT:-}" ] || request+=(--spot)
if [ "${NODES:-1}" -gt 1 ]; then
    request+=(--node-count="$NODES" --node-prefix="$NAME")
else
    request+=(--node-id="$NAME")
fi

packed=$(mktemp -d)
trap 'rm -rf "$packed"' EXIT

# A request that fails for a while says nothing of the resource.
state() {
    gcloud compute tpus queued-resources describe "$NAME" "${where[@]}" \
        --format='value(state.state)' 2>"$packed/said" && return
    if grep -q NOT_FOUND "$packed/said"; then echo MISSING; else echo UNKNOWN; fi
}

found=$(state)
[ "$found" != UNKNOWN ] || fail "$(cat "$packed/said")"
if [ "$found" = FAILED ] || [ "$found" = SUSPENDED ]; then
    gcloud compute tpus queued-resources delete "$NAME" "${where[@]}" --force --quiet
    found=MISSING
fi
if [ "$found" = MISSING ]; then
    gcloud compute tpus queued-resources create "$NAME" "${where[@]}" "${request[@]}"
fi
while found=$(state) && [ "$found" != ACTIVE ]; do
    case $found in
    FAILED | SUSPENDED | MISSING) fail "the queued resource $NAME is $found" ;;
    esac
    echo "$(date +%T) $NAME is $found"
    sleep 30
done

nodes=("$NAME")
if [ "${NODES:-1}" -gt 1 ]; then
    nodes=()
    for ((i = 0; i < NODES; i++)); do nodes+=("$NAME-$i"); done
fi

# What the hosts run: the files that git tracks, as they are here.
archive=$packed/nope.tar
git -C "$root" ls-files -z |
    tar --create --file="$archive" --directory="$root" --null --files-from=-

# Each argument once more in quotes, for the shell on the other side.
arguments=$(printf ' %q' "$@")
work=$(printf '%q' "$WORKDIR")
remote_python=$(printf '%q' "${PYTHON:-python3}")
pids=()
for node in "${nodes[@]}"; do
    gcloud compute tpus tpu-vm scp --worker=all "${where[@]}" "$archive" "$node:nope.tar" &
    pids+=("$!")
done
for pid in "${pids[@]}"; do wait "$pid"; done
# At once, since the first slice waits for the others, but not for ever. nohup: a machine that is taken
# away sends a SIGHUP behind its SIGTERM, which would end the command before it has saved.
pids=()
for node in "${nodes[@]}"; do
    gcloud compute tpus tpu-vm ssh "$node" --worker=all "${where[@]}" --command="
        set -e
        exec 9>nope.lock
        flock --nonblock 9 || { echo 'tpu_pod.sh: the command still runs on this host' >&2; exit 75; }
        rm -rf nope; mkdir -p nope $work; tar --extract --file=nope.tar --directory=nope; cd nope
        if ! cmp -s pyproject.toml ~/env/installed; then
            $remote_python -c 'import sys; assert sys.version_info >= (3, 11), sys.version' || {
                echo 'tpu_pod.sh: the hosts need Python 3.11 or newer; set PYTHON' >&2; exit 2
            }
            rm -rf ~/env; $remote_python -m venv ~/env
            ~/env/bin/pip install --quiet -e '.[tpu,gcs]'
            cp pyproject.toml ~/env/installed
        fi
        exec nohup ~/env/bin/python -m experiments.run --distributed=on --workdir=$work$arguments
    " &
    pids+=("$!")
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
exit "$status"
