
// The twin of cpu.rs, in f32. A word is the bits of a float: the labels of a row, then its weights.
__device__ __forceinline__ float softplus(float x) { return fmaxf(x, 0.f) + log1pf(expf(-fabsf(x))); }
__device__ __forceinline__ float sigmoid_of(float x) { return 1.f / (1.f + expf(-x)); }
__device__ __forceinline__ float term_value(int kind, float parameter, float output, float label) {
    const float error = output - label, size = fabsf(error);
    switch (kind) {
        case 0: return error * error;
        case 1: return size;
        case 2: return size > parameter ? parameter * (size - 0.5f * parameter) : 0.5f * error * error;
        case 3: return fmaxf(-parameter * error, (1.f - parameter) * error);
        default: {
            const float entropy = softplus(output) - output * label;
            return parameter == 0.f ? entropy : powf(sigmoid_of(label > 0.5f ? -output : output), parameter) * entropy;
        }
    }
}
__device__ __forceinline__ float term_slope(int kind, float parameter, float output, float label) {
    const float error = output - label;
    switch (kind) {
        case 0: return 2.f * error;
        case 1: return error > 0.f ? 1.f : error < 0.f ? -1.f : 0.f;
        case 2: return fminf(fmaxf(error, -parameter), parameter);
        case 3: return error > 0.f ? 1.f - parameter : error < 0.f ? -parameter : 0.f;
        default: {
            if (parameter == 0.f) return sigmoid_of(output) - label;
            const float sign = label > 0.5f ? 1.f : -1.f, towards = sign * output;
            const float own = sigmoid_of(towards), rest = sigmoid_of(-towards);
            return sign * powf(rest, parameter) * (-parameter * own * softplus(-towards) - rest);
        }
    }
}
// losses[row] = or += the term's loss of a row, a thread each.
extern "C" __global__ void terms_values(const real* prediction, const int* words, float* losses, i64 rows, int width, int columns, int first, int count, int column, float share, int kind, float parameter, const Control* control, int add) {
    EACH(row, rows) {
        float loss = 0.f;
        if (row < control->valid_rows)
            for (int k = 0; k < count; ++k) {
                const int* own = words + row * 2 * columns + column + k;
                const float weight = share * __int_as_float(own[columns]);
                if (weight != 0.f) loss += weight * term_value(kind, parameter, to_float(prediction[row * width + first + k]), __int_as_float(own[0]));
            }
        losses[row] = add ? losses[row] + loss : loss;
    }
}
extern "C" __global__ void terms_slopes(const real* prediction, const int* words, real* gradient, i64 rows, int width, int columns, int first, int count, int column, float share, int kind, float parameter, const Control* control, const Results* results, int add) {
    const float factor = share * results->scale * control->loss_weight / max(control->valid_rows, 1);
    EACH(i, rows * count) {
        const i64 row = i / count;
        const int k = i % count;
        const int* own = words + row * 2 * columns + column + k;
        const float weight = row < control->valid_rows ? factor * __int_as_float(own[columns]) : 0.f;
        real* place = gradient + row * width + first + k;
        const float value = weight == 0.f ? 0.f : weight * term_slope(kind, parameter, to_float(prediction[row * width + first + k]), __int_as_float(own[0]));
        *place = to_real(add ? to_float(*place) + value : value);
    }
}
// A warp's sum of a row's logits.
__device__ __forceinline__ float logit_sum(const real* row, int classes, int lane) {
    float sum = 0.f;
    for (int k = lane; k < classes; k += 32) sum += to_float(row[k]);
    for (int apart = 16; apart; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
    return sum;
}
// Classes, a warp a row; a class that does not exist gives NaN.
extern "C" __global__ void terms_class_values(const real* prediction, const int* words, float* losses, i64 rows, int width, int columns, int first, int classes, int column, float share, float gamma, float smoothing, const Control* control, Results* results, int add) {
    const i64 row = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    const real* logits = prediction + row * width + first;
    float largest, sum;
    softmax_row(logits, classes, lane, largest, sum);
    const float total = logit_sum(logits, classes, lane);
    if (lane) return;
    const float weight = row < control->valid_rows ? share * __int_as_float(words[row * 2 * columns + columns + column]) : 0.f;
    float loss = 0.f;
    if (weight != 0.f) {
        const int own = (int)__int_as_float(words[row * 2 * columns + column]);
        if (own >= 0 && own < classes) {
            const float log_sum = logf(sum) + largest, entropy = log_sum - to_float(logits[own]);
            const float smoothed = (1.f - smoothing) * entropy + smoothing * (log_sum - total / classes);
            loss = weight * (gamma == 0.f ? smoothed : powf(fmaxf(1.f - expf(-entropy), 0.f), gamma) * smoothed);
        } else {
            loss = __int_as_float(0x7fc00000);
            results->bad_index = own + 1;
        }
    }
    losses[row] = add ? losses[row] + loss : loss;
}
extern "C" __global__ void terms_class_slopes(const real* prediction, const int* words, real* gradient, i64 rows, int width, int columns, int first, int classes, int column, float share, float gamma, float smoothing, const Control* control, const Results* results, int add) {
    const i64 row = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    const real* logits = prediction + row * width + first;
    float largest, sum;
    softmax_row(logits, classes, lane, largest, sum);
    const int own = (int)__int_as_float(words[row * 2 * columns + column]);
    float weight = row < control->valid_rows ? __int_as_float(words[row * 2 * columns + columns + column]) : 0.f;
    if (own < 0 || own >= classes) weight = 0.f;
    if (weight != 0.f) {
        weight *= share * results->scale * control->loss_weight / max(control->valid_rows, 1);
        if (gamma != 0.f) {
            const float entropy = logf(sum) + largest - to_float(logits[own]), share_of_own = expf(-entropy);
            const float rest = fmaxf(1.f - share_of_own, 1e-7f);
            weight *= gamma * powf(rest, gamma - 1.f) * share_of_own * entropy + powf(rest, gamma);
        }
    }
    real* places = gradient + row * width + first;
    for (int k = lane; k < classes; k += 32) {
        const float wanted = smoothing / classes + (k == own ? 1.f - smoothing : 0.f);
        const float value = weight == 0.f ? 0.f : weight * (expf(to_float(logits[k]) - largest) / sum - wanted);
        places[k] = to_real(add ? to_float(places[k]) + value : value);
    }
}
extern "C" __global__ void terms_mean(const float* losses, float* loss, i64 rows, const Control* control) {
    double sum = 0;
    for (i64 i = threadIdx.x; i < rows; i += blockDim.x) sum += (double)losses[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) loss[0] = (float)(sum / max(control->valid_rows, 1));
}
