#!/bin/bash
# `flatout tune` on a GPU, on the programs as their teams began.
#   benches/tune/h200.sh tune OUT    CNN, MLP and LSTM: at least 3 times their first setting is wanted; for the MLP a grid of 12 points
#                                    beside it; about 6 minutes
#   benches/tune/h200.sh more OUT    the other five programs; about 5 minutes
# FLATOUT: the binary (default target/release/flatout). PYTHON: one with torch (default python3).
set -u
cd "$(dirname "$0")/../.."
part=${1:-tune} out=${2:-.}
flatout=${FLATOUT:-target/release/flatout} python=${PYTHON:-python3}
mkdir -p "$out"
compare() { timeout "$1" "$python" benches/tune/compare.py --flatout "$flatout" --seconds 3 --out "$out/tune-$2.json" "${@:3}" 2>&1 | tee "$out/tune-$2.log"; }
case $part in
tune)
    compare 100 cnn --only tune --budget 60s --program images_cnn
    compare 240 mlp --only tune,grid --budget 60s --program interactions_mlp --grid workers=0,4,8,15 --grid batch=512,2048,8192
    compare 100 lstm --only tune --budget 60s --program stocks_lstm
    ;;
more)
    for name in captcha_cnn returns_gru text_transformer sensors_autoencoder augmented_cnn; do
        compare 75 "$name" --only tune --budget 45s --max-trials 8 --program "$name"
    done
    ;;
*) echo "tune or more"; exit 2 ;;
esac
