
// A convolution over images of few channels, its bias and activation, and the max pooling behind it, if there is one (POOL above
// 1), in one pass: what lies between convolution and pooling is never written. Compiled for one shape: CHANNELS, FILTERS, SIZE,
// STRIDE, PADDING, POOL, ACTIVATION; VECTOR filters a thread.

#define PLACES (SIZE * SIZE)
#define PATCH (CHANNELS * PLACES)
// Threads that make one output pixel, and pixels that a block makes at once.
#define LANES (FILTERS / VECTOR)
#define THREADS 256
#define LINES (THREADS / LANES)
// Output pixels of a tile, and what it reads of the images.
#define TILE_ROWS 8
#define TILE_COLUMNS 16
#define STEP (POOL * STRIDE)
#define READ_ROWS ((TILE_ROWS * POOL - 1) * STRIDE + SIZE)
#define READ_COLUMNS ((TILE_COLUMNS * POOL - 1) * STRIDE + SIZE)
#define READ (READ_ROWS * READ_COLUMNS * CHANNELS)
#define READS ((READ + THREADS - 1) / THREADS)
// What one output pixel sees along a side.
#define SEEN ((POOL - 1) * STRIDE + SIZE)

struct Images {
    const real* pixels;
    int height, width, rows, columns;  // of the images; of the output, pooled
    i64 batch;
    __device__ int down() const { return (rows + TILE_ROWS - 1) / TILE_ROWS; }
    __device__ int over() const { return (columns + TILE_COLUMNS - 1) / TILE_COLUMNS; }
    __device__ i64 tiles() const { return batch * down() * over(); }
    __device__ i64 image(i64 tile) const { return tile / (down() * over()); }
    __device__ int row(i64 tile) const { return (int)(tile % (down() * over())) / over() * TILE_ROWS; }
    __device__ int column(i64 tile) const { return (int)(tile % (down() * over())) % over() * TILE_COLUMNS; }
    // This thread's share of a tile, on its way while another tile is computed.
    __device__ void fetch(i64 tile, real (&values)[READS]) const {
        const int first_row = row(tile) * STEP - PADDING, first_column = column(tile) * STEP - PADDING;
#pragma unroll
        for (int n = 0; n < READS; ++n) {
            const int i = n * THREADS + threadIdx.x, channel = i % CHANNELS, x = i / CHANNELS % READ_COLUMNS + first_column, y = i / CHANNELS / READ_COLUMNS + first_row;
            const bool there = i < READ && x >= 0 && x < width && y >= 0 && y < height;
            values[n] = there ? pixels[((image(tile) * height + y) * width + x) * CHANNELS + channel] : to_real(0.f);
        }
    }
};
__device__ __forceinline__ void keep_tile(float* shared, const real (&values)[READS]) {
#pragma unroll
    for (int n = 0; n < READS; ++n)
        if (n * THREADS + threadIdx.x < READ) shared[n * THREADS + threadIdx.x] = to_float(values[n]);
}

extern "C" __global__ void __launch_bounds__(THREADS) few_forward(const real* pixels, const float* weight, const float* bias, real* output, u8* index, i64 batch, int height, int width, int rows, int columns) {
    __shared__ float shared[READ];
    const Images images{pixels, height, width, rows, columns, batch};
    const int filter = threadIdx.x % LANES * VECTOR, line = threadIdx.x / LANES;
    float w[VECTOR][PATCH], b[VECTOR];
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
        b[v] = bias[filter + v];
#pragma unroll
        for (int p = 0; p < PATCH; ++p) w[v][p] = weight[(filter + v) * PATCH + p];
    }
    const i64 tiles = images.tiles();
    real next[READS];
    if (blockIdx.x < tiles) images.fetch(blockIdx.x, next);
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        __syncthreads();
        keep_tile(shared, next);
        __syncthreads();
        if (tile + gridDim.x < tiles) images.fetch(tile + gridDim.x, next);
        for (int pixel = line; pixel < TILE_ROWS * TILE_COLUMNS; pixel += LINES) {
            const int y = pixel / TILE_COLUMNS, x = pixel % TILE_COLUMNS, row = images.row(tile) + y, column = images.column(tile) + x;
            if (row >= rows || column >= columns) continue;
            float seen[CHANNELS][SEEN][SEEN];
#pragma unroll
            for (int c = 0; c < CHANNELS; ++c)
#pragma unroll
                for (int i = 0; i < SEEN; ++i)
#pragma unroll
                    for (int j = 0; j < SEEN; ++j) seen[c][i][j] = shared[((y * STEP + i) * READ_COLUMNS + x * STEP + j) * CHANNELS + c];
            Pack<VECTOR> result;
            Bytes<VECTOR> which;
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) {
                float best = 0.f;
                int winner = 0;
#pragma unroll
                for (int k = 0; k < POOL * POOL; ++k) {
                    float sum = 0.f;
#pragma unroll
                    for (int p = 0; p < PATCH; ++p) sum += w[v][p] * seen[p / PLACES][k / POOL * STRIDE + p % PLACES / SIZE][k % POOL * STRIDE + p % SIZE];
                    const bool better = k == 0 || sum > best || sum != sum;
                    best = better ? sum : best;
                    winner = better ? k : winner;
                }
                result.value[v] = to_real(activated(best + b[v], ACTIVATION));
                which.value[v] = (u8)winner;
            }
            const i64 at = ((images.image(tile) * rows + row) * columns + column) * FILTERS + filter;
            *(Pack<VECTOR>*)(output + at) = result;
            if (POOL > 1) *(Bytes<VECTOR>*)(index + at) = which;
        }
    }
}

