
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
    // Four at a time: all stretches begin and end at multiples of 256 bytes.
    EACH(i, count / 4) {
        float4 p4 = ((const float4*)parameter)[i], m4 = ((const float4*)mean)[i], v4 = ((const float4*)square)[i];
        const float4 g4 = ((const float4*)gradient)[i];
        float *p = &p4.x, *m = &m4.x, *v = &v4.x;
        const float* g = &g4.x;
        Pack<4> rounded;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const float slope = g[k] * factor + coupled_decay * p[k];
            m[k] = beta1 * m[k] + (1.f - beta1) * slope;
            v[k] = beta2 * v[k] + (1.f - beta2) * slope * slope;
            p[k] = p[k] * keep - size * (m[k] / (sqrtf(v[k]) * correction + epsilon));
            rounded.value[k] = to_real(p[k]);
        }
        ((float4*)mean)[i] = m4;
        ((float4*)square)[i] = v4;
        ((float4*)parameter)[i] = p4;
        if (computing) ((Pack<4>*)computing)[i] = rounded;
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
// The running averages of the parameters. An update that was left out leaves them as they are.
extern "C" __global__ void follow_average(const float* parameter, float* average, i64 count, float rest, const Results* results) {
    if (results->factor < 0.f) return;
    EACH(i, count) average[i] += rest * (parameter[i] - average[i]);
}
extern "C" __global__ void exchange_average(float* parameter, float* average, real* computing, i64 count) {
    EACH(i, count) {
        const float p = parameter[i], a = average[i];
        parameter[i] = a;
        average[i] = p;
        if (computing) computing[i] = to_real(a);
    }
}
