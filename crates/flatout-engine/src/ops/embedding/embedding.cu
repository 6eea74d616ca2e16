
extern "C" __global__ void embedding_forward(const float* weight, const int* index, real* output, int batch, int entries, int width, Results* results) {
    EACH(i, (i64)batch * width) {
        int row = index[i / width];
        if (row < 0 || row >= entries) {
            results->bad_index = row + 1;
            row = 0;
        }
        output[i] = to_real(weight[(i64)row * width + i % width]);
    }
}

// Each sample's warp looks whether it is the first of its entry in the batch; that warp adds up all samples of the entry, in the
// order of the batch: no atomics, the same sum every time.
extern "C" __global__ void embedding_backward(const real* gradient, const int* index, float* target, int batch, int entries, int width) {
    const int sample = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (sample >= batch) return;
    const int entry = index[sample];
    if (entry < 0 || entry >= entries) return;
    for (int first = 0; first < sample; first += 32) {
        const int other = first + lane;
        if (__any_sync(0xffffffffu, other < sample && index[other] == entry)) return;
    }
    for (int column = lane; column < (width + 31) / 32 * 32; column += 32) {
        float sum = 0.f;
        for (int first = sample & ~31; first < batch; first += 32) {
            const int other = first + lane;
            u32 same = __ballot_sync(0xffffffffu, other >= sample && other < batch && index[other] == entry);
            for (; same; same &= same - 1) {
                const int one = first + __ffs(same) - 1;
                if (column < width) sum += to_float(gradient[(i64)one * width + column]);
            }
        }
        if (column < width) target[(i64)entry * width + column] += sum;
    }
}
