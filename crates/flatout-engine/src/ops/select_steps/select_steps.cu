
template <int V>
__device__ __forceinline__ void select_steps(const real* input, real* output, int steps, i64 packs, int stride, int outputs, int reversed) {
    EACH(i, outputs * packs) {
        const int step = i / packs, back = reversed ? step : outputs - 1 - step;
        ((Pack<V>*)output)[i] = ((const Pack<V>*)input)[(i64)(steps - 1 - back * stride) * packs + i % packs];
    }
}
// A step that was not chosen has no gradient.
template <int V>
__device__ __forceinline__ void select_steps_gradient(const real* gradient, real* target, int steps, i64 packs, int stride, int outputs, int reversed, int add) {
    EACH(i, steps * packs) {
        const int distance = steps - 1 - (int)(i / packs), back = distance / stride;
        const bool chosen = distance % stride == 0 && back < outputs;
        if (add && !chosen) continue;
        Pack<V> result, values;
        if (chosen) values = ((const Pack<V>*)gradient)[(i64)(reversed ? back : outputs - 1 - back) * packs + i % packs];
        if (add) result = ((Pack<V>*)target)[i];
#pragma unroll
        for (int v = 0; v < V; ++v) {
            const float value = chosen ? to_float(values.value[v]) : 0.f;
            result.value[v] = to_real(add ? to_float(result.value[v]) + value : value);
        }
        ((Pack<V>*)target)[i] = result;
    }
}
#define SELECT_STEPS(V)                                                                                                                 \
    extern "C" __global__ void select_steps_forward_##V(const real* input, real* output, int steps, i64 packs, int stride, int outputs, int reversed) { \
        select_steps<V>(input, output, steps, packs, stride, outputs, reversed);                                                         \
    }                                                                                                                                   \
    extern "C" __global__ void select_steps_backward_##V(const real* gradient, real* target, int steps, i64 packs, int stride, int outputs, int reversed, int add) { \
        select_steps_gradient<V>(gradient, target, steps, packs, stride, outputs, reversed, add);                                        \
    }
SELECT_STEPS(1)
SELECT_STEPS(8)
