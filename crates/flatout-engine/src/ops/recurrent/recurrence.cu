// The recurrence of LSTM and GRU in two bytes, persistent over time. One thread-block cluster carries ROWS sequences through all
// time steps of one layer. Each block owns UNITS hidden units (all gates of them) and keeps its slice of the recurrent matrix on
// the chip for the whole launch: in registers, and what they cannot hold in shared memory; per step only h (forward) or partial
// dh (backward) crosses the cluster.
//
// Compiled with -DHIDDEN=… (a multiple of UNITS) -DWARPS=… (4 or 8) -DTILES=… (16-row tiles a cluster) -DREAL=… (1: bf16,
// 2: f16) -DGRU=… (0 or 1).
// The input projection X·W_ihᵀ + b of all time steps is one matrix product made before; the weight gradients are made after.
//
// Gate columns are stored permuted: column p of [T, B, 4·HIDDEN] is gate (p % 8) / 2 of unit (p / 8)·2 + p % 2, so that
// what one thread needs of a row (two units, four gates) is one 16-byte access.
//
// A GRU has four columns a unit, too: reset, update, new, and what the state adds to the new one (whose bias comes with the
// projection). Going back, the third is the gradient of the input's part of the new gate and the fourth that of the state's part.
// Where an LSTM keeps its cell, a GRU keeps its state: in f32 from step to step.

typedef unsigned short real;
typedef unsigned int u32;

#define UNITS (8 * WARPS)
#define CLUSTER (HIDDEN / UNITS)
#define ROWS (16 * TILES)
#define THREADS (32 * WARPS)
#define GATES (4 * HIDDEN)
#define K_TILES (HIDDEN / 16)
// Columns of dh that one warp of the backward kernel makes, in tiles of 8.
#define N_TILES (HIDDEN / WARPS / 8)
#define BACK_TILES (UNITS / 4)
// Tiles of the matrix that registers hold, at most 128 words a thread; the others lie in shared memory, each word written and
// read by one thread alone.
#define HELD (K_TILES <= 16 ? K_TILES : 16)
#define BACK_HELD (BACK_TILES * N_TILES * 2 <= 128 ? BACK_TILES : 128 / (2 * N_TILES))
// 16 bytes of padding a row keep ldmatrix free of bank conflicts.
#define H_PITCH (HIDDEN + 8)
#define U_PITCH (UNITS + 8)

