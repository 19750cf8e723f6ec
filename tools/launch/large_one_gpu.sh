#!/usr/bin/env bash
# What is large, on one GPU: the figures of a stage side by side, in one work folder.
#
#   tools/launch/large_one_gpu.sh STAGE [FLAG ...]
#
#   text        fig1, fig4, fig5, fig_dynamic, fig7    NoPE and RoPE
#   keys        split_seeds                            RoPE, half forget gates, NAPE
#   reach       reach                                  half forget gates, half windows, NAPE
#   table       table2 with LongPPL, after text        NoPE, and RoPE fine-tuned under PI and YaRN
#   checkpoint  recipes                                data/checkpoint, a Hugging Face directory
#
# Run it where data/books is, and for the first four stages data/books_tokenizer
# (configs/books/README.md). A stage stops after MINUTES (9), and started again goes on. SEEDS is (0,),
# WORKDIR work/large, PYTHON python. Flags go to every command: --plan-for=h100 prints what is to be
# made and ends.
set -euo pipefail

name=${0##*/}
needed=(data/books data/books_tokenizer/tokenizer.json)
flags=()
case ${1-} in
    text) figures=(fig1:large fig4:large fig5:large fig_dynamic:large fig7:large) ;;
    keys) figures=(split_seeds:large) ;;
    reach) figures=(reach:large) ;;
    table) figures=(table2:large,longppl) ;;
    checkpoint)
        recipes=nothing,yarn_2,yarn_4,yarn_4+headscale,nothing+headscale,nothing+log
        recipes+=,dropped+short,dropped+short+log
        figures=("checkpoint:$recipes,loss,entropy,keys,text_keys,ruler")
        needed=(data/books data/checkpoint/config.json)
        flags=(--config.init=hf:data/checkpoint --config.data.source=jsonl:data/books
            --config.model.dtype=bfloat16 '--config.lengths=(0.5,1.0,2.0,4.0)'
            --config.search.steps=50 --config.passkey.tests=2 --config.ruler.samples=10)
        ;;
    *)
        echo "$name: the stage is '${1-}'; accepted: text, keys, reach, table, checkpoint" >&2
        exit 2
        ;;
esac
shift
for path in "${needed[@]}"; do
    if [ ! -e "$path" ]; then
        echo "$name: there is no $path here; configs/books/README.md says how to make the books" >&2
        exit 2
    fi
done

workdir=${WORKDIR:-work/large}
mkdir -p "$workdir"
export XLA_PYTHON_CLIENT_PREALLOCATE=false
# Else gradients sum in an order of their own, and a training that goes on differs.
export XLA_FLAGS="--xla_gpu_exclude_nondeterministic_ops=true ${XLA_FLAGS:-}"
commands=()
trap 'kill ${commands[@]+"${commands[@]}"}' TERM INT
for figure in "${figures[@]}"; do
    # TERM, upon which a command saves its training and ends.
    timeout --kill-after=30 "${MINUTES:-9}m" "${PYTHON:-python}" -m experiments.run "$figure" \
        --workdir="$workdir" --config.seeds="${SEEDS:-(0,)}" ${flags[@]+"${flags[@]}"} "$@" &
    commands+=($!)
done
status=0
for command in "${commands[@]}"; do
    wait "$command" || status=$?
    while kill -0 "$command" 2>/dev/null; do # a signal ended the wait: the command still saves
        wait "$command" || status=$?
    done
done
exit "$status"
