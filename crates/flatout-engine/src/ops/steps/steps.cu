
// target[i] = factor · Σ source[step][i] over the steps, in their order.
template <int V>
__device__ __forceinline__ void sum_steps(const real* source, real* target, int steps, i64 packs, float factor, int add) {
    EACH(i, packs) {
        float sums[V] = {};
#pragma unroll 4
        for (int step = 0; step < steps; ++step) {
            const Pack<V> values = ((const Pack<V>*)source)[step * packs + i];
#pragma unroll
            for (int v = 0; v < V; ++v) sums[v] += to_float(values.value[v]);
        }
        Pack<V> result;
        if (add) result = ((Pack<V>*)target)[i];
#pragma unroll
        for (int v = 0; v < V; ++v) result.value[v] = to_real((add ? to_float(result.value[v]) : 0.f) + sums[v] * factor);
        ((Pack<V>*)target)[i] = result;
    }
}
// target[step][i] = factor · source[i].
template <int V>
__device__ __forceinline__ void spread_steps(const real* source, real* target, int steps, i64 packs, float factor, int add) {
    EACH(i, steps * packs) {
        const Pack<V> values = ((const Pack<V>*)source)[i % packs];
        Pack<V> result;
        if (add) result = ((Pack<V>*)target)[i];
#pragma unroll
        for (int v = 0; v < V; ++v) result.value[v] = to_real((add ? to_float(result.value[v]) : 0.f) + to_float(values.value[v]) * factor);
        ((Pack<V>*)target)[i] = result;
    }
}
#define STEPS(V)                                                                                                                        \
    extern "C" __global__ void sum_steps_##V(const real* source, real* target, int steps, i64 packs, float factor, int add) {             \
        sum_steps<V>(source, target, steps, packs, factor, add);                                                                         \
    }                                                                                                                                   \
    extern "C" __global__ void spread_steps_##V(const real* source, real* target, int steps, i64 packs, float factor, int add) {          \
        spread_steps<V>(source, target, steps, packs, factor, add);                                                                      \
    }
STEPS(1)
STEPS(8)