#if REAL == 2
#define NUMBER "f16"
__device__ __forceinline__ float widened(unsigned short x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}
__device__ __forceinline__ float low(u32 both) { return widened((unsigned short)both); }
__device__ __forceinline__ float high(u32 both) { return widened((unsigned short)(both >> 16)); }
#else
#define NUMBER "bf16"
__device__ __forceinline__ float low(u32 both) { return __uint_as_float(both << 16); }
__device__ __forceinline__ float high(u32 both) { return __uint_as_float(both & 0xffff0000u); }
#endif
__device__ __forceinline__ u32 pack(float low, float high) {
    u32 both;
    asm("cvt.rn." NUMBER "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
__device__ __forceinline__ float tanh_fast(float x) {
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float sigmoid_fast(float x) { return fmaf(tanh_fast(0.5f * x), 0.5f, 0.5f); }

__device__ __forceinline__ u32 shared_address(const void* pointer) { return (u32)__cvta_generic_to_shared(pointer); }
__device__ __forceinline__ u32 peer_address(u32 address, u32 rank) {
    u32 peer;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(address), "r"(rank));
    return peer;
}
// Writes into a block of the cluster and counts the bytes on its barrier there: arrival is the signal, no fence is needed.
__device__ __forceinline__ void send(u32 address, u32 barrier, uint4 value) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(address), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(barrier) : "memory");
}
__device__ __forceinline__ void send(u32 address, u32 barrier, uint2 value) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(address), "r"(value.x), "r"(value.y), "r"(barrier) : "memory");
}
__device__ __forceinline__ void send(u32 address, u32 barrier, u32 value) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(address), "r"(value), "r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_init(u32 barrier) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory"); }
__device__ __forceinline__ void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void barrier_wait(u32 barrier, u32 parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

__device__ __forceinline__ void load_rows(u32 a[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(address));
}
__device__ __forceinline__ void multiply(float c[4], const u32 a[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32." NUMBER "." NUMBER ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Of two (or four) words a lane, word s of the lanes of a quad becomes words of the lane s: pieces of rows become whole rows.
__device__ __forceinline__ void transpose(u32& r0, u32& r1, u32 quad) {
    const bool odd = quad & 1;
    const u32 other = __shfl_xor_sync(0xffffffffu, odd ? r0 : r1, 1);
    if (odd) r0 = other; else r1 = other;
}
__device__ __forceinline__ uint4 transpose(u32 r0, u32 r1, u32 r2, u32 r3, u32 quad) {
    transpose(r0, r1, quad);
    transpose(r2, r3, quad);
    const bool up = quad & 2;
    const u32 first = __shfl_xor_sync(0xffffffffu, up ? r0 : r2, 2), second = __shfl_xor_sync(0xffffffffu, up ? r1 : r3, 2);
    return up ? make_uint4(first, second, r2, r3) : make_uint4(r0, r1, first, second);
}

struct Lane {
    u32 warp, lane, quad, group, rank, first_row;
    __device__ Lane() {
        warp = threadIdx.x / 32; lane = threadIdx.x % 32; quad = lane % 4; group = lane / 4;
        rank = blockIdx.x; first_row = blockIdx.y * ROWS;
    }
    // The first of the two units this thread owns.
    __device__ u32 unit() const { return rank * UNITS + warp * 8 + quad * 2; }
};

__device__ __forceinline__ float weight_at(const float* weights, u32 gate, u32 unit, u32 column, int size) {
    return unit < size && column < size ? weights[((size_t)gate * size + unit) * size + column] : 0.f;
}

// Which of PyTorch's gates stands in a column: the third of a GRU's has none going back, the fourth none going forward.
__device__ __forceinline__ float forward_weight(const float* weights, u32 gate, u32 unit, u32 column, int size) {
    return GRU && gate == 3 ? 0.f : weight_at(weights, gate, unit, column, size);
}
__device__ __forceinline__ float backward_weight(const float* weights, u32 gate, u32 unit, u32 column, int size) {
    return GRU && gate == 2 ? 0.f : weight_at(weights, GRU && gate == 3 ? 2 : gate, unit, column, size);
}

// The recurrent matrix [gates·size, size], f32 as PyTorch orders it, into the registers' order of the two kernels below:
// [block of the cluster][warp][k tile][lane][fragment]. One thread a pair of values, HIDDEN·HIDDEN·2 threads.
// `size` is the layer's own width: what HIDDEN has more is padding, which stays zero throughout.
extern "C" __global__ void recurrence_pack(const float* __restrict__ weights, u32* __restrict__ forward, u32* __restrict__ backward, int size) {
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= 2 * HIDDEN * HIDDEN) return;
    {
        const u32 half = at % 2, gate = at / 2 % 4, lane = at / 8 % 32, k = at / 256 % K_TILES, warp = at / 256 / K_TILES;
        const u32 unit = warp * 8 + lane / 4, column = k * 16 + half * 8 + lane % 4 * 2;
        forward[at] = pack(forward_weight(weights, gate, unit, column, size), forward_weight(weights, gate, unit, column + 1, size));
    }
    {
        const u32 half = at % 2, n = at / 2 % N_TILES, lane = at / (2 * N_TILES) % 32, k = at / (64 * N_TILES) % BACK_TILES;
        const u32 warp = at / (64 * N_TILES) / BACK_TILES % WARPS, rank = at / (64 * N_TILES) / BACK_TILES / WARPS;
        const u32 p = k * 16 + half * 8 + lane % 4 * 2, gate = p % 8 / 2, unit = rank * UNITS + p / 8 * 2;
        const u32 column = warp * (HIDDEN / WARPS) + n * 8 + lane / 4;
        backward[at] = pack(backward_weight(weights, gate, unit, column, size), backward_weight(weights, gate, unit + 1, column, size));
    }
}

// weights: packed. gates in: the input projection, out: the activated gates. cells, hidden: [T, batch, HIDDEN].
// A launch may carry on where another ended (resumed): the state before its first step lies before the pointers.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS) recurrence_forward(
    const u32* __restrict__ weights, real* __restrict__ gates, real* __restrict__ cells, real* __restrict__ hidden, int steps, int batch, int resumed) {
    struct Shared {
        real h[2][TILES][16][H_PITCH];
        unsigned long long arrived[2][TILES];
    };
    extern __shared__ __align__(16) char dynamic[];
    Shared& shared = *(Shared*)dynamic;
    auto& h = shared.h;
    const Lane me;
    u32 w[HELD][4][2];
    uint4* laid = (uint4*)(dynamic + sizeof(Shared)) + me.warp * 64 + me.lane;
    const uint4* fragments = (const uint4*)weights + ((me.rank * WARPS + me.warp) * K_TILES * 32 + me.lane) * 2;
    for (int k = HELD; k < K_TILES; ++k)
        for (int part = 0; part < 2; ++part) laid[((k - HELD) * WARPS * 2 + part) * 32] = fragments[k * 64 + part];
#pragma unroll
    for (int k = 0; k < HELD; ++k) {
        const uint4 first = fragments[k * 64], second = fragments[k * 64 + 1];
        w[k][0][0] = first.x; w[k][0][1] = first.y; w[k][1][0] = first.z; w[k][1][1] = first.w;
        w[k][2][0] = second.x; w[k][2][1] = second.y; w[k][3][0] = second.z; w[k][3][1] = second.w;
    }
    float c[TILES][2][2];
    uint4 next[TILES][2];
#pragma unroll
    for (int m = 0; m < TILES; ++m)
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            c[m][s][0] = c[m][s][1] = 0.f;
            if (resumed) {
                const uint2 kept = ((const uint2*)cells - (size_t)gridDim.y * TILES * CLUSTER * THREADS)[((blockIdx.y * TILES + m) * CLUSTER + me.rank) * THREADS + threadIdx.x];
                c[m][s][0] = low(s ? kept.y : kept.x);
                c[m][s][1] = high(s ? kept.y : kept.x);
            }
            const u32 row = me.first_row + m * 16 + s * 8 + me.group;
            next[m][s] = row < batch ? *(const uint4*)(gates + (size_t)row * GATES + me.unit() * 4) : make_uint4(0, 0, 0, 0);
        }
    const u32 a_base = shared_address(&h[0][0][me.lane % 16][(me.lane / 16) * 8]), barriers = shared_address(shared.arrived);
    const u32 bytes = 16 * HIDDEN * 2;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * TILES; ++i) barrier_init(barriers + i * 8);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (int m = 0; m < TILES; ++m) barrier_expect(barriers + (TILES + m) * 8, bytes);
    }
    if (resumed)
        for (int i = threadIdx.x; i < ROWS * (HIDDEN / 8); i += THREADS) {
            const int row = i / (HIDDEN / 8), column = i % (HIDDEN / 8) * 8, at = me.first_row + row;
            const real* source = hidden - (size_t)batch * HIDDEN + (size_t)at * HIDDEN + column;
            *(uint4*)&h[0][row / 16][row % 16][column] = at < batch ? *(const uint4*)source : make_uint4(0, 0, 0, 0);
        }
    cluster_arrive();  // nobody writes into a block that has not started
    cluster_wait();
    for (int t = 0; t < steps; ++t)
        // The tiles are independent: while one's h is on its way through the cluster, the next one computes.
