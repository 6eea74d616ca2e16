
// A warp's softmax of one row: the largest logit and Σ e^(x − largest).
__device__ __forceinline__ void softmax_row(const real* row, int classes, int lane, float& largest, float& sum) {
    largest = __int_as_float(0xff800000);
    for (int k = lane; k < classes; k += 32) largest = fmaxf(largest, to_float(row[k]));
    for (int apart = 16; apart; apart /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, apart));
    sum = 0.f;
    for (int k = lane; k < classes; k += 32) sum += expf(to_float(row[k]) - largest);
    for (int apart = 16; apart; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
}
// The loss of each answer, a warp each; a class that does not exist gives NaN, which nobody overlooks.
extern "C" __global__ void cross_entropy_rows(const real* logits, const int* target, float* losses, i64 rows, int answers, int classes, const Control* control, Results* results) {
    const i64 row = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    float largest, sum;
    softmax_row(logits + row * classes, classes, lane, largest, sum);
    if (lane) return;
    const int own = target[row];
    float loss = 0.f;
    if (row < (i64)control->valid_rows * answers) {
        if (own >= 0 && own < classes) loss = logf(sum) + largest - to_float(logits[row * classes + own]);
        else {
            loss = __int_as_float(0x7fc00000);
            results->bad_index = own + 1;
        }
    }
    losses[row] = loss;
}
extern "C" __global__ void cross_entropy_mean(const float* losses, float* loss, i64 rows, int answers, const Control* control) {
    double sum = 0;
    for (i64 i = threadIdx.x; i < rows; i += blockDim.x) sum += (double)losses[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) loss[0] = (float)(sum / max((i64)control->valid_rows * answers, (i64)1));
}
extern "C" __global__ void cross_entropy_backward(const real* logits, const int* target, real* gradient, i64 rows, int answers, int classes, const Control* control, const Results* results, int add) {
    const i64 row = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    float largest, sum;
    softmax_row(logits + row * classes, classes, lane, largest, sum);
    const i64 count = (i64)control->valid_rows * answers;
    const float factor = row < count ? results->scale * control->loss_weight / max(count, (i64)1) : 0.f;
    const int own = target[row];
    for (int k = lane; k < classes; k += 32) {
        const float share = expf(to_float(logits[row * classes + k]) - largest) / sum;
        const float value = factor == 0.f ? 0.f : factor * (share - (k == own ? 1.f : 0.f));
        real* place = gradient + row * classes + k;
        *place = to_real(add ? to_float(*place) + value : value);
    }
}
