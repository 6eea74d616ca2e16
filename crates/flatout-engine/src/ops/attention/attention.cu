
// qkv is [steps, batch, 3, heads, size]: queries, keys, values. A unit is a sample and a head, unit = sample · heads + head; a row is a
// unit and a step. sums holds log Σ exp of each row's scores, so that backward makes the weights again instead of reading them.
struct Heads {
    int steps, batch, heads, size;
    __device__ __forceinline__ i64 input(i64 unit, int step, int part) const {
        return (((i64)step * batch + unit / heads) * 3 + part) * heads * size + unit % heads * size;
    }
    __device__ __forceinline__ i64 output(i64 unit, int step) const { return ((i64)step * batch + unit / heads) * heads * size + unit % heads * size; }
};
__device__ __forceinline__ float attention_dot(const float* a, const real* b, int size) {
    float sum = 0.f;
    for (int c = 0; c < size; ++c) sum += a[c] * to_float(b[c]);
    return sum;
}
__device__ __forceinline__ void attention_add(real* target, float value, int add) { *target = to_real(add ? to_float(*target) + value : value); }

// Any size, any precision: a warp makes one row. space: per warp, a query and the row's scores.
extern "C" __global__ void attention_forward(const real* qkv, real* output, float* sums, int steps, int batch, int heads, int size, float scale) {
    extern __shared__ float space[];
    const Heads at = {steps, batch, heads, size};
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const i64 row = (i64)blockIdx.x * (blockDim.x / 32) + warp;
    if (row >= (i64)batch * heads * steps) return;
    const i64 unit = row / steps;
    float *query = space + warp * (size + steps), *scores = query + size;
    for (int c = lane; c < size; c += 32) query[c] = to_float(qkv[at.input(unit, row % steps, 0) + c]);
    __syncwarp();
    float largest = -__int_as_float(0x7f800000), sum = 0.f;
    for (int j = lane; j < steps; j += 32) {
        scores[j] = scale * attention_dot(query, qkv + at.input(unit, j, 1), size);
        largest = fmaxf(largest, scores[j]);
    }
    for (int apart = 16; apart; apart /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, apart));
    for (int j = lane; j < steps; j += 32) {
        scores[j] = expf(scores[j] - largest);
        sum += scores[j];
    }
    sum = warp_sum(sum);
    __syncwarp();
    for (int c = lane; c < size; c += 32) {
        float value = 0.f;
        for (int j = 0; j < steps; ++j) value += scores[j] * to_float(qkv[at.input(unit, j, 2) + c]);
        output[at.output(unit, row % steps) + c] = to_real(value / sum);
    }
    if (lane == 0) sums[row] = largest + logf(sum);
}
// along[row] = gradient · output of the row. space: per warp, a query, the gradient behind it, and the row's slopes.
extern "C" __global__ void attention_queries(const real* qkv, const real* output, const real* gradient, const float* sums, float* along, real* target, int steps, int batch, int heads, int size, float scale, int add) {
    extern __shared__ float space[];
    const Heads at = {steps, batch, heads, size};
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const i64 row = (i64)blockIdx.x * (blockDim.x / 32) + warp;
    if (row >= (i64)batch * heads * steps) return;
    const i64 unit = row / steps, place = at.output(unit, row % steps);
    float *query = space + warp * (2 * size + steps), *behind = query + size, *slopes = behind + size;
    float product = 0.f;
    for (int c = lane; c < size; c += 32) {
        query[c] = to_float(qkv[at.input(unit, row % steps, 0) + c]);
        behind[c] = to_float(gradient[place + c]);
        product += behind[c] * to_float(output[place + c]);
    }
    product = warp_sum(product);
    __syncwarp();
    for (int j = lane; j < steps; j += 32) {
        const float weight = expf(scale * attention_dot(query, qkv + at.input(unit, j, 1), size) - sums[row]);
        slopes[j] = weight * (attention_dot(behind, qkv + at.input(unit, j, 2), size) - product) * scale;
    }
    __syncwarp();
    for (int c = lane; c < size; c += 32) {
        float value = 0.f;
        for (int j = 0; j < steps; ++j) value += slopes[j] * to_float(qkv[at.input(unit, j, 1) + c]);
        attention_add(target + at.input(unit, row % steps, 0) + c, value, add);
    }
    if (lane == 0) along[row] = product;
}
// A warp makes the gradients of one key and its value. space: per warp, the key, the value, and both weights of every query.
extern "C" __global__ void attention_keys(const real* qkv, const real* gradient, const float* sums, const float* along, real* target, int steps, int batch, int heads, int size, float scale, int add) {
    extern __shared__ float space[];
    const Heads at = {steps, batch, heads, size};
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const i64 row = (i64)blockIdx.x * (blockDim.x / 32) + warp;
    if (row >= (i64)batch * heads * steps) return;
    const i64 unit = row / steps;
    const int step = row % steps;
    float *key = space + warp * 2 * (size + steps), *value = key + size, *weights = value + size, *slopes = weights + steps;
    for (int c = lane; c < size; c += 32) {
        key[c] = to_float(qkv[at.input(unit, step, 1) + c]);
        value[c] = to_float(qkv[at.input(unit, step, 2) + c]);
    }
    __syncwarp();
    for (int i = lane; i < steps; i += 32) {
        weights[i] = expf(scale * attention_dot(key, qkv + at.input(unit, i, 0), size) - sums[unit * steps + i]);
        slopes[i] = weights[i] * (attention_dot(value, gradient + at.output(unit, i), size) - along[unit * steps + i]) * scale;
    }
    __syncwarp();
    for (int c = lane; c < size; c += 32) {
        float of_key = 0.f, of_value = 0.f;
        for (int i = 0; i < steps; ++i) {
            of_key += slopes[i] * to_float(qkv[at.input(unit, i, 0) + c]);
            of_value += weights[i] * to_float(gradient[at.output(unit, i) + c]);
        }
        attention_add(target + at.input(unit, step, 1) + c, of_key, add);
        attention_add(target + at.input(unit, step, 2) + c, of_value, add);
    }
}

