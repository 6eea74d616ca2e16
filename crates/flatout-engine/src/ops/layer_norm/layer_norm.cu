
// A warp per row. The row is read three times, the last two out of the first-level cache. moments: mean and 1/deviation per row.
template <int V>
__device__ __forceinline__ void layer_norm_row(const real* input, const float* weight, const float* bias, real* output, float* moments, i64 rows, int width, float epsilon) {
    const i64 row = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    const real* source = input + row * width;
    float sum = 0.f, squares = 0.f;
    for (int c = lane * V; c < width; c += 32 * V) {
        const Pack<V> values = *(const Pack<V>*)(source + c);
#pragma unroll
        for (int v = 0; v < V; ++v) sum += to_float(values.value[v]);
    }
    const float mean = warp_sum(sum) / width;
    for (int c = lane * V; c < width; c += 32 * V) {
        const Pack<V> values = *(const Pack<V>*)(source + c);
#pragma unroll
        for (int v = 0; v < V; ++v) {
            const float apart = to_float(values.value[v]) - mean;
            squares += apart * apart;
        }
    }
    const float scale = 1.f / sqrtf(warp_sum(squares) / width + epsilon);
    for (int c = lane * V; c < width; c += 32 * V) {
        Pack<V> values = *(const Pack<V>*)(source + c);
#pragma unroll
        for (int v = 0; v < V; ++v) values.value[v] = to_real((to_float(values.value[v]) - mean) * scale * weight[c + v] + bias[c + v]);
        *(Pack<V>*)(output + row * width + c) = values;
    }
    if (lane == 0) {
        moments[2 * row] = mean;
        moments[2 * row + 1] = scale;
    }
}
template <int V>
__device__ __forceinline__ void layer_norm_row_gradient(const real* gradient, const real* input, const float* weight, const float* moments, real* target, i64 rows, int width, int add) {
    const i64 row = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float mean = moments[2 * row], scale = moments[2 * row + 1];
    float first = 0.f, second = 0.f;
    for (int c = lane * V; c < width; c += 32 * V) {
        const Pack<V> values = *(const Pack<V>*)(input + row * width + c), gradients = *(const Pack<V>*)(gradient + row * width + c);
#pragma unroll
        for (int v = 0; v < V; ++v) {
            const float g = to_float(gradients.value[v]) * weight[c + v];
            first += g;
            second += g * (to_float(values.value[v]) - mean) * scale;
        }
    }
    first = warp_sum(first) / width;
    second = warp_sum(second) / width;
    for (int c = lane * V; c < width; c += 32 * V) {
        const Pack<V> values = *(const Pack<V>*)(input + row * width + c), gradients = *(const Pack<V>*)(gradient + row * width + c);
        Pack<V>* there = (Pack<V>*)(target + row * width + c);
        Pack<V> result;
        if (add) result = *there;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            const float hat = (to_float(values.value[v]) - mean) * scale;
            const float value = scale * (to_float(gradients.value[v]) * weight[c + v] - first - hat * second);
            result.value[v] = to_real(add ? to_float(result.value[v]) + value : value);
        }
        *there = result;
    }
}
// Σ g · x̂ and Σ g of each column.
template <int V>
__device__ __forceinline__ void layer_norm_columns(const real* gradient, const real* input, const float* moments, float* parts, i64 rows, int width) {
    const Columns<V> mine(width);
    float sums[2][V] = {};
    if (mine.active)
#pragma unroll 2
        for (i64 row = mine.first; row < rows; row += mine.stride) {
            const Pack<V> values = *(const Pack<V>*)(input + row * width + mine.channel), gradients = *(const Pack<V>*)(gradient + row * width + mine.channel);
            const float mean = moments[2 * row], scale = moments[2 * row + 1];
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const float g = to_float(gradients.value[v]);
                sums[0][v] += g * (to_float(values.value[v]) - mean) * scale;
                sums[1][v] += g;
            }
        }
    mine.write(sums, parts, width);
}
#define LAYER_NORM(V)                                                                                                                        \
    extern "C" __global__ void layer_norm_forward_##V(const real* input, const float* weight, const float* bias, real* output, float* moments, i64 rows, int width, float epsilon) { \
        layer_norm_row<V>(input, weight, bias, output, moments, rows, width, epsilon);                                                        \
    }                                                                                                                                        \
    extern "C" __global__ void layer_norm_backward_##V(const real* gradient, const real* input, const float* weight, const float* moments, real* target, i64 rows, int width, int add) { \
        layer_norm_row_gradient<V>(gradient, input, weight, moments, target, rows, width, add);                                               \
    }                                                                                                                                        \
    extern "C" __global__ void layer_norm_sums_##V(const real* gradient, const real* input, const float* moments, float* parts, i64 rows, int width) { \
        layer_norm_columns<V>(gradient, input, moments, parts, rows, width);                                                                  \
    }
LAYER_NORM(1)
LAYER_NORM(8)

