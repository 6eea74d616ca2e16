#!/bin/sh
# Compares the layout of CUPTI's records over its versions: downloads the headers from PyPI, prints the offsets of the first
# version and what differs in the others (nothing, when src/layout.rs was written). Needs gcc, pip, unzip and a network.
set -eu
here=$(dirname "$(realpath "$0")")
cd "$(mktemp -d)"
wheel() { # folder, requirement
    mkdir -p "$1"
    for platform in manylinux2014_x86_64 manylinux_2_25_x86_64 manylinux1_x86_64; do
        pip download -q --no-deps --only-binary=:all: --platform "$platform" -d "$1" "$2" 2>/dev/null && break
    done
    unzip -qo "$1"/*.whl -d "$1"
}
include() { dirname "$(find "$1" -name "$2" | head -1)"; }
wheel crt nvidia-cuda-crt==13.0.88
wheel runtime nvidia-cuda-runtime==13.0.96
common="-I$(include runtime cuda.h) -I$(dirname "$(include crt host_defines.h)")"
first=
for requirement in cuda-cupti-cu11==11.8.87 cuda-cupti-cu12==12.1.105 cuda-cupti-cu12==12.4.127 cuda-cupti-cu12==12.6.80 \
    cuda-cupti-cu12==12.8.90 cuda-cupti-cu12==12.9.79 cuda-cupti==13.0.85 cuda-cupti==13.2.86 cuda-cupti==13.4.92; do
    version=${requirement##*=}
    wheel "$version" "nvidia-$requirement"
    headers=$(include "$version" cupti_activity.h)
    newest() { # The struct of a kind that this version's library fills in.
        grep -ho "} CUpti_Activity$1[0-9]*;" "$headers/cupti_activity.h" | tr -d '};' | sort -V | tail -1
    }
    gcc -w "-I$headers" $common "-DKERNEL=$(newest Kernel)" "-DMEMCPY=$(newest Memcpy)" "-DPEER=$(newest MemcpyPtoP)" \
        "-DMEMSET=$(newest Memset)" "-DSYNC=$(newest Synchronization)" "-DAPI=CUpti_ActivityAPI" \
        "-DOVERHEAD=$(newest Overhead)" "-DGRAPH=$(newest GraphTrace)" "$here/offsets.c" -o "$version/offsets"
    "$version/offsets" | sed 's/CUpti_Activity//; s/^\([A-Za-z]*\)[0-9]* /\1 /' >"$version.txt"
    echo "$version: $(newest Kernel), $(newest Memcpy), $(newest Memset)"
    if [ -z "$first" ]; then first=$version.txt && cat "$first"; else diff "$first" "$version.txt" && echo "  the same"; fi
done
