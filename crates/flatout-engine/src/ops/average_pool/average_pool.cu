
template <int V>
__device__ __forceinline__ void average(const real* input, real* output, i64 images, int pixels, int channels) {
    const int groups = channels / V;
    EACH(i, images * groups) {
        const real* source = input + i / groups * pixels * channels + i % groups * V;
        float sums[V] = {};
#pragma unroll 4
        for (int pixel = 0; pixel < pixels; ++pixel) {
            const Pack<V> values = *(const Pack<V>*)(source + (i64)pixel * channels);
#pragma unroll
            for (int v = 0; v < V; ++v) sums[v] += to_float(values.value[v]);
        }
        Pack<V> result;
#pragma unroll
        for (int v = 0; v < V; ++v) result.value[v] = to_real(sums[v] / pixels);
        *(Pack<V>*)(output + i * V) = result;
    }
}
template <int V>
__device__ __forceinline__ void average_backward(const real* gradient, real* target, i64 images, int pixels, int channels, int add) {
    const int groups = channels / V;
    EACH(i, images * pixels * groups) {
        const Pack<V> values = *(const Pack<V>*)(gradient + (i / groups / pixels * groups + i % groups) * V);
        Pack<V>* there = (Pack<V>*)(target + i * V);
        Pack<V> result;
        if (add) result = *there;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            const float value = to_float(values.value[v]) / pixels;
            result.value[v] = to_real(add ? to_float(result.value[v]) + value : value);
        }
        *there = result;
    }
}
#define AVERAGE(V)                                                                                                                   \
    extern "C" __global__ void average_pool_forward_##V(const real* input, real* output, i64 images, int pixels, int channels) {       \
        average<V>(input, output, images, pixels, channels);                                                                          \
    }                                                                                                                                \
    extern "C" __global__ void average_pool_backward_##V(const real* gradient, real* target, i64 images, int pixels, int channels, int add) { \
        average_backward<V>(gradient, target, images, pixels, channels, add);                                                         \
    }
AVERAGE(1)
AVERAGE(8)
