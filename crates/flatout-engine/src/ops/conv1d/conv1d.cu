
// rows[output row][place][channel] = the input step that this place reads, or zero before the sequence.
template <int V>
__device__ __forceinline__ void unfold_steps(const real* input, real* rows, int steps, int batch, int groups, int taps, int dilation, int stride, int outputs) {
    EACH(i, (i64)outputs * batch * taps * groups) {
        const int group = i % groups, place = i / groups % taps;
        const i64 row = i / groups / taps;
        const int step = steps - 1 - (outputs - 1 - (int)(row / batch)) * stride - (taps - 1 - place) * dilation;
        Pack<V> values;
#pragma unroll
        for (int v = 0; v < V; ++v) values.value[v] = to_real(0.f);
        if (step >= 0) values = ((const Pack<V>*)input)[((i64)step * batch + row % batch) * groups + group];
        ((Pack<V>*)rows)[i] = values;
    }
}
// The way back: an input step adds up what all outputs that read it send.
template <int V>
__device__ __forceinline__ void fold_steps(const real* rows, real* target, int steps, int batch, int groups, int taps, int dilation, int stride, int outputs, int add) {
    EACH(i, (i64)steps * batch * groups) {
        const int group = i % groups;
        const i64 row = i / groups;
        const int distance = steps - 1 - (int)(row / batch);
        float sums[V] = {};
        Pack<V> values;
        if (add) {
            values = ((Pack<V>*)target)[i];
#pragma unroll
            for (int v = 0; v < V; ++v) sums[v] = to_float(values.value[v]);
        }
        for (int place = 0; place < taps; ++place) {
            const int back = distance - (taps - 1 - place) * dilation;
            if (back < 0 || back % stride || back / stride >= outputs) continue;
            const i64 output = (i64)(outputs - 1 - back / stride) * batch + row % batch;
            values = ((const Pack<V>*)rows)[(output * taps + place) * groups + group];
#pragma unroll
            for (int v = 0; v < V; ++v) sums[v] += to_float(values.value[v]);
        }
#pragma unroll
        for (int v = 0; v < V; ++v) values.value[v] = to_real(sums[v]);
        ((Pack<V>*)target)[i] = values;
    }
}
// [filter][place][channel] → PyTorch's [filter][channel][place], adding.
extern "C" __global__ void conv1d_weight_gradient(const float* source, float* target, int filters, int channels, int places) {
    EACH(i, (i64)filters * channels * places) {
        const int place = i % places, channel = i / places % channels;
        target[i] += source[(i / places / channels * places + place) * channels + channel];
    }
}
#define CONV1D(V)                                                                                                                         \
    extern "C" __global__ void unfold_steps_##V(const real* input, real* rows, int steps, int batch, int groups, int taps, int dilation, int stride, int outputs) { \
        unfold_steps<V>(input, rows, steps, batch, groups, taps, dilation, stride, outputs);                                               \
    }                                                                                                                                     \
    extern "C" __global__ void fold_steps_##V(const real* rows, real* target, int steps, int batch, int groups, int taps, int dilation, int stride, int outputs, int add) { \
        fold_steps<V>(rows, target, steps, batch, groups, taps, dilation, stride, outputs, add);                                           \
    }
CONV1D(1)
CONV1D(8)
