// What every kernel may use. REAL is the type of activations: 0 for f32, 1 for bf16, 2 for f16. Sums are f32 or wider.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#if REAL == 0
typedef float real;
__device__ __forceinline__ float to_float(real x) { return x; }
__device__ __forceinline__ real to_real(float x) { return x; }
#elif REAL == 1
typedef unsigned short real;
__device__ __forceinline__ float to_float(real x) { return __uint_as_float((u32)x << 16); }
__device__ __forceinline__ real to_real(float x) {
    real y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}
#else
typedef unsigned short real;
__device__ __forceinline__ float to_float(real x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}
__device__ __forceinline__ real to_real(float x) {
    real y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}
#endif

// Written by the host before each step. The same layout stands in control.rs.
struct Control {
    int valid_rows;
    float loss_weight;
    float learning_rate;
    float step_size;
    float correction;
    float keep;
    u64 tick;
    u64 seed;
    u64 update;  // that this step belongs to, counted from 1
    u64 epoch;
};

// Written by the card, read by the host when somebody asks. The same layout stands in control.rs.
struct Results {
    double loss[2];  // training, evaluation: sums over rows
    double rows[2];
    float norm;
    float factor;
    int bad_index;
    int good;      // updates since the scale last changed
    float scale;   // on gradients, so that f16 does not lose the small ones; 1 in other precisions
    int skipped;   // updates left out because a gradient was not finite
    u64 first_bad; // the first update whose loss was not finite; 0 for none
};

#define EACH(i, count) for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < (count); i += (i64)gridDim.x * blockDim.x)

// The counter-based random numbers of random.rs: the same bits on every device.
__device__ __forceinline__ u64 mix(u64 x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}
__device__ __forceinline__ u64 stream_key(u64 seed, u64 purpose, u64 step) {
    const u64 golden = 0x9e3779b97f4a7c15ull;
    u64 key = mix(seed + golden);
    key = mix(key ^ (purpose * golden));
    return mix(key ^ (step * 0xd1b54a32d192ed03ull));
}
__device__ __forceinline__ float dropout_factor(u64 key, u64 index, u64 threshold, float scale) {
    return (mix(key + index * 0x9e3779b97f4a7c15ull) >> 32) >= threshold ? scale : 0.f;
}

// The sum over a block of up to 1,024 threads, in a fixed order; valid in thread 0.
template <typename T>
__device__ __forceinline__ T block_sum(T value) {
    __shared__ T parts[32];
    for (int apart = 16; apart; apart /= 2) value += __shfl_down_sync(0xffffffffu, value, apart);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < (blockDim.x + 31) / 32 ? parts[threadIdx.x] : T(0);
    if (threadIdx.x < 32)
        for (int apart = 16; apart; apart /= 2) value += __shfl_down_sync(0xffffffffu, value, apart);
    return value;
}

// The sum over a warp, valid in all of its lanes.
__device__ __forceinline__ float warp_sum(float value) {
    for (int apart = 16; apart; apart /= 2) value += __shfl_xor_sync(0xffffffffu, value, apart);
    return value;
}

// The activations of activation.rs by their codes, and their slope out of their result.
__device__ __forceinline__ float activated(float x, int activation) {
    return activation == 1 ? (x < 0.f ? 0.f : x) : activation == 2 ? tanhf(x) : activation == 3 ? 1.f / (1.f + expf(-x)) : x;
}
__device__ __forceinline__ float activation_slope(float y, int activation) {
    return activation == 1 ? (y > 0.f ? 1.f : 0.f) : activation == 2 ? 1.f - y * y : activation == 3 ? y * (1.f - y) : 1.f;
}

// V values that one access moves.
template <int V>
struct __align__(sizeof(real) * V) Pack {
    real value[V];
};
template <int V>
struct __align__(V) Bytes {
    u8 value[V];
};

// Sums over the rows of [rows, channels]: a thread keeps V channels of its own, the lines of a block share the rows, block
// y takes the next 256 groups of channels. parts: [gridDim.x, K, channels], to be added up in this order.
template <int V>
struct Columns {
    int groups, channel, line, lines;
    bool active;
    i64 first, stride;
    __device__ Columns(int channels) {
        const int begin = blockIdx.y * 256;
        groups = min(channels / V - begin, 256);
        lines = blockDim.x / groups;
        line = threadIdx.x / groups;
        channel = (begin + threadIdx.x % groups) * V;
        active = line < lines;
        first = (i64)blockIdx.x * lines + line;
        stride = (i64)gridDim.x * lines;
    }
    template <int K>
    __device__ void write(float (&sums)[K][V], float* parts, int channels) const {
        __shared__ float shared[256 * V];
        for (int k = 0; k < K; ++k) {
            for (int v = 0; v < V; ++v) shared[v * 256 + threadIdx.x] = sums[k][v];
            __syncthreads();
            if (line == 0)
                for (int v = 0; v < V; ++v) {
                    float sum = 0.f;
                    for (int other = 0; other < lines; ++other) sum += shared[v * 256 + other * groups + threadIdx.x];
                    parts[((i64)blockIdx.x * K + k) * channels + channel + v] = sum;
                }
            __syncthreads();
        }
    }
};

