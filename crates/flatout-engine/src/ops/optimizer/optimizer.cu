
// Σ g² over all gradients, a part a block.
extern "C" __global__ void norm_parts(const float* gradient, i64 count, double* parts) {
    double sum = 0;
    EACH(i, count) sum += (double)gradient[i] * gradient[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}
// The norm of the gradients without their scale, and the factor that an update puts on them: for the scale and the clip. With
// `scaled`, a norm that is not finite leaves the update out (factor −1) and halves the scale; enough good ones double it.
extern "C" __global__ void norm_whole(const double* parts, int count, float limit, int scaled, Results* results) {
    double sum = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) sum += parts[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        const double scale = results->scale, norm = sqrt(sum) / scale;
        results->norm = (float)norm;
        results->factor = (float)((limit > 0.f ? fmin(limit / (norm + 1e-6), 1.0) : 1.0) / scale);
        if (!scaled) return;
        if (norm - norm == 0.0) {
            if (++results->good == 2000) {
                results->scale = (float)fmin(scale * 2.0, 16777216.0);
                results->good = 0;
            }
        } else {
            results->factor = -1.f;
            results->scale = (float)fmax(scale * 0.5, 1.0);
            results->good = 0;
            ++results->skipped;
        }
    }
}
// One kernel over all parameters; `computing` is null where the parameters themselves are computed with.
extern "C" __global__ void adam(float* parameter, const float* gradient, float* mean, float* square, real* computing, i64 count, float beta1, float beta2, float epsilon, float coupled_decay, int decoupled, const Control* control, const Results* results) {
    if (results->factor < 0.f) return;
    const float factor = results->factor, keep = decoupled ? control->keep : 1.f, size = control->step_size, correction = control->correction;
    EACH(i, count) {
        const float p = parameter[i], g = gradient[i] * factor + coupled_decay * p;
        const float m = beta1 * mean[i] + (1.f - beta1) * g, v = beta2 * square[i] + (1.f - beta2) * g * g;
        const float updated = p * keep - size * (m / (sqrtf(v) * correction + epsilon));
        mean[i] = m;
        square[i] = v;
        parameter[i] = updated;
        if (computing) computing[i] = to_real(updated);
    }
}
extern "C" __global__ void descend(float* parameter, const float* gradient, float* momentum, real* computing, i64 count, float beta1, float decay, const Control* control, const Results* results) {
    if (results->factor < 0.f) return;
    const float factor = results->factor, rate = control->learning_rate;
    EACH(i, count) {
        const float p = parameter[i], m = beta1 * momentum[i] + gradient[i] * factor + decay * p;
        momentum[i] = m;
        parameter[i] = p - rate * m;
        if (computing) computing[i] = to_real(p - rate * m);
    }
}