#pragma unroll
        for (int m = 0; m < TILES; ++m) {
            const u32 now = t & 1, then = now ^ 1;
            float sum[4][4] = {};
            if (t > 0 || resumed) {
                if (t > 0) barrier_wait(barriers + (now * TILES + m) * 8, ((t - 1) / 2) & 1);
#pragma unroll
                for (int k = 0; k < K_TILES; ++k) {
                    u32 a[4];
                    load_rows(a, a_base + now * (u32)sizeof(h[0]) + (m * 16 * H_PITCH + k * 16) * 2);
                    if (k < HELD) {
#pragma unroll
                        for (int g = 0; g < 4 - GRU; ++g) multiply(sum[g], a, w[k][g][0], w[k][g][1]);
                    } else {
                        const uint4 first = laid[(k - HELD) * WARPS * 64], second = laid[((k - HELD) * WARPS * 2 + 1) * 32];
                        multiply(sum[0], a, first.x, first.y);
                        multiply(sum[1], a, first.z, first.w);
                        multiply(sum[2], a, second.x, second.y);
                        if (!GRU) multiply(sum[3], a, second.z, second.w);
                    }
                }
            }
            if (threadIdx.x == 0 && t + 2 < steps) barrier_expect(barriers + (now * TILES + m) * 8, bytes);
            u32 out[2];
            uint4 saved[2];
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                const u32 in[4] = {next[m][s].x, next[m][s].y, next[m][s].z, next[m][s].w};
                float out_h[2], act[4][2];
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const int e = s * 2 + j;
                    act[0][j] = sigmoid_fast(sum[0][e] + (j ? high(in[0]) : low(in[0])));
                    act[1][j] = sigmoid_fast(sum[1][e] + (j ? high(in[1]) : low(in[1])));
#if GRU
                    act[3][j] = sum[2][e] + (j ? high(in[3]) : low(in[3]));
                    act[2][j] = tanh_fast(fmaf(act[0][j], act[3][j], j ? high(in[2]) : low(in[2])));
                    c[m][s][j] = fmaf(act[1][j], c[m][s][j] - act[2][j], act[2][j]);
                    out_h[j] = c[m][s][j];
#else
                    act[2][j] = tanh_fast(sum[2][e] + (j ? high(in[2]) : low(in[2])));
                    act[3][j] = sigmoid_fast(sum[3][e] + (j ? high(in[3]) : low(in[3])));
                    c[m][s][j] = fmaf(act[1][j], c[m][s][j], act[0][j] * act[2][j]);
                    out_h[j] = act[3][j] * tanh_fast(c[m][s][j]);
#endif
                }
                out[s] = pack(out_h[0], out_h[1]);
                saved[s] = make_uint4(pack(act[0][0], act[0][1]), pack(act[1][0], act[1][1]), pack(act[2][0], act[2][1]), pack(act[3][0], act[3][1]));
            }
            // A piece of one row of h in the registers of one lane: to every block of the cluster, and to memory.
            transpose(out[0], out[1], me.quad);
            const uint2 piece = make_uint2(out[0], out[1]);
            const u32 row = (me.quad & 1) * 8 + me.group, column = me.rank * UNITS + me.warp * 8 + (me.quad / 2) * 4;
            if (t + 1 < steps) {
                const u32 target = shared_address(&h[then][m][row][column]), barrier = barriers + (then * TILES + m) * 8;
#pragma unroll
                for (u32 i = 0; i < CLUSTER; ++i) {
                    const u32 peer = (i + me.rank) % CLUSTER;
                    send(peer_address(target, peer), peer_address(barrier, peer), piece);
                }
            }
            const u32 first = me.first_row + m * 16;
            if (first + row < batch) *(uint2*)(hidden + ((size_t)t * batch + first + row) * HIDDEN + column) = piece;
            uint2* cell = (uint2*)cells + ((((size_t)t * gridDim.y + blockIdx.y) * TILES + m) * CLUSTER + me.rank) * THREADS + threadIdx.x;
            *cell = make_uint2(pack(c[m][0][0], c[m][0][1]), pack(c[m][1][0], c[m][1][1]));
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                const u32 at = first + s * 8 + me.group;
                real* place = gates + ((size_t)t * batch + at) * GATES + me.unit() * 4;
                if (at < batch) {
                    *(uint4*)place = saved[s];
                    if (t + 1 < steps) next[m][s] = *(const uint4*)(place + (size_t)batch * GATES);
                }
            }
        }
    // A block must not end while others may still write into it.
    cluster_arrive();
    cluster_wait();
}