template <int V>
__device__ __forceinline__ void add_columns(const real* values, float* parts, i64 rows, int channels) {
    const Columns<V> mine(channels);
    float sums[1][V] = {};
    if (mine.active)
#pragma unroll 4
        for (i64 row = mine.first; row < rows; row += mine.stride) {
            const Pack<V> pack = *(const Pack<V>*)(values + row * channels + mine.channel);
#pragma unroll
            for (int v = 0; v < V; ++v) sums[0][v] += to_float(pack.value[v]);
        }
    mine.write(sums, parts, channels);
}
extern "C" __global__ void column_sums_1(const real* values, float* parts, i64 rows, int channels) { add_columns<1>(values, parts, rows, channels); }
extern "C" __global__ void column_sums_8(const real* values, float* parts, i64 rows, int channels) { add_columns<8>(values, parts, rows, channels); }

// before = gradient · f′(result), and its sums by channel.
template <int V>
__device__ __forceinline__ void before_activation(const real* gradient, const real* result, real* before, float* parts, i64 rows, int channels, int activation) {
    const Columns<V> mine(channels);
    float sums[1][V] = {};
    if (mine.active)
#pragma unroll 2
        for (i64 row = mine.first; row < rows; row += mine.stride) {
            const i64 at = row * channels + mine.channel;
            Pack<V> values = *(const Pack<V>*)(gradient + at);
            const Pack<V> results = *(const Pack<V>*)(result + at);
#pragma unroll
            for (int v = 0; v < V; ++v) {
                values.value[v] = to_real(to_float(values.value[v]) * activation_slope(to_float(results.value[v]), activation));
                sums[0][v] += to_float(values.value[v]);
            }
            *(Pack<V>*)(before + at) = values;
        }
    mine.write(sums, parts, channels);
}
extern "C" __global__ void before_activation_1(const real* gradient, const real* result, real* before, float* parts, i64 rows, int channels, int activation) {
    before_activation<1>(gradient, result, before, parts, rows, channels, activation);
}
extern "C" __global__ void before_activation_8(const real* gradient, const real* result, real* before, float* parts, i64 rows, int channels, int activation) {
    before_activation<8>(gradient, result, before, parts, rows, channels, activation);
}

// target[column] += Σ parts[part · stride + column]: 32 columns a block, its 32 lines share the parts, always in the same order.
extern "C" __global__ void sum_parts(const float* parts, float* target, int count, int columns, int stride) {
    __shared__ float sums[32][33];
    const int lane = threadIdx.x % 32, line = threadIdx.x / 32, column = blockIdx.x * 32 + lane;
    float sum = 0.f;
    if (column < columns)
#pragma unroll 4
        for (int part = line; part < count; part += 32) sum += parts[(i64)part * stride + column];
    sums[line][lane] = sum;
    __syncthreads();
    if (line || column >= columns) return;
    for (int other = 1; other < 32; ++other) sum += sums[other][lane];
    target[column] += sum;
}

// What the losses over single values share: the mean over the valid rows by one block, and its gradient.
template <typename Loss>
__device__ __forceinline__ void mean_loss(const real* prediction, const real* target, float* loss, int width, const Control* control, Loss of) {
    const i64 count = (i64)control->valid_rows * width;
    double sum = 0;
    for (i64 i = threadIdx.x; i < count; i += blockDim.x) sum += (double)of(to_float(prediction[i]), to_float(target[i]));
    sum = block_sum(sum);
    if (threadIdx.x == 0) loss[0] = (float)(sum / max(count, (i64)1));
}
template <typename Slope>
__device__ __forceinline__ void loss_gradient(const real* prediction, const real* target, real* gradient, i64 total, int width, const Control* control, const Results* results, int add, Slope of) {
    const i64 count = (i64)control->valid_rows * width;
    const float factor = results->scale * control->loss_weight / max(count, (i64)1);
    EACH(i, total) {
        const float value = i < count ? factor * of(to_float(prediction[i]), to_float(target[i])) : 0.f;
        gradient[i] = to_real(add ? to_float(gradient[i]) + value : value);
    }
}

// Adds the loss of a batch to what the host will ask for: which = 0 for training, 1 for evaluation.
extern "C" __global__ void meter(const float* loss, const Control* control, Results* results, int which) {
    results->loss[which] += (double)loss[0] * control->valid_rows;
    results->rows[which] += control->valid_rows;
    if (which == 0 && loss[0] - loss[0] != 0.f && results->first_bad == 0) results->first_bad = control->update;
}

// The computing copy of f32 values.
extern "C" __global__ void convert(const float* source, real* target, i64 count) {
    EACH(i, count) target[i] = to_real(source[i]);
}
