
extern "C" __global__ void positions_forward(const real* input, const float* table, real* output, int steps, i64 batch, int width) {
    EACH(i, steps * batch * width) output[i] = to_real(to_float(input[i]) + table[i / width / batch * width + i % width]);
}
// Block (x, y): 32 columns of step y; its 32 lines share the rows, always in the same order.
extern "C" __global__ void positions_table(const real* gradient, float* table, i64 batch, int width) {
    __shared__ float sums[32][33];
    const int lane = threadIdx.x % 32, line = threadIdx.x / 32, column = blockIdx.x * 32 + lane;
    const real* source = gradient + blockIdx.y * batch * width;
    float sum = 0.f;
    if (column < width)
#pragma unroll 4
        for (i64 row = line; row < batch; row += 32) sum += to_float(source[row * width + column]);
    sums[line][lane] = sum;
    __syncthreads();
    if (line || column >= width) return;
    for (int other = 1; other < 32; ++other) sum += sums[other][lane];
    table[blockIdx.y * width + column] += sum;
}