// weights: as above. gates in: the activated gates, out: the gradient of the gates before activation.
// d_hidden: the gradient of the layer's output, for every step (given 0), for the last one alone (1: [batch, HIDDEN]), or none (2).
// A launch may carry on where that of later steps ended (resumed), and leave its end to that of earlier ones (more): what passes
// between them lies in `carry`, eight floats a thread and tile.
// bias_parts: [blocks in y, 4·HIDDEN] f32: this tile's sum of the gate gradients, permuted as the gates.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS) recurrence_backward(
    const u32* __restrict__ weights, real* __restrict__ gates, const real* __restrict__ cells, const real* __restrict__ d_hidden,
    float* __restrict__ bias_parts, float4* __restrict__ carry, int steps, int batch, int given, int resumed, int more) {
    // What each block of the cluster adds to dh of this block's units, double-buffered.
    struct Shared {
        real received[2][TILES][CLUSTER][16][U_PITCH];
        real own[2][16][4 * UNITS + 8];
        unsigned long long arrived[2][TILES];
    };
    extern __shared__ __align__(16) char dynamic[];
    Shared& shared = *(Shared*)dynamic;
    auto& received = shared.received;
    auto& own = shared.own;
    const Lane me;
    // This block multiplies its own gate gradients [ROWS, 4·UNITS] with its rows of the matrix [4·UNITS, HIDDEN];
    // a warp makes HIDDEN / WARPS columns of the result.
    const int n_tiles = N_TILES, k_tiles = BACK_TILES;
    u32 w[BACK_HELD][n_tiles][2];
    uint4* laid = (uint4*)(dynamic + sizeof(Shared)) + me.warp * (n_tiles / 2) * 32 + me.lane;
    const u32* fragments = weights + ((me.rank * WARPS + me.warp) * k_tiles * 32 + me.lane) * n_tiles * 2;
    for (int k = BACK_HELD; k < k_tiles; ++k)
        for (int pair = 0; pair < n_tiles / 2; ++pair)
            laid[((k - BACK_HELD) * WARPS * (n_tiles / 2) + pair) * 32] = *(const uint4*)(fragments + k * 64 * n_tiles + pair * 4);
#pragma unroll
    for (int k = 0; k < BACK_HELD; ++k)
#pragma unroll
        for (int n = 0; n < n_tiles; ++n) {
            const uint2 two = *(const uint2*)(fragments + k * 64 * n_tiles + n * 2);
            w[k][n][0] = two.x; w[k][n][1] = two.y;
        }
    float dc[TILES][2][2], bias[4][2] = {};
    uint4 next_gates[TILES][2];
    u32 next_dh[TILES][2];         // from the layer above
    uint2 cell[TILES], before[TILES];  // of this step and of the one before
    const size_t cell_stride = (size_t)gridDim.y * TILES * CLUSTER * THREADS;
    float4* my_carry = carry + ((size_t)blockIdx.y * TILES * CLUSTER + me.rank) * THREADS * 2 + threadIdx.x * 2;
    const uint2* my_cells = (const uint2*)cells + ((size_t)blockIdx.y * TILES * CLUSTER + me.rank) * THREADS + threadIdx.x;
#pragma unroll
    for (int m = 0; m < TILES; ++m) {
        cell[m] = my_cells[(steps - 1) * cell_stride + m * CLUSTER * THREADS];
        before[m] = steps > 1 || more ? (my_cells + (steps - 2) * (long long)cell_stride)[m * CLUSTER * THREADS] : make_uint2(0, 0);
        const float4 kept = resumed ? my_carry[m * CLUSTER * THREADS * 2] : make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            dc[m][s][0] = s ? kept.z : kept.x;
            dc[m][s][1] = s ? kept.w : kept.y;
            const u32 row = me.first_row + m * 16 + s * 8 + me.group;
            const bool there = row < batch;
            const size_t last = (size_t)(steps - 1) * batch + row;
            next_gates[m][s] = there ? *(const uint4*)(gates + last * GATES + me.unit() * 4) : make_uint4(0, 0, 0, 0);
            next_dh[m][s] = there && given < 2 ? *(const u32*)(d_hidden + (given ? (size_t)row : last) * HIDDEN + me.unit()) : 0;
        }
    }
    const u32 a_base = shared_address(&own[0][me.lane % 16][(me.lane / 16) * 8]), barriers = shared_address(shared.arrived);
    const u32 bytes = CLUSTER * 16 * UNITS * 2;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * TILES; ++i) barrier_init(barriers + i * 8);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        if (steps > 1 || more)
            for (int m = 0; m < TILES; ++m) barrier_expect(barriers + (((steps - 1) & 1) * TILES + m) * 8, bytes);
    }
    cluster_arrive();
    cluster_wait();
    u32 buffer = 0;  // of `own`: alternates, so that a slow warp may still read the other one
    for (int t = steps - 1; t >= 0; --t)
