
// In the form that cannot overflow.
extern "C" __global__ void bce_forward(const real* logit, const real* target, float* loss, int width, const Control* control) {
    mean_loss(logit, target, loss, width, control, [](float x, float t) { return (x < 0.f ? 0.f : x) - x * t + log1pf(expf(-fabsf(x))); });
}
extern "C" __global__ void bce_backward(const real* logit, const real* target, real* gradient, i64 total, int width, const Control* control, const Results* results, int add) {
    loss_gradient(logit, target, gradient, total, width, control, results, add, [](float x, float t) { return 1.f / (1.f + expf(-x)) - t; });
}
