#!/usr/bin/env bash
# The size large on one GPU: the figures of a stage side by side, in one work folder.
#
#   tools/launch/large_one_gpu.sh STAGE [FLAG ...]
#
#   text    fig1, fig4, fig5, fig_dynamic, fig7    NoPE and RoPE
#   keys    split_seeds                            RoPE, half forget gates, NAPE
#   reach   reach                                  half forget gates, half windows, NAPE
#   table   table2 with LongPPL, after text        NoPE, and RoPE fine-tuned under PI and YaRN
#
# Run it where data/books and data/books_tokenizer are (configs/books/README.md). A stage stops after
# MINUTES (9), and started again goes on. SEEDS is (0,), WORKDIR work/large, PYTHON python. Flags go
# to every command: --plan-for=h100 prints what is to be made and ends.
set -euo pipefail

name=${0##*/}
case ${1-} in
    text) figures=(fig1:large fig4:large fig5:large fig_dynamic:large fig7:large) ;;
    keys) figures=(split_seeds:large) ;;
    reach) figures=(reach:large) ;;
    table) figures=(table2:large,longppl) ;;
    *)
        echo "$name: the stage is '${1-}'; accepted: text, keys, reach, table" >&2
        exit 2
        ;;
esac
shift
for needed in data/books data/books_tokenizer/tokenizer.json; do
    if [ ! -e "$needed" ]; then
        echo "$name: there is no $needed here; configs/books/README.md says how to make it" >&2
        exit 2
    fi
done

workdir=${WORKDIR:-work/large}
export XLA_PYTHON_CLIENT_PREALLOCATE=false
export JAX_COMPILATION_CACHE_DIR=${JAX_COMPILATION_CACHE_DIR:-$PWD/$workdir/programs}
mkdir -p "$workdir"
commands=()
for figure in "${figures[@]}"; do
    # TERM, upon which a command saves its training and ends.
    timeout --kill-after=30 "${MINUTES:-9}m" "${PYTHON:-python}" -m experiments.run "$figure" \
        --workdir="$workdir" --config.seeds="${SEEDS:-(0,)}" "$@" &
    commands+=($!)
done
status=0
for command in "${commands[@]}"; do
    wait "$command" || status=$?
done
exit "$status"