#pragma unroll
        for (int m = 0; m < TILES; ++m, buffer ^= 1) {
            const u32 now = t & 1, then = now ^ 1;
            if (t + 1 < steps) barrier_wait(barriers + (then * TILES + m) * 8, ((steps - 2 - t) / 2) & 1);
            // What is sent in the step before arrives in this barrier's next phase.
            if (threadIdx.x == 0 && t > (more ? 0 : 1)) barrier_expect(barriers + (then * TILES + m) * 8, bytes);
            const u32 column = me.warp * 8 + me.quad * 2, first = me.first_row + m * 16;
            const uint2 cell_now = cell[m], cell_before = before[m];
            cell[m] = cell_before;
            before[m] = t > 1 || (more && t == 1) ? (my_cells + (t - 2) * (long long)cell_stride)[m * CLUSTER * THREADS] : make_uint2(0, 0);
            const float4 kept = resumed && t + 1 == steps ? my_carry[m * CLUSTER * THREADS * 2 + 1] : make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                const u32 row = s * 8 + me.group, at = first + row;
                float dh[2] = {low(next_dh[m][s]) + (s ? kept.z : kept.x), high(next_dh[m][s]) + (s ? kept.w : kept.y)};
                if (t + 1 < steps) {
#pragma unroll
                    for (int peer = 0; peer < CLUSTER; ++peer) {
                        const u32 part = *(const u32*)&received[then][m][peer][row][column];
                        dh[0] += low(part);
                        dh[1] += high(part);
                    }
                }
                const u32 in[4] = {next_gates[m][s].x, next_gates[m][s].y, next_gates[m][s].z, next_gates[m][s].w};
                const u32 cells_now = s ? cell_now.y : cell_now.x, cells_before = s ? cell_before.y : cell_before.x;
                float d[4][2];
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const float i = j ? high(in[0]) : low(in[0]), f = j ? high(in[1]) : low(in[1]);
                    const float g = j ? high(in[2]) : low(in[2]), o = j ? high(in[3]) : low(in[3]);
                    const float kept_before = j ? high(cells_before) : low(cells_before);
#if GRU
                    // i: reset, f: update, g: new, o: the state's part of it.
                    const float whole = dh[j] + dc[m][s][j];
                    d[2][j] = whole * (1.f - f) * (1.f - g * g);
                    d[3][j] = d[2][j] * i;
                    d[0][j] = d[2][j] * o * i * (1.f - i);
                    d[1][j] = whole * (kept_before - g) * f * (1.f - f);
                    dc[m][s][j] = whole * f;
#else
                    const float tc = tanh_fast(j ? high(cells_now) : low(cells_now));
                    const float dcell = fmaf(dh[j] * o, 1.f - tc * tc, dc[m][s][j]);
                    d[0][j] = dcell * g * i * (1.f - i);
                    d[1][j] = dcell * kept_before * f * (1.f - f);
                    d[2][j] = dcell * i * (1.f - g * g);
                    d[3][j] = dh[j] * tc * o * (1.f - o);
                    dc[m][s][j] = dcell * f;
#endif
                }
                const uint4 out = make_uint4(pack(d[0][0], d[0][1]), pack(d[1][0], d[1][1]), pack(d[2][0], d[2][1]), pack(d[3][0], d[3][1]));
                // Nobody reads the first step's, and without that step's barrier it would overtake those who still read the last.
                if (t > 0 || more) *(uint4*)&own[buffer][row][column * 4] = out;
                if (at < batch) {
                    *(uint4*)(gates + ((size_t)t * batch + at) * GATES + me.unit() * 4) = out;
#pragma unroll
                    for (int g = 0; g < 4; ++g) {
                        bias[g][0] += d[g][0];
                        bias[g][1] += d[g][1];
                    }
                    if (t > 0) {
                        const size_t place = (size_t)(t - 1) * batch + at;
                        next_gates[m][s] = *(const uint4*)(gates + place * GATES + me.unit() * 4);
                        next_dh[m][s] = given ? 0 : *(const u32*)(d_hidden + place * HIDDEN + me.unit());
                    }
                }
            }
            if (t == 0 && !more) continue;
            __syncthreads();
            float sum[n_tiles][4] = {};
