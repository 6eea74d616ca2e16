
// activation(max + bias) of each window; `index` keeps which pixel of the window it was. A convolution that is pooled next
// leaves bias and activation to this kernel (both commute with a maximum), where they cost a window's share.
template <int V>
__device__ __forceinline__ void pool_windows(const real* input, const float* bias, real* output, u8* index, i64 pixels, int height, int width, int channels, int size, int activation) {
    const int down = height / size, over = width / size, groups = channels / V;
    EACH(i, pixels * groups) {
        const i64 pixel = i / groups, image = pixel / (down * over);
        const int channel = (int)(i % groups) * V, place = (int)(pixel % (down * over)), row = place / over * size, column = place % over * size;
        const real* source = input + ((image * height + row) * width + column) * channels + channel;
        float best[V];
        Bytes<V> which;
        for (int y = 0; y < size; ++y)
            for (int x = 0; x < size; ++x) {
                const Pack<V> values = *(const Pack<V>*)(source + ((i64)y * width + x) * channels);
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    const float value = to_float(values.value[v]);
                    // NaN wins, as in PyTorch.
                    const bool better = (x == 0 && y == 0) || value > best[v] || value != value;
                    best[v] = better ? value : best[v];
                    which.value[v] = better ? (u8)(y * size + x) : which.value[v];
                }
            }
        Pack<V> result;
#pragma unroll
        for (int v = 0; v < V; ++v) result.value[v] = to_real(activated(bias ? best[v] + bias[channel + v] : best[v], activation));
        *(Pack<V>*)(output + i * V) = result;
        *(Bytes<V>*)(index + i * V) = which;
    }
}
// The gradient goes to the pixel that won, all others of the window get nothing; parts: sums of each channel, for a bias.
template <int V>
__device__ __forceinline__ void pool_windows_backward(const real* gradient, const real* result, const u8* index, real* target, float* parts, i64 pixels, int height, int width, int channels, int size, int activation, int add) {
    const int down = height / size, over = width / size;
    const Columns<V> mine(channels);
    float sums[1][V] = {};
    if (mine.active)
        for (i64 pixel = mine.first; pixel < pixels; pixel += mine.stride) {
            const i64 at = pixel * channels + mine.channel, image = pixel / (down * over);
            const int place = (int)(pixel % (down * over)), row = place / over * size, column = place % over * size;
            Pack<V> values = *(const Pack<V>*)(gradient + at);
            const Bytes<V> which = *(const Bytes<V>*)(index + at);
            if (activation) {
                const Pack<V> results = *(const Pack<V>*)(result + at);
#pragma unroll
                for (int v = 0; v < V; ++v) values.value[v] = to_real(to_float(values.value[v]) * activation_slope(to_float(results.value[v]), activation));
            }
#pragma unroll
            for (int v = 0; v < V; ++v) sums[0][v] += to_float(values.value[v]);
            real* first = target + ((image * height + row) * width + column) * channels + mine.channel;
            for (int y = 0; y < size; ++y)
                for (int x = 0; x < size; ++x) {
                    Pack<V>* there = (Pack<V>*)(first + ((i64)y * width + x) * channels);
                    Pack<V> routed;
                    if (add) routed = *there;
#pragma unroll
                    for (int v = 0; v < V; ++v) {
                        const bool hit = which.value[v] == y * size + x;
                        if (!add) routed.value[v] = hit ? values.value[v] : to_real(0.f);
                        else if (hit) routed.value[v] = to_real(to_float(routed.value[v]) + to_float(values.value[v]));
                    }
                    *there = routed;
                }
        }
    if (parts) mine.write(sums, parts, channels);
}
#define POOL(V)                                                                                                                     \
    extern "C" __global__ void max_pool_forward_##V(const real* input, const float* bias, real* output, u8* index, i64 pixels, int height, int width, int channels, int size, int activation) { \
        pool_windows<V>(input, bias, output, index, pixels, height, width, channels, size, activation);                                \
    }                                                                                                                               \
    extern "C" __global__ void max_pool_backward_##V(const real* gradient, const real* result, const u8* index, real* target, float* parts, i64 pixels, int height, int width, int channels, int size, int activation, int add) { \
        pool_windows_backward<V>(gradient, result, index, target, parts, pixels, height, width, channels, size, activation, add);      \
    }
POOL(1)
POOL(8)
