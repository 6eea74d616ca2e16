
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
extern "C" __global__ void narrow_input_gradient(const real* before, const float* weight, real* target, i64 rows, int inputs, int outputs, int add) {
    EACH(i, rows * inputs) {
        const i64 row = i / inputs, k = i % inputs;
        float sum = add ? to_float(target[i]) : 0.f;
        for (int o = 0; o < outputs; ++o) sum += to_float(before[row * outputs + o]) * weight[o * inputs + k];
        target[i] = to_real(sum);
    }
}
// parts: [gridDim.y, outputs · inputs]; 32 columns of the input a block x, 32 × 8 threads.
extern "C" __global__ void narrow_weight_parts(const real* before, const real* input, float* parts, i64 rows, int inputs, int outputs) {
    __shared__ float sums[8][33];
    const int lane = threadIdx.x % 32, line = threadIdx.x / 32, k = blockIdx.x * 32 + lane;
    const i64 share = (rows + gridDim.y - 1) / gridDim.y, first = blockIdx.y * share, end = min(first + share, rows);
    for (int o = 0; o < outputs; ++o) {
        float sum = 0.f;
        if (k < inputs)
            for (i64 row = first + line; row < end; row += 8) sum += to_float(before[row * outputs + o]) * to_float(input[row * inputs + k]);
        sums[line][lane] = sum;
        __syncthreads();
        if (line == 0 && k < inputs) {
            for (int other = 1; other < 8; ++other) sum += sums[other][lane];
            parts[((i64)blockIdx.y * outputs + o) * inputs + k] = sum;
        }
        __syncthreads();
    }
}
