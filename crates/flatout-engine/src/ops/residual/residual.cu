
template <int V>
__device__ __forceinline__ void residual_sum(const real* a, const real* b, real* output, i64 packs, int activation) {
    EACH(i, packs) {
        const Pack<V> first = ((const Pack<V>*)a)[i], second = ((const Pack<V>*)b)[i];
        Pack<V> result;
#pragma unroll
        for (int v = 0; v < V; ++v) result.value[v] = to_real(activated(to_float(first.value[v]) + to_float(second.value[v]), activation));
        ((Pack<V>*)output)[i] = result;
    }
}
// target = gradient · f′(result), or target += …, and the same for a second target unless there is none.
template <int V>
__device__ __forceinline__ void residual_gradient(const real* gradient, const real* output, real* target, real* second, i64 packs, int activation, int add, int add_second) {
    EACH(i, packs) {
        Pack<V> gradients = ((const Pack<V>*)gradient)[i];
        if (activation) {
            const Pack<V> results = ((const Pack<V>*)output)[i];
#pragma unroll
            for (int v = 0; v < V; ++v) gradients.value[v] = to_real(to_float(gradients.value[v]) * activation_slope(to_float(results.value[v]), activation));
        }
#pragma unroll
        for (int which = 0; which < 2; ++which) {
            Pack<V>* there = (Pack<V>*)(which ? second : target);
            if (!there) continue;
            Pack<V> result = gradients;
            if (which ? add_second : add) {
                result = there[i];
#pragma unroll
                for (int v = 0; v < V; ++v) result.value[v] = to_real(to_float(result.value[v]) + to_float(gradients.value[v]));
            }
            there[i] = result;
        }
    }
}
#define RESIDUAL(V)                                                                                                                    \
    extern "C" __global__ void residual_sum_##V(const real* a, const real* b, real* output, i64 packs, int activation) {                 \
        residual_sum<V>(a, b, output, packs, activation);                                                                               \
    }                                                                                                                                  \
    extern "C" __global__ void residual_gradient_##V(const real* gradient, const real* output, real* target, real* second, i64 packs, int activation, int add, int add_second) { \
        residual_gradient<V>(gradient, output, target, second, packs, activation, add, add_second);                                     \
    }
RESIDUAL(1)
RESIDUAL(8)
