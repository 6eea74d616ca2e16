
template <int V>
__device__ __forceinline__ void upsample(const real* input, real* output, i64 images, int height, int width, int groups, int output_height, int output_width) {
    EACH(i, images * output_height * output_width * groups) {
        const int group = i % groups, x = i / groups % output_width, y = i / groups / output_width % output_height;
        const i64 image = i / groups / output_width / output_height;
        const i64 from = (image * height + (i64)y * height / output_height) * width + (i64)x * width / output_width;
        ((Pack<V>*)output)[i] = ((const Pack<V>*)input)[from * groups + group];
    }
}
// A pixel adds up its copies.
template <int V>
__device__ __forceinline__ void upsample_gradient(const real* gradient, real* target, i64 images, int height, int width, int groups, int output_height, int output_width, int add) {
    EACH(i, images * height * width * groups) {
        const int group = i % groups, x = i / groups % width, y = i / groups / width % height;
        const i64 image = i / groups / width / height;
        float sums[V] = {};
        Pack<V> values;
        if (add) {
            values = ((Pack<V>*)target)[i];
#pragma unroll
            for (int v = 0; v < V; ++v) sums[v] = to_float(values.value[v]);
        }
        const int bottom = ((i64)(y + 1) * output_height + height - 1) / height, right = ((i64)(x + 1) * output_width + width - 1) / width;
        for (int down = ((i64)y * output_height + height - 1) / height; down < bottom; ++down)
            for (int over = ((i64)x * output_width + width - 1) / width; over < right; ++over) {
                values = ((const Pack<V>*)gradient)[((image * output_height + down) * output_width + over) * groups + group];
#pragma unroll
                for (int v = 0; v < V; ++v) sums[v] += to_float(values.value[v]);
            }
#pragma unroll
        for (int v = 0; v < V; ++v) values.value[v] = to_real(sums[v]);
        ((Pack<V>*)target)[i] = values;
    }
}
#define UPSAMPLE(V)                                                                                                                       \
    extern "C" __global__ void upsample_forward_##V(const real* input, real* output, i64 images, int height, int width, int groups, int output_height, int output_width) { \
        upsample<V>(input, output, images, height, width, groups, output_height, output_width);                                            \
    }                                                                                                                                     \
    extern "C" __global__ void upsample_backward_##V(const real* gradient, real* target, i64 images, int height, int width, int groups, int output_height, int output_width, int add) { \
        upsample_gradient<V>(gradient, target, images, height, width, groups, output_height, output_width, add);                           \
    }
UPSAMPLE(1)
UPSAMPLE(8)