#if REAL != 0
// On the tensor cores, for heads of S = 16, 32 or 64 values: a block takes a unit, a warp 16 of its rows, in tiles of 16 × 8 × 16. Keys
// and values (in backward queries and gradients, too) lie in shared memory, padded with zeros to whole tiles.
#if REAL == 1
#define ATTENTION_NUMBER "bf16"
#else
#define ATTENTION_NUMBER "f16"
#endif
__device__ __forceinline__ u32 attention_pair(float low, float high) { return (u32)to_real(low) | (u32)to_real(high) << 16; }
__device__ __forceinline__ void attention_mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32." ATTENTION_NUMBER "." ATTENTION_NUMBER ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Two 8 × 8 blocks, transposed on the way: lanes 0 to 15 name the rows.
__device__ __forceinline__ void attention_transposed(u32& b0, u32& b1, const real* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b0), "=r"(b1) : "r"((u32)__cvta_generic_to_shared(row)) : "memory");
}

// Rows of S values in shared memory, eight more apart, so that the rows of a tile fall into different banks.
template <int S>
struct Tile {
    real* rows;
    static const int STRIDE = S + 8;
    __device__ __forceinline__ u32 pair(int row, int column) const { return *(const u32*)(rows + row * STRIDE + column); }
    // 16 × 16 values as the left side of a tile.
    __device__ __forceinline__ void left(u32 (&a)[4], int row, int column) const {
        const int r = row + threadIdx.x % 32 / 4, c = column + threadIdx.x % 4 * 2;
        a[0] = pair(r, c);
        a[1] = pair(r + 8, c);
        a[2] = pair(r, c + 8);
        a[3] = pair(r + 8, c + 8);
    }
    // sums[n] += left · rowsᵀ over 8 · N rows from `first`, left being 16 × S.
    template <int N>
    __device__ __forceinline__ void scores(float (&sums)[N][4], const u32 (&left)[S / 16][4], int first) const {
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
            for (int k = 0; k < S / 16; ++k) {
                const int r = first + n * 8 + threadIdx.x % 32 / 4, c = k * 16 + threadIdx.x % 4 * 2;
                attention_mma(sums[n], left[k], pair(r, c), pair(r, c + 8));
            }
    }
    // target += weights · rows over 8 · N rows from `first`, weights being 16 × 8N.
    template <int N>
    __device__ __forceinline__ void add(float (&target)[S / 8][4], const float (&weights)[N][4], int first) const {
#pragma unroll
        for (int k = 0; k < N / 2; ++k) {
            const u32 a[4] = {attention_pair(weights[2 * k][0], weights[2 * k][1]), attention_pair(weights[2 * k][2], weights[2 * k][3]),
                              attention_pair(weights[2 * k + 1][0], weights[2 * k + 1][1]), attention_pair(weights[2 * k + 1][2], weights[2 * k + 1][3])};
#pragma unroll
            for (int n = 0; n < S / 8; ++n) {
                u32 b0, b1;
                attention_transposed(b0, b1, rows + (first + k * 16 + threadIdx.x % 16) * STRIDE + n * 8);
                attention_mma(target[n], a, b0, b1);
            }
        }
    }
    // Copies a unit's rows, `apart` values from step to step; zeros up to `padded`.
    __device__ __forceinline__ void load(const real* source, i64 apart, int steps, int padded) const {
        for (int i = threadIdx.x; i < padded * (S / 8); i += blockDim.x) {
            const int row = i / (S / 8), c = i % (S / 8) * 8;
            Pack<8> values;
#pragma unroll
            for (int v = 0; v < 8; ++v) values.value[v] = to_real(0.f);
            if (row < steps) values = *(const Pack<8>*)(source + row * apart + c);
            *(Pack<8>*)(rows + row * STRIDE + c) = values;
        }
    }
};
// Writes a warp's 16 rows, times a factor for the upper and one for the lower eight.
template <int S>
__device__ __forceinline__ void attention_write(real* target, i64 apart, const float (&values)[S / 8][4], int first, int steps, float upper, float lower, int add) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = first + threadIdx.x % 32 / 4 + half * 8;
        if (row >= steps) continue;
        const float factor = half ? lower : upper;