#pragma unroll
            for (int k = 0; k < k_tiles; ++k) {
                u32 a[4];
                load_rows(a, a_base + buffer * (u32)sizeof(own[0]) + k * 32);
                if (k < BACK_HELD) {
#pragma unroll
                    for (int n = 0; n < n_tiles; ++n) multiply(sum[n], a, w[k][n][0], w[k][n][1]);
                } else {
#pragma unroll
                    for (int pair = 0; pair < n_tiles / 2; ++pair) {
                        const uint4 two = laid[((k - BACK_HELD) * WARPS * (n_tiles / 2) + pair) * 32];
                        multiply(sum[2 * pair], a, two.x, two.y);
                        multiply(sum[2 * pair + 1], a, two.z, two.w);
                    }
                }
            }
            const u32 barrier = barriers + (now * TILES + m) * 8;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const u32 row = half * 8 + me.group;
#if N_TILES % 4 == 0
#pragma unroll
                for (int n = 0; n < n_tiles; n += 4) {
                    u32 words[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i) words[i] = pack(sum[n + i][half * 2], sum[n + i][half * 2 + 1]);
                    const uint4 piece = transpose(words[0], words[1], words[2], words[3], me.quad);
                    const u32 to = me.warp * (HIDDEN / WARPS) + (n + me.quad) * 8, peer = to / UNITS;
                    send(peer_address(shared_address(&received[now][m][me.rank][row][to % UNITS]), peer), peer_address(barrier, peer), piece);
                }
