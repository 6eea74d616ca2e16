#!/bin/bash
# `flatout tune` on a GPU, on the programs as their teams began.
#   benches/tune/h200.sh tune OUT    CNN, MLP and LSTM: at least 3 times their first setting is wanted; about 5 minutes
#   benches/tune/h200.sh grid OUT    a grid of 12 points for the MLP, side by side with what tune finds; about 4 minutes
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
    compare 120 cnn --only tune --budget 85s --program images_cnn
    compare 120 mlp --only tune --budget 85s --program interactions_mlp
    compare 120 lstm --only tune --budget 85s --program stocks_lstm
    ;;
grid) compare 280 grid --only tune,grid --budget 85s --knobs num_workers,persistent_workers,pin_memory,batch_size --program interactions_mlp --grid workers=0,4,8,15 --grid batch=512,2048,8192 ;;
more)
    for name in captcha_cnn returns_gru text_transformer sensors_autoencoder augmented_cnn; do
        compare 75 "$name" --only tune --budget 45s --max-trials 8 --program "$name"
    done
    ;;
*) echo "tune, grid or more"; exit 2 ;;
esac
