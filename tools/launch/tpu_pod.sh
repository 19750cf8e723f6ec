#!/usr/bin/env bash
# Runs a config on a Cloud TPU pod slice that is asked for as a queued resource.
#
#     PROJECT=my-project ZONE=us-west4-a NAME=nope-fig4 TYPE=v5litepod-256 \
#     VERSION=v2-alpha-tpuv5-lite WORKDIR=/mnt/shared/nope \
#         tools/launch/tpu_pod.sh --config=configs/fig4.py:paper [--config.compute.mesh.data=16 ...]
#
#     NODES=2         so many slices, which the data axis spans (compute.mesh.data a multiple of it)
#     SPOT=1          cheaper machines that may be taken away
#     SOURCE=.        the folder to copy to every host (default: this project)
#
# WORKDIR must be a folder on a file system that all hosts mount (Filestore, or a bucket by gcsfuse).
# Set on every host: nothing; `--distributed=on` has JAX find the others by the TPU's metadata.
# When a slice is taken away: ask again with the same NAME; the command goes on from its checkpoint.
set -euo pipefail

fail() {
    echo "tpu_pod.sh: $*" >&2
    exit 2
}

for name in PROJECT ZONE NAME TYPE VERSION WORKDIR; do
    [ -n "${!name:-}" ] || fail "$name is not set; see the first lines of this file"
done
[ "$#" -gt 0 ] || fail 'give the arguments of experiments.run, --config=... first'

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
where=(--project="$PROJECT" --zone="$ZONE")
request=(--accelerator-type="$TYPE" --runtime-version="$VERSION")
[ -z "${SPOT:-}" ] || request+=(--spot)
if [ "${NODES:-1}" -gt 1 ]; then
    request+=(--node-count="$NODES" --node-prefix="$NAME")
else
    request+=(--node-id="$NAME")
fi

state() {
    gcloud compute tpus queued-resources describe "$NAME" "${where[@]}" \
        --format='value(state.state)' 2>/dev/null || echo MISSING
}

if [ "$(state)" = MISSING ]; then
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

# Each argument once more in quotes, for the shell on the other side.
arguments=$(printf ' %q' "$@")
work=$(printf '%q' "$WORKDIR")
pids=()
for node in "${nodes[@]}"; do
    gcloud compute tpus tpu-vm scp --recurse --worker=all "${where[@]}" \
        "${SOURCE:-$root}" "$node:nope"
    gcloud compute tpus tpu-vm ssh "$node" --worker=all "${where[@]}" --command="
        set -e; cd nope; mkdir -p $work
        [ -d ~/env ] || { python3 -m venv ~/env && ~/env/bin/pip install --quiet -e '.[tpu]'; }
        exec ~/env/bin/python -m experiments.run --distributed=on --workdir=$work$arguments
    " &
    pids+=("$!")
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
exit "$status"
