#!/bin/bash
# `flatout tune` on a GPU, on the programs as their teams began; about four minutes for each part.
#   benches/tune/h200.sh tune OUT    LSTM, MLP and CNN: at least 3 times their first setting is wanted
#   benches/tune/h200.sh more OUT    the other five programs
#   benches/tune/h200.sh grid OUT    a grid of 12 points for the MLP, side by side with what tune found
# FLATOUT: the binary (default target/release/flatout). PYTHON: one with torch (default python3).
set -u
cd "$(dirname "$0")/../.."
part=${1:-tune} out=${2:-.}
flatout=${FLATOUT:-target/release/flatout} python=${PYTHON:-python3}
mkdir -p "$out"
compare() { "$python" benches/tune/compare.py --flatout "$flatout" --seconds 2 --out "$out/tune-$1.json" "${@:2}" 2>&1 | tee "$out/tune-$1.log"; }
case $part in
tune) compare tune --only tune --max-trials 12 --budget 70s --program stocks_lstm --program interactions_mlp --program images_cnn ;;
more) compare more --only tune --max-trials 8 --budget 45s --program returns_gru --program captcha_cnn --program text_transformer --program sensors_autoencoder --program augmented_cnn ;;
grid) compare grid --only tune,grid --max-trials 12 --budget 80s --program interactions_mlp --grid workers=0,4,8,15 --grid batch=512,2048,8192 ;;
*) echo "tune, more or grid"; exit 2 ;;
esac
