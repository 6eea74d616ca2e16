
extern "C" __global__ void mse_forward(const real* prediction, const real* target, float* loss, int width, const Control* control) {
    mean_loss(prediction, target, loss, width, control, [](float p, float t) { return (p - t) * (p - t); });
}
extern "C" __global__ void mse_backward(const real* prediction, const real* target, real* gradient, i64 total, int width, const Control* control, const Results* results, int add) {
    loss_gradient(prediction, target, gradient, total, width, control, results, add, [](float p, float t) { return 2.f * (p - t); });
}