#pragma unroll
        for (int n = 0; n < S / 8; ++n) {
            u32* there = (u32*)(target + row * apart + n * 8 + threadIdx.x % 4 * 2);
            float low = values[n][half * 2] * factor, high = values[n][half * 2 + 1] * factor;
            if (add) {
                const u32 before = *there;
                low += to_float((real)before);
                high += to_float((real)(before >> 16));
            }
            *there = attention_pair(low, high);
        }
    }
}
template <int S>
__device__ __forceinline__ void attention_forward_tiles(const real* qkv, real* output, float* sums, int steps, int batch, int heads, float scale) {
    extern __shared__ __align__(16) real tiles[];
    const Heads at = {steps, batch, heads, S};
    const int padded = (steps + 15) / 16 * 16, first = threadIdx.x / 32 * 16, whole = (padded + 63) / 64 * 64;
    const i64 unit = blockIdx.x, apart = (i64)batch * 3 * heads * S;
    const Tile<S> queries = {tiles}, keys = {tiles + whole * Tile<S>::STRIDE}, values = {tiles + 2 * whole * Tile<S>::STRIDE};
    queries.load(qkv + at.input(unit, 0, 0), apart, steps, padded);
    keys.load(qkv + at.input(unit, 0, 1), apart, steps, whole);
    values.load(qkv + at.input(unit, 0, 2), apart, steps, whole);
    __syncthreads();
    u32 query[S / 16][4];
#pragma unroll
    for (int k = 0; k < S / 16; ++k) queries.left(query[k], first, k * 16);
    const float lowest = -__int_as_float(0x7f800000);
    float result[S / 8][4] = {}, largest[2] = {lowest, lowest}, sum[2] = {};
    for (int begin = 0; begin < steps; begin += 64) {
        float scores[8][4] = {};
        keys.scores(scores, query, begin);
        float most[2] = {largest[0], largest[1]};
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
            for (int v = 0; v < 4; ++v) {
                const int key = begin + n * 8 + threadIdx.x % 4 * 2 + v % 2;
                scores[n][v] = key < steps ? scores[n][v] * scale : lowest;
                most[v / 2] = fmaxf(most[v / 2], scores[n][v]);
            }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            most[half] = fmaxf(most[half], __shfl_xor_sync(0xffffffffu, most[half], 1));
            most[half] = fmaxf(most[half], __shfl_xor_sync(0xffffffffu, most[half], 2));
            // The first chunk has a step, so the largest is finite from here on.
            const float factor = expf(largest[half] - most[half]);
            largest[half] = most[half];
            sum[half] *= factor;
#pragma unroll
            for (int n = 0; n < S / 8; ++n) {
                result[n][half * 2] *= factor;
                result[n][half * 2 + 1] *= factor;
            }
        }
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
            for (int v = 0; v < 4; ++v) {
                scores[n][v] = expf(scores[n][v] - largest[v / 2]);
                sum[v / 2] += scores[n][v];
            }
        values.add(result, scores, begin);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 1);
        sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 2);
        const int row = first + threadIdx.x % 32 / 4 + half * 8;
        if (threadIdx.x % 4 == 0 && row < steps) sums[unit * steps + row] = largest[half] + logf(sum[half]);
    }
    attention_write<S>(output + at.output(unit, 0), apart / 3, result, first, steps, 1.f / sum[0], 1.f / sum[1], 0);
}
// Both gradients of a unit in one block: a warp first as 16 queries against all keys, then as 16 keys against all queries, so that nothing
// is added up across warps. logs and along of rows beyond the last are such that their weights are zero.
template <int S>
__device__ __forceinline__ void attention_backward_tiles(const real* qkv, const real* output, const real* gradient, const float* sums, real* target, int steps, int batch, int heads, float scale, int add) {
    extern __shared__ __align__(16) real tiles[];
    const Heads at = {steps, batch, heads, S};
    const int padded = (steps + 15) / 16 * 16, first = threadIdx.x / 32 * 16, whole = (padded + 63) / 64 * 64;
    const i64 unit = blockIdx.x, apart = (i64)batch * 3 * heads * S;
    const int size = whole * Tile<S>::STRIDE;
    const Tile<S> queries = {tiles}, keys = {tiles + size}, values = {tiles + 2 * size}, behind = {tiles + 3 * size};
    float *logs = (float*)(tiles + 4 * size), *along = logs + whole;
    queries.load(qkv + at.input(unit, 0, 0), apart, steps, whole);
    keys.load(qkv + at.input(unit, 0, 1), apart, steps, whole);
    values.load(qkv + at.input(unit, 0, 2), apart, steps, whole);
    behind.load(gradient + at.output(unit, 0), apart / 3, steps, whole);
    for (int row = threadIdx.x; row < whole; row += blockDim.x) {
        float product = 0.f;
        if (row < steps) {
            const i64 place = at.output(unit, row);
            for (int c = 0; c < S; c += 8) {
                const Pack<8> a = *(const Pack<8>*)(output + place + c), b = *(const Pack<8>*)(gradient + place + c);
#pragma unroll
                for (int v = 0; v < 8; ++v) product += to_float(a.value[v]) * to_float(b.value[v]);
            }
        }
        along[row] = product;
        logs[row] = row < steps ? sums[unit * steps + row] : __int_as_float(0x7f800000);
    }
    __syncthreads();
    const int lane_row = threadIdx.x % 32 / 4, lane_column = threadIdx.x % 4 * 2;
    {
        u32 query[S / 16][4], back[S / 16][4];
#pragma unroll
        for (int k = 0; k < S / 16; ++k) {
            queries.left(query[k], first, k * 16);
            behind.left(back[k], first, k * 16);
        }
        float result[S / 8][4] = {};
        for (int begin = 0; begin < steps; begin += 32) {
            float scores[4][4] = {}, slopes[4][4] = {};
            keys.scores(scores, query, begin);
            values.scores(slopes, back, begin);
#pragma unroll
            for (int n = 0; n < 4; ++n)
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                    const int row = first + lane_row + v / 2 * 8, key = begin + n * 8 + lane_column + v % 2;
                    const float weight = key < steps ? expf(scores[n][v] * scale - logs[row]) : 0.f;
                    slopes[n][v] = weight * (slopes[n][v] - along[row]) * scale;
                }
            keys.add(result, slopes, begin);
        }
        attention_write<S>(target + at.input(unit, 0, 0), apart, result, first, steps, 1.f, 1.f, add);
    }
    {
        u32 key[S / 16][4], value[S / 16][4];
#pragma unroll
        for (int k = 0; k < S / 16; ++k) {
            keys.left(key[k], first, k * 16);
            values.left(value[k], first, k * 16);
        }
        float of_key[S / 8][4] = {}, of_value[S / 8][4] = {};
        for (int begin = 0; begin < steps; begin += 32) {
            float weights[4][4] = {}, slopes[4][4] = {};
            queries.scores(weights, key, begin);
            behind.scores(slopes, value, begin);
#pragma unroll
            for (int n = 0; n < 4; ++n)
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                    const int row = begin + n * 8 + lane_column + v % 2;
                    weights[n][v] = expf(weights[n][v] * scale - logs[row]);
                    slopes[n][v] = weights[n][v] * (slopes[n][v] - along[row]) * scale;
                }
            behind.add(of_value, weights, begin);
            queries.add(of_key, slopes, begin);
        }
        attention_write<S>(target + at.input(unit, 0, 1), apart, of_key, first, steps, 1.f, 1.f, add);
        attention_write<S>(target + at.input(unit, 0, 2), apart, of_value, first, steps, 1.f, 1.f, add);
    }
}
#define ATTENTION(S)                                                                                                                       \
    extern "C" __global__ void attention_forward_tiles_##S(const real* qkv, real* output, float* sums, int steps, int batch, int heads, float scale) { \
        attention_forward_tiles<S>(qkv, output, sums, steps, batch, heads, scale);                                                          \
    }                                                                                                                                      \
    extern "C" __global__ void attention_backward_tiles_##S(const real* qkv, const real* output, const real* gradient, const float* sums, real* target, int steps, int batch, int heads, float scale, int add) { \
        attention_backward_tiles<S>(qkv, output, gradient, sums, target, steps, batch, heads, scale, add);                                  \
    }
ATTENTION(16)
ATTENTION(32)
ATTENTION(64)
#endif
