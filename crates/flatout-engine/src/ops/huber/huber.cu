
extern "C" __global__ void huber_forward(const real* prediction, const real* target, float* loss, int width, const Control* control, float delta) {
    mean_loss(prediction, target, loss, width, control, [=](float p, float t) {
        const float error = fabsf(p - t);
        return error > delta ? delta * (error - 0.5f * delta) : 0.5f * error * error;
    });
}
extern "C" __global__ void huber_backward(const real* prediction, const real* target, real* gradient, i64 total, int width, const Control* control, const Results* results, int add, float delta) {
    loss_gradient(prediction, target, gradient, total, width, control, results, add, [=](float p, float t) {
        const float error = p - t;
        return error > delta ? delta : error < -delta ? -delta : error;
    });
}
