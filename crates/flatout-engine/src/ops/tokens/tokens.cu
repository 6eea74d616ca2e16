
// output[feature][row][column] = input[row][feature] · weight[feature][column] + bias[feature][column].
extern "C" __global__ void tokens_forward(const real* input, const float* weight, const float* bias, real* output, int features, i64 batch, int width) {
    EACH(i, features * batch * width) {
        const i64 feature = i / width / batch, row = i / width % batch, own = feature * width + i % width;
        output[i] = to_real(to_float(input[row * features + feature]) * weight[own] + bias[own]);
    }
}
// Block (x, y): 32 columns of feature y; its 32 lines share the rows, always in the same order.
extern "C" __global__ void tokens_parameters(const real* gradient, const real* input, float* weight, float* bias, int features, i64 batch, int width) {
    __shared__ float weights[32][33], biases[32][33];
    const int lane = threadIdx.x % 32, line = threadIdx.x / 32, column = blockIdx.x * 32 + lane;
    const i64 feature = blockIdx.y;
    const real* source = gradient + feature * batch * width;
    float own_weight = 0.f, own_bias = 0.f;
    if (column < width)
        for (i64 row = line; row < batch; row += 32) {
            const float value = to_float(source[row * width + column]);
            own_weight += value * to_float(input[row * features + feature]);
            own_bias += value;
        }
    weights[line][lane] = own_weight;
    biases[line][lane] = own_bias;
    __syncthreads();
    if (line || column >= width) return;
    for (int other = 1; other < 32; ++other) {
        own_weight += weights[other][lane];
        own_bias += biases[other][lane];
    }
    weight[feature * width + column] += own_weight;
    bias[feature * width + column] += own_bias;
}
// target[row][feature] = gradient[feature][row] · weight[feature], a warp each.
extern "C" __global__ void tokens_inputs(const real* gradient, const float* weight, real* target, int features, i64 batch, int width, int add) {
    const i64 place = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (place >= batch * features) return;
    const i64 row = place / features, feature = place % features;
    float sum = 0.f;
    for (int column = lane; column < width; column += 32)
        sum += to_float(gradient[(feature * batch + row) * width + column]) * weight[feature * width + column];
    for (int apart = 16; apart; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
    if (lane == 0) target[place] = to_real(add ? to_float(target[place]) + sum : sum);
}