// Rows of up to 256 · N values that divide by eight, a warp per row: a lane keeps N packs of the row in registers, so that it is read once.
template <int N>
struct NormRow {
    Pack<8> packs[N];
    __device__ __forceinline__ void load(const real* source, int width) {
#pragma unroll
        for (int n = 0; n < N; ++n)
            if (column(n) < width) packs[n] = *(const Pack<8>*)(source + column(n));
    }
    __device__ __forceinline__ float value(int n, int v) const { return to_float(packs[n].value[v]); }
    static __device__ __forceinline__ int column(int n) { return (n * 32 + threadIdx.x % 32) * 8; }
};
template <int N>
__device__ __forceinline__ void layer_norm_whole_row(const real* input, const float* weight, const float* bias, real* output, float* moments, i64 rows, int width, float epsilon) {
    const i64 row = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    NormRow<N> mine;
    mine.load(input + row * width, width);
    float sum = 0.f, squares = 0.f;
#pragma unroll
    for (int n = 0; n < N; ++n)
        if (mine.column(n) < width)
#pragma unroll
            for (int v = 0; v < 8; ++v) sum += mine.value(n, v);
    const float mean = warp_sum(sum) / width;
#pragma unroll
    for (int n = 0; n < N; ++n)
        if (mine.column(n) < width)
#pragma unroll
            for (int v = 0; v < 8; ++v) squares += (mine.value(n, v) - mean) * (mine.value(n, v) - mean);
    const float scale = 1.f / sqrtf(warp_sum(squares) / width + epsilon);
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const int c = mine.column(n);
        if (c >= width) continue;
        Pack<8> result;
#pragma unroll
        for (int v = 0; v < 8; ++v) result.value[v] = to_real((mine.value(n, v) - mean) * scale * weight[c + v] + bias[c + v]);
        *(Pack<8>*)(output + row * width + c) = result;
    }
    if (threadIdx.x % 32 == 0) {
        moments[2 * row] = mean;
        moments[2 * row + 1] = scale;
    }
}
// The input's gradient (unless there is no target) and the sums of weight and bias in one pass. A block of eight warps adds up its rows in
// registers, then its warps in their order. parts: [gridDim.x, 2, width].
template <int N>
__device__ __forceinline__ void layer_norm_whole_gradient(const real* gradient, const real* input, const float* weight, const float* moments, real* target, float* parts, i64 rows, int width, int add) {
    __shared__ float shared[8][256 * N];
    const int warp = threadIdx.x / 32;
    float own[N][8], sums[2][N][8] = {};
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
        for (int v = 0; v < 8; ++v) own[n][v] = NormRow<N>::column(n) < width ? weight[NormRow<N>::column(n) + v] : 0.f;
    for (i64 row = blockIdx.x * 8 + warp; row < rows; row += gridDim.x * 8) {
        const float mean = moments[2 * row], scale = moments[2 * row + 1];
        NormRow<N> values, gradients;
        values.load(input + row * width, width);
        gradients.load(gradient + row * width, width);
        float first = 0.f, second = 0.f;
#pragma unroll
        for (int n = 0; n < N; ++n)
            if (values.column(n) < width)
#pragma unroll
                for (int v = 0; v < 8; ++v) {
                    const float g = gradients.value(n, v), hat = (values.value(n, v) - mean) * scale;
                    sums[0][n][v] += g * hat;
                    sums[1][n][v] += g;
                    first += g * own[n][v];
                    second += g * own[n][v] * hat;
                }
        if (!target) continue;
        first = warp_sum(first) / width;
        second = warp_sum(second) / width;
#pragma unroll
        for (int n = 0; n < N; ++n) {
            if (values.column(n) >= width) continue;
            Pack<8>* there = (Pack<8>*)(target + row * width + values.column(n));
            Pack<8> result;
            if (add) result = *there;
#pragma unroll
            for (int v = 0; v < 8; ++v) {
                const float hat = (values.value(n, v) - mean) * scale;
                const float value = scale * (gradients.value(n, v) * own[n][v] - first - hat * second);
                result.value[v] = to_real(add ? to_float(result.value[v]) + value : value);
            }
            *there = result;
        }
    }
#pragma unroll
    for (int kind = 0; kind < 2; ++kind) {
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
            for (int v = 0; v < 8; ++v) shared[warp][NormRow<N>::column(n) + v] = sums[kind][n][v];
        __syncthreads();
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float sum = 0.f;
#pragma unroll
            for (int other = 0; other < 8; ++other) sum += shared[other][c];
            parts[((i64)blockIdx.x * 2 + kind) * width + c] = sum;
        }
        __syncthreads();
    }
}
#define LAYER_NORM_WHOLE(N)                                                                                                                  \
    extern "C" __global__ void layer_norm_whole_forward_##N(const real* input, const float* weight, const float* bias, real* output, float* moments, i64 rows, int width, float epsilon) { \
        layer_norm_whole_row<N>(input, weight, bias, output, moments, rows, width, epsilon);                                                  \
    }                                                                                                                                        \
    extern "C" __global__ void __launch_bounds__(256) layer_norm_whole_backward_##N(const real* gradient, const real* input, const float* weight, const float* moments, real* target, float* parts, i64 rows, int width, int add) { \
        layer_norm_whole_gradient<N>(gradient, input, weight, moments, target, parts, rows, width, add);                                      \
    }
LAYER_NORM_WHOLE(1)
LAYER_NORM_WHOLE(2)
LAYER_NORM_WHOLE(4)