#else
#pragma unroll
                for (int n = 0; n < n_tiles; ++n) {
                    const u32 to = me.warp * (HIDDEN / WARPS) + n * 8 + me.quad * 2, peer = to / UNITS;
                    const u32 piece = pack(sum[n][half * 2], sum[n][half * 2 + 1]);
                    send(peer_address(shared_address(&received[now][m][me.rank][row][to % UNITS]), peer), peer_address(barrier, peer), piece);
                }
#endif
            }
        }
    if (more)
#pragma unroll
        for (int m = 0; m < TILES; ++m) {
            barrier_wait(barriers + m * 8, ((steps - 1) / 2) & 1);
            float dh[2][2] = {};
#pragma unroll
            for (int s = 0; s < 2; ++s)
#pragma unroll
                for (int peer = 0; peer < CLUSTER; ++peer) {
                    const u32 part = *(const u32*)&received[0][m][peer][s * 8 + me.group][me.warp * 8 + me.quad * 2];
                    dh[s][0] += low(part);
                    dh[s][1] += high(part);
                }
            my_carry[m * CLUSTER * THREADS * 2] = make_float4(dc[m][0][0], dc[m][0][1], dc[m][1][0], dc[m][1][1]);
            my_carry[m * CLUSTER * THREADS * 2 + 1] = make_float4(dh[0][0], dh[0][1], dh[1][0], dh[1][1]);
        }
    cluster_arrive();
    cluster_wait();
    // Rows of one unit lie in the lanes of equal quad: fold them, one lane writes.
#pragma unroll
    for (int g = 0; g < 4; ++g)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            float value = bias[g][j];
            for (int apart = 4; apart < 32; apart *= 2) value += __shfl_xor_sync(0xffffffffu, value, apart);
            if (me.group == 0) bias_parts[(size_t)blockIdx.y * GATES + me.unit() * 4 + g * 2 + j] = value;
        }
}
