
extern "C" __global__ void activate(real* values, i64 count, int activation) {
    EACH(i, count) values[i] = to_real(activated(to_float(values[i]), activation));
}

// A layer with few outputs is no work for the tensor cores: a warp makes one row.
extern "C" __global__ void narrow_forward(const real* input, const float* weight, const float* bias, real* output, i64 rows, int inputs, int outputs, int activation) {
    const i64 row = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    for (int o = 0; o < outputs; ++o) {
        float sum = 0.f;
        for (int k = lane; k < inputs; k += 32) sum += to_float(input[row * inputs + k]) * weight[o * inputs + k];
        for (int apart = 16; apart; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
        if (lane == 0) output[row * outputs + o] = to_real(activated(sum + bias[o], activation));
    }
}
template <int V>
__device__ __forceinline__ void narrow_inputs(const real* before, const float* weight, real* target, i64 rows, int inputs, int outputs, int add) {
    const Columns<V> mine(inputs);
    if (!mine.active) return;
    for (i64 row = mine.first; row < rows; row += mine.stride) {
        Pack<V>* there = (Pack<V>*)(target + row * inputs + mine.channel);
        float sums[V] = {};
        Pack<V> result;
        if (add) {
            result = *there;
#pragma unroll
            for (int v = 0; v < V; ++v) sums[v] = to_float(result.value[v]);
        }
        for (int o = 0; o < outputs; ++o) {
            const float gradient = to_float(before[row * outputs + o]);
#pragma unroll
            for (int v = 0; v < V; ++v) sums[v] += gradient * weight[o * inputs + mine.channel + v];
        }
#pragma unroll
        for (int v = 0; v < V; ++v) result.value[v] = to_real(sums[v]);
        *there = result;
    }
}
// parts: [outputs, gridDim.x, inputs].
template <int V>
__device__ __forceinline__ void narrow_weights(const real* before, const real* input, float* parts, i64 rows, int inputs, int outputs) {
    const Columns<V> mine(inputs);
    for (int o = 0; o < outputs; ++o) {
        float sums[1][V] = {};
        if (mine.active)
#pragma unroll 4
            for (i64 row = mine.first; row < rows; row += mine.stride) {
                const Pack<V> values = *(const Pack<V>*)(input + row * inputs + mine.channel);
                const float gradient = to_float(before[row * outputs + o]);
#pragma unroll
                for (int v = 0; v < V; ++v) sums[0][v] += gradient * to_float(values.value[v]);
            }
        mine.write(sums, parts + (i64)o * gridDim.x * inputs, inputs);
    }
}
#define NARROW(V)                                                                                                                         \
    extern "C" __global__ void narrow_inputs_##V(const real* before, const float* weight, real* target, i64 rows, int inputs, int outputs, int add) { \
        narrow_inputs<V>(before, weight, target, rows, inputs, outputs, add);                                                              \
    }                                                                                                                                     \
    extern "C" __global__ void narrow_weights_##V(const real* before, const real* input, float* parts, i64 rows, int inputs, int outputs) { \
        narrow_weights<V>(before, input, parts, rows, inputs, outputs);                                                                    \
    }
NARROW(1)
NARROW(8)
