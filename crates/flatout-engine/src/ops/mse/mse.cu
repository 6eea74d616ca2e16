
extern "C" __global__ void mse_forward(const real* prediction, const real* target, float* loss, int width, const Control* control) {
    const i64 count = (i64)control->valid_rows * width;
    double sum = 0;
    for (i64 i = threadIdx.x; i < count; i += blockDim.x) {
        const float apart = to_float(prediction[i]) - to_float(target[i]);
        sum += (double)(apart * apart);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) loss[0] = (float)(sum / max(count, (i64)1));
}
extern "C" __global__ void mse_backward(const real* prediction, const real* target, real* gradient, i64 total, int width, const Control* control, int add) {
    const i64 count = (i64)control->valid_rows * width;
    const float factor = 2.f * control->loss_weight / max(count, (i64)1);
    EACH(i, total) {
        const float value = i < count ? factor * (to_float(prediction[i]) - to_float(target[i])) : 0.f;
        gradient[i] = to_real(add ? to_float(gradient[i]) + value : value);
    }
}
