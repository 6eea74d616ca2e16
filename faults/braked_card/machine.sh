#!/bin/bash
# The machine as this program finds it: a machine whose power supply gives in. The card is a recording, played by the library that stands in for
# the driver's; it lies beside the binary that is run.
export FLATOUT_NVML_LIB=$(dirname "$1")/libflatout_fake_nvml.so FLATOUT_FAKE_NVML=$(cd "$(dirname "$0")" && pwd)/card
[ -f "$FLATOUT_NVML_LIB" ] || { echo "build flatout-fake-nvml first" >&2; exit 2; }
unset CUDA_VISIBLE_DEVICES
exec "$@"
