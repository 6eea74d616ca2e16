
// A block per image; thread t takes map t % maps and every (blockDim / maps)-th pixel. The lines' sums are added in their order. sums: log Σ exp
// of each map; blocks y take further maps where there are more than threads.
extern "C" __global__ void soft_argmax_forward(const real* input, float* sums, float* centers, real* output, int height, int width, int maps) {
    __shared__ float shared[3][256];
    const int begin = blockIdx.y * blockDim.x, here = min(maps - begin, (int)blockDim.x), lines = blockDim.x / here;
    const int line = threadIdx.x / here, map = begin + threadIdx.x % here, pixels = height * width;
    const bool active = line < lines;
    const real* source = input + (i64)blockIdx.x * pixels * maps + map;
    float largest = -__int_as_float(0x7f800000);
    if (active)
        for (int pixel = line; pixel < pixels; pixel += lines) largest = fmaxf(largest, to_float(source[(i64)pixel * maps]));
    shared[0][threadIdx.x] = largest;
    __syncthreads();
    for (int other = 0; other < lines; ++other) largest = fmaxf(largest, shared[0][other * here + threadIdx.x % here]);
    __syncthreads();
    float sum = 0.f, x = 0.f, y = 0.f;
    if (active)
        for (int pixel = line; pixel < pixels; pixel += lines) {
            const float weight = expf(to_float(source[(i64)pixel * maps]) - largest);
            sum += weight;
            x += weight * ((2 * (pixel % width) + 1) / (float)width - 1.f);
            y += weight * ((2 * (pixel / width) + 1) / (float)height - 1.f);
        }
    shared[0][threadIdx.x] = sum;
    shared[1][threadIdx.x] = x;
    shared[2][threadIdx.x] = y;
    __syncthreads();
    if (line) return;
    for (int other = 1; other < lines; ++other) {
        sum += shared[0][other * here + threadIdx.x];
        x += shared[1][other * here + threadIdx.x];
        y += shared[2][other * here + threadIdx.x];
    }
    const i64 item = (i64)blockIdx.x * maps + map;
    centers[2 * item] = x / sum;
    centers[2 * item + 1] = y / sum;
    output[2 * item] = to_real(x / sum);
    output[2 * item + 1] = to_real(y / sum);
    sums[item] = largest + logf(sum);
}
// centers: the positions in f32; rounded to 16 bits, they would bend the gradient of a sharp peak.
extern "C" __global__ void soft_argmax_backward(const real* gradient, const real* input, const float* sums, const float* centers, real* target, i64 images, int height, int width, int maps, int add) {
    EACH(i, images * height * width * maps) {
        const int map = i % maps, x = i / maps % width, y = i / maps / width % height;
        const i64 item = i / maps / width / height * maps + map;
        const float weight = expf(to_float(input[i]) - sums[item]);
        const float over = (2 * x + 1) / (float)width - 1.f, down = (2 * y + 1) / (float)height - 1.f;
        const float value = weight * (to_float(gradient[2 * item]) * (over - centers[2 * item]) + to_float(gradient[2 * item + 1]) * (down - centers[2 * item + 1]));
        target[i] = to_real(add ? to_float(target[i]) + value : value);
    }
}
