
template <int V>
__device__ __forceinline__ void gelu_each(const real* input, real* output, i64 packs) {
    EACH(i, packs) {
        Pack<V> values = ((const Pack<V>*)input)[i];
#pragma unroll
        for (int v = 0; v < V; ++v) {
            const float x = to_float(values.value[v]);
            values.value[v] = to_real(0.5f * x * (1.f + erff(x * 0.70710678f)));
        }
        ((Pack<V>*)output)[i] = values;
    }
}
template <int V>
__device__ __forceinline__ void gelu_slope(const real* gradient, const real* input, real* target, i64 packs, int add) {
    EACH(i, packs) {
        const Pack<V> gradients = ((const Pack<V>*)gradient)[i], values = ((const Pack<V>*)input)[i];
        Pack<V> there;
        if (add) there = ((Pack<V>*)target)[i];
#pragma unroll
        for (int v = 0; v < V; ++v) {
            const float x = to_float(values.value[v]);
            const float slope = 0.5f * (1.f + erff(x * 0.70710678f)) + x * 0.39894228f * expf(-0.5f * x * x);
            const float value = to_float(gradients.value[v]) * slope;
            there.value[v] = to_real(add ? to_float(there.value[v]) + value : value);
        }
        ((Pack<V>*)target)[i] = there;
    }
}
// before = gradient · gelu′(input), and its sums by channel.
template <int V>
__device__ __forceinline__ void before_gelu(const real* gradient, const real* input, real* before, float* parts, i64 rows, int channels) {
    const Columns<V> mine(channels);
    float sums[1][V] = {};
    if (mine.active)
#pragma unroll 2
        for (i64 row = mine.first; row < rows; row += mine.stride) {
            const i64 at = row * channels + mine.channel;
            Pack<V> values = *(const Pack<V>*)(gradient + at);
            const Pack<V> inputs = *(const Pack<V>*)(input + at);
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const float x = to_float(inputs.value[v]);
                const float slope = 0.5f * (1.f + erff(x * 0.70710678f)) + x * 0.39894228f * expf(-0.5f * x * x);
                values.value[v] = to_real(to_float(values.value[v]) * slope);
                sums[0][v] += to_float(values.value[v]);
            }
            *(Pack<V>*)(before + at) = values;
        }
    mine.write(sums, parts, channels);
}
#define GELU(V)                                                                                                                   \
    extern "C" __global__ void gelu_forward_##V(const real* input, real* output, i64 packs) { gelu_each<V>(input, output, packs); } \
    extern "C" __global__ void gelu_backward_##V(const real* gradient, const real* input, real* target, i64 packs, int add) {       \
        gelu_slope<V>(gradient, input, target, packs, add);                                                                        \
    }                                                                                                                             \
    extern "C" __global__ void before_gelu_##V(const real* gradient, const real* input, real* before, float* parts, i64 rows, int channels) { \
        before_gelu<V>(gradient, input, before, parts, rows, channels);                                                            \
    }
GELU(1)
GELU(8)
