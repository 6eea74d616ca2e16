
// [rows, columns] f32 → rows of `stride` values for the products, zeros behind the columns.
extern "C" __global__ void gru_weight(const float* weight, real* target, int rows, int columns, int stride) {
    EACH(i, (i64)rows * stride) {
        const int column = i % stride;
        target[i] = to_real(column < columns ? weight[i / stride * columns + column] : 0.f);
    }
}
// The way back, adding.
extern "C" __global__ void gru_weight_gradient(const float* source, float* target, int rows, int columns, int stride) {
    EACH(i, (i64)rows * columns) target[i] += source[i / columns * stride + i % columns];
}
// Gates in: the inputs' products with their bias, out: activated. products: the recurrent ones with theirs; at the first step
// (before is null) they are the bias alone. The new gate's recurrent share is kept in `inner`.
extern "C" __global__ void gru_cell(real* gates, const real* products, const float* bias, const real* before, real* inner, real* hidden, i64 rows, int size) {
    EACH(i, rows * size) {
        const int unit = i % size;
        const i64 at = i / size * 3 * size + unit;
        real* gate = gates + at;
        float own[3];
        for (int k = 0; k < 3; ++k) own[k] = before ? to_float(products[at + k * size]) : bias[k * size + unit];
        const float r = 1.f / (1.f + expf(-to_float(gate[0]) - own[0])), z = 1.f / (1.f + expf(-to_float(gate[size]) - own[1]));
        const float n = tanhf(to_float(gate[2 * size]) + r * own[2]), h = before ? to_float(before[i]) : 0.f;
        gate[0] = to_real(r);
        gate[size] = to_real(z);
        gate[2 * size] = to_real(n);
        inner[i] = to_real(own[2]);
        hidden[i] = to_real(n + z * (h - n));
    }
}
// Gates become the gradients of the inputs' products; recurrent: those of the recurrent products, which differ in the new gate.
// d_hidden: the products of the step after (null at the last); straight: what passes the update gate, f32, carried along.
extern "C" __global__ void gru_cell_backward(real* gates, real* recurrent, const real* inner, const real* before, const real* d_hidden, const real* upstream, float* straight, i64 rows, int size) {
    EACH(i, rows * size) {
        const i64 at = i / size * 3 * size + i % size;
        real* gate = gates + at;
        const float r = to_float(gate[0]), z = to_float(gate[size]), n = to_float(gate[2 * size]), h = before ? to_float(before[i]) : 0.f;
        const float dh = (d_hidden ? to_float(d_hidden[i]) + straight[i] : 0.f) + (upstream ? to_float(upstream[i]) : 0.f);
        const float dz = dh * (h - n) * z * (1.f - z), dn = dh * (1.f - z) * (1.f - n * n), dr = dn * to_float(inner[i]) * r * (1.f - r);
        gate[0] = recurrent[at] = to_real(dr);
        gate[size] = recurrent[at + size] = to_real(dz);
        gate[2 * size] = to_real(dn);
        recurrent[at + 2 * size] = to_real(dn * r);
        straight[i] = dh * z;
    }
}
