
// Σ (x − shift) and Σ (x − shift)² of each channel, shift being the first row: then squares do not cancel when the mean is large.
template <int V>
__device__ __forceinline__ void norm_moments(const real* input, float* parts, i64 rows, int channels) {
    const Columns<V> mine(channels);
    float sums[2][V] = {};
    if (mine.active) {
        const Pack<V> shift = *(const Pack<V>*)(input + mine.channel);
#pragma unroll 4
        for (i64 row = mine.first; row < rows; row += mine.stride) {
            const Pack<V> values = *(const Pack<V>*)(input + row * channels + mine.channel);
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const float value = to_float(values.value[v]) - to_float(shift.value[v]);
                sums[0][v] += value;
                sums[1][v] += value * value;
            }
        }
    }
    mine.write(sums, parts, channels);
}
// The sum of one of a part's K rows, by the lanes of a warp; valid in all of them.
__device__ __forceinline__ float norm_total(const float* parts, int count, int kinds, int kind, int channels, int channel) {
    float sum = 0.f;
    for (int part = threadIdx.x % 32; part < count; part += 32) sum += parts[((i64)part * kinds + kind) * channels + channel];
    for (int apart = 16; apart; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
    return sum;
}
// Mean and 1/deviation of the batch, and the running ones moved along. A warp a channel.
extern "C" __global__ void batch_norm_statistics(const real* input, const float* parts, int count, float* moments, float* mean, float* variance, i64 rows, int channels, float epsilon, float momentum) {
    const int channel = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (channel >= channels) return;
    const float first = norm_total(parts, count, 2, 0, channels, channel) / rows, second = norm_total(parts, count, 2, 1, channels, channel) / rows;
    if (threadIdx.x % 32) return;
    const float spread = fmaxf(second - first * first, 0.f), centre = to_float(input[channel]) + first;
    moments[channel] = centre;
    moments[channels + channel] = 1.f / sqrtf(spread + epsilon);
    mean[channel] += momentum * (centre - mean[channel]);
    variance[channel] += momentum * (spread * ((float)rows / max(rows - 1, (i64)1)) - variance[channel]);
}
extern "C" __global__ void batch_norm_running(float* moments, const float* mean, const float* variance, int channels, float epsilon) {
    EACH(channel, channels) {
        moments[channel] = mean[channel];
        moments[channels + channel] = 1.f / sqrtf(variance[channel] + epsilon);
    }
}
template <int V>
__device__ __forceinline__ void norm_apply(const real* input, const float* moments, const float* weight, const float* bias, real* output, i64 rows, int channels, int activation) {
    const Columns<V> mine(channels);
    if (!mine.active) return;
    float factor[V], offset[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
        factor[v] = moments[channels + mine.channel + v] * weight[mine.channel + v];
        offset[v] = bias[mine.channel + v] - moments[mine.channel + v] * factor[v];
    }
#pragma unroll 4
    for (i64 row = mine.first; row < rows; row += mine.stride) {
        Pack<V> values = *(const Pack<V>*)(input + row * channels + mine.channel);
#pragma unroll
        for (int v = 0; v < V; ++v) values.value[v] = to_real(activated(to_float(values.value[v]) * factor[v] + offset[v], activation));
        *(Pack<V>*)(output + row * channels + mine.channel) = values;
    }
}
// The gradient before the activation comes out of the input, which is read anyway: the result is not.
template <int V>
struct NormChannels {
    float mean[V], scale[V], factor[V], offset[V];
    __device__ NormChannels(const float* moments, const float* weight, const float* bias, int channels, int channel) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            mean[v] = moments[channel + v];
            scale[v] = moments[channels + channel + v];
            factor[v] = scale[v] * weight[channel + v];
            offset[v] = bias[channel + v] - mean[v] * factor[v];
        }
    }
    __device__ __forceinline__ float before(int v, float gradient, float x, int activation) const {
        return activation ? gradient * activation_slope(activated(x * factor[v] + offset[v], activation), activation) : gradient;
    }
};
template <int V>
__device__ __forceinline__ void norm_sums(const real* gradient, const real* input, const float* moments, const float* weight, const float* bias, float* parts, i64 rows, int channels, int activation) {
    const Columns<V> mine(channels);
    float sums[2][V] = {};
    if (mine.active) {
        const NormChannels<V> norm(moments, weight, bias, channels, mine.channel);
#pragma unroll 2
        for (i64 row = mine.first; row < rows; row += mine.stride) {
            const Pack<V> values = *(const Pack<V>*)(input + row * channels + mine.channel), gradients = *(const Pack<V>*)(gradient + row * channels + mine.channel);
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const float x = to_float(values.value[v]), g = norm.before(v, to_float(gradients.value[v]), x, activation);
                sums[0][v] += g;
                sums[1][v] += g * (x - norm.mean[v]) * norm.scale[v];
            }
        }
    }
    mine.write(sums, parts, channels);
}
extern "C" __global__ void batch_norm_totals(const float* parts, int count, float* totals, float* weight_gradient, float* bias_gradient, int channels) {
    const int channel = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (channel >= channels) return;
    const float first = norm_total(parts, count, 2, 0, channels, channel), second = norm_total(parts, count, 2, 1, channels, channel);
    if (threadIdx.x % 32) return;
    totals[channel] = first;
    totals[channels + channel] = second;
    bias_gradient[channel] += first;
    weight_gradient[channel] += second;
}
template <int V>
__device__ __forceinline__ void norm_gradient(const real* gradient, const real* input, const float* moments, const float* weight, const float* bias, const float* totals, real* target, i64 rows, int channels, int activation, int add) {
    const Columns<V> mine(channels);
    if (!mine.active) return;
    const NormChannels<V> norm(moments, weight, bias, channels, mine.channel);
    float first[V], second[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
        first[v] = totals[mine.channel + v] / rows;
        second[v] = totals[channels + mine.channel + v] / rows * norm.scale[v];
    }
#pragma unroll 2
    for (i64 row = mine.first; row < rows; row += mine.stride) {
        const Pack<V> values = *(const Pack<V>*)(input + row * channels + mine.channel), gradients = *(const Pack<V>*)(gradient + row * channels + mine.channel);
        Pack<V>* there = (Pack<V>*)(target + row * channels + mine.channel);
        Pack<V> result;
        if (add) result = *there;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            const float x = to_float(values.value[v]), g = norm.before(v, to_float(gradients.value[v]), x, activation);
            const float value = norm.factor[v] * (g - first[v] - (x - norm.mean[v]) * second[v]);
            result.value[v] = to_real(add ? to_float(result.value[v]) + value : value);
        }
        *there = result;
    }
}
#define NORM(V)                                                                                                                              \
    extern "C" __global__ void batch_norm_moments_##V(const real* input, float* parts, i64 rows, int channels) { norm_moments<V>(input, parts, rows, channels); } \
    extern "C" __global__ void batch_norm_apply_##V(const real* input, const float* moments, const float* weight, const float* bias, real* output, i64 rows, int channels, int activation) { \
        norm_apply<V>(input, moments, weight, bias, output, rows, channels, activation);                                                      \
    }                                                                                                                                        \
    extern "C" __global__ void batch_norm_sums_##V(const real* gradient, const real* input, const float* moments, const float* weight, const float* bias, float* parts, i64 rows, int channels, int activation) { \
        norm_sums<V>(gradient, input, moments, weight, bias, parts, rows, channels, activation);                                              \
    }                                                                                                                                        \
    extern "C" __global__ void batch_norm_gradient_##V(const real* gradient, const real* input, const float* moments, const float* weight, const float* bias, const float* totals, real* target, i64 rows, int channels, int activation, int add) { \
        norm_gradient<V>(gradient, input, moments, weight, bias, totals, target, rows, channels, activation, add);                            \
    }
NORM(1)
NORM(8)
