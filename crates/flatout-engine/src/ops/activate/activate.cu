
extern "C" __global__ void activate_forward(const real* input, real* output, i64 count, int activation) {
    EACH(i, count) output[i] = to_real(activated(to_float(input[i]), activation));
}
extern "C" __global__ void activate_backward(const real* gradient, const real* result, real* target, i64 count, int activation, int add) {
    EACH(i, count) {
        const float value = to_float(gradient[i]) * activation_slope(to_float(result[i]), activation);
        target[i] = to_real(add ? to_float(target[i]) + value : value);
    }
}