// parts: [gridDim.x, FILTERS · PATCH + FILTERS], the gradients of weight and bias in PyTorch's order.
extern "C" __global__ void __launch_bounds__(THREADS) few_backward(const real* pixels, const real* gradient, const real* result, const u8* index, float* parts, i64 batch, int height, int width, int rows, int columns) {
    __shared__ float shared[READ > THREADS ? READ : THREADS];
    const Images images{pixels, height, width, rows, columns, batch};
    const int filter = threadIdx.x % LANES * VECTOR, line = threadIdx.x / LANES;
    // The last one is the bias.
    float sums[VECTOR][PATCH + 1] = {};
    const i64 tiles = images.tiles();
    real next[READS];
    if (blockIdx.x < tiles) images.fetch(blockIdx.x, next);
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        __syncthreads();
        keep_tile(shared, next);
        __syncthreads();
        if (tile + gridDim.x < tiles) images.fetch(tile + gridDim.x, next);
#pragma unroll 2
        for (int pixel = line; pixel < TILE_ROWS * TILE_COLUMNS; pixel += LINES) {
            const int y = pixel / TILE_COLUMNS, x = pixel % TILE_COLUMNS, row = images.row(tile) + y, column = images.column(tile) + x;
            if (row >= rows || column >= columns) continue;
            const i64 at = ((images.image(tile) * rows + row) * columns + column) * FILTERS + filter;
            const Pack<VECTOR> gradients = *(const Pack<VECTOR>*)(gradient + at);
            Pack<VECTOR> results;
            if (ACTIVATION) results = *(const Pack<VECTOR>*)(result + at);
            Bytes<VECTOR> which;
            if (POOL > 1) which = *(const Bytes<VECTOR>*)(index + at);
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) {
                float g = to_float(gradients.value[v]);
                if (ACTIVATION) g *= activation_slope(to_float(results.value[v]), ACTIVATION);
                const int k = POOL > 1 ? which.value[v] : 0;
                const float* seen = shared + ((y * STEP + k / POOL * STRIDE) * READ_COLUMNS + x * STEP + k % POOL * STRIDE) * CHANNELS;
                sums[v][PATCH] += g;
#pragma unroll
                for (int p = 0; p < PATCH; ++p) sums[v][p] += g * seen[(p % PLACES / SIZE * READ_COLUMNS + p % SIZE) * CHANNELS + p / PLACES];
            }
        }
    }
    float* part = parts + (i64)blockIdx.x * FILTERS * (PATCH + 1);
#pragma unroll
    for (int v = 0; v < VECTOR; ++v)
#pragma unroll
        for (int p = 0; p <= PATCH; ++p) {
            __syncthreads();
            shared[threadIdx.x] = sums[v][p];
            __syncthreads();
            if (line == 0) {
                float sum = 0.f;
                for (int other = 0; other < LINES; ++other) sum += shared[other * LANES + threadIdx.x];
                part[p < PATCH ? (filter + v) * PATCH + p : FILTERS * PATCH + filter + v] = sum;
            }
        }
}
