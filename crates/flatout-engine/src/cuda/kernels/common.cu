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
};

// Written by the card, read by the host when somebody asks. The same layout stands in control.rs.
struct Results {
    double loss[2];  // training, evaluation: sums over rows
    double rows[2];
    float norm;
    float factor;
    int bad_index;
    int unused;
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

// Adds the loss of a batch to what the host will ask for: which = 0 for training, 1 for evaluation.
extern "C" __global__ void meter(const float* loss, const Control* control, Results* results, int which) {
    results->loss[which] += (double)loss[0] * control->valid_rows;
    results->rows[which] += control->valid_rows;
}

// The computing copy of f32 values.
extern "C" __global__ void convert(const float* source, real* target, i64 count) {
    EACH(i, count) target[i] = to_real(source[i]);
}
