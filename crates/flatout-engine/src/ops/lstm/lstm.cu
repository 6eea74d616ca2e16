
// Column p of the gates: natural order (0) is [gate][unit]; permuted order (1, see recurrence.cu) keeps the four gates of two
// units together; of a GRU's four columns the input's parameters have the first three (2), the state's the first two and the
// last (3). `padded` units, of which `size` are real.
__device__ __forceinline__ bool gate_column(int p, int size, int padded, int order, int& row) {
    int gate = order ? p % 8 / 2 : p / padded;
    const int unit = order ? p / 8 * 2 + p % 2 : p % padded;
    const bool absent = (order == 2 && gate == 3) || (order == 3 && gate == 2);
    if (order == 3 && gate == 3) gate = 2;
    row = gate * size + unit;
    return unit < size && !absent;
}
// The order of the state's parameters beside that of the input's.
__device__ __forceinline__ int state_order(int order) { return order == 2 ? 3 : order; }

// What feeds the first layer: the input's columns, then the constant's at every step, then zeros up to `stride`.
extern "C" __global__ void lstm_join(const real* input, const real* constant, real* joined, i64 rows, int batch, int inputs, int constants, int stride) {
    EACH(i, rows * stride) {
        const i64 row = i / stride;
        const int column = i % stride;
        real value = to_real(0.f);
        if (column < inputs) value = input[row * inputs + column];
        else if (column < inputs + constants) value = constant[row % batch * constants + column - inputs];
        joined[i] = value;
    }
}
// [4·size, columns] f32 → [4·padded, stride] for the products.
extern "C" __global__ void lstm_weight(const float* weight, real* target, int size, int padded, int columns, int stride, int order) {
    EACH(i, (i64)4 * padded * stride) {
        const int column = i % stride;
        int row;
        const bool there = gate_column(i / stride, size, padded, order, row) && column < columns;
        target[i] = to_real(there ? weight[(i64)row * columns + column] : 0.f);
    }
}
extern "C" __global__ void lstm_bias(const float* one, const float* two, real* target, int size, int padded, int order) {
    EACH(p, 4 * padded) {
        int row;
        float sum = gate_column(p, size, padded, order, row) ? one[row] : 0.f;
        if (gate_column(p, size, padded, state_order(order), row)) sum += two[row];
        target[p] = to_real(sum);
    }
}
// The way back, adding: [4·padded, stride] f32 → [4·size, columns].
extern "C" __global__ void lstm_weight_gradient(const float* source, float* target, int size, int padded, int columns, int stride, int order) {
    EACH(i, (i64)4 * padded * stride) {
        const int column = i % stride;
        int row;
        if (gate_column(i / stride, size, padded, order, row) && column < columns) target[(i64)row * columns + column] += source[i];
    }
}
extern "C" __global__ void lstm_bias_gradient(const float* parts, int count, float* one, float* two, int size, int padded, int order) {
    EACH(p, 4 * padded) {
        float sum = 0.f;
        for (int part = 0; part < count; ++part) sum += parts[(i64)part * 4 * padded + p];
        int row;
        if (gate_column(p, size, padded, order, row)) one[row] += sum;
        if (gate_column(p, size, padded, state_order(order), row)) two[row] += sum;
    }
}
// Between layers: the mask of cpu/dropout.rs, drawn over [rows, size], of which these begin at `first`; in place where source and target are one.
extern "C" __global__ void lstm_dropout(const real* source, real* target, i64 rows, i64 first, int size, int padded, u64 purpose, u64 threshold, float scale, const Control* control) {
    const u64 key = stream_key(control->seed, purpose, control->tick);
    EACH(i, rows * padded) {
        const i64 row = i / padded;
        const int unit = i % padded;
        target[i] = to_real(unit < size ? to_float(source[i]) * dropout_factor(key, (first + row) * size + unit, threshold, scale) : 0.f);
    }
}
// Σ over time of [steps, batch, columns].
extern "C" __global__ void lstm_sum_time(const real* source, real* target, int steps, i64 count) {
    EACH(i, count) {
        float sum = 0.f;
        for (int t = 0; t < steps; ++t) sum += to_float(source[t * count + i]);
        target[i] = to_real(sum);
    }
}
// The recurrence one step at a time, for precisions and cards without the persistent kernel; natural order, no padding.
extern "C" __global__ void lstm_cell(real* gates, const real* cell_before, real* cell, real* hidden, i64 rows, int size, int first) {
    EACH(i, rows * size) {
        real* gate = gates + i / size * 4 * size + i % size;
        const float a = 1.f / (1.f + expf(-to_float(gate[0]))), f = 1.f / (1.f + expf(-to_float(gate[size])));
        const float g = tanhf(to_float(gate[2 * size])), o = 1.f / (1.f + expf(-to_float(gate[3 * size])));
        const float c = (first ? 0.f : f * to_float(cell_before[i])) + a * g;
        gate[0] = to_real(a);
        gate[size] = to_real(f);
        gate[2 * size] = to_real(g);
        gate[3 * size] = to_real(o);
        cell[i] = to_real(c);
        hidden[i] = to_real(o * tanhf(c));
    }
}
// d_hidden: what comes from the step after (null at the last); upstream: from above (null where there is nothing).
extern "C" __global__ void lstm_cell_backward(real* gates, const real* cell_before, const real* cell, const real* d_hidden, const real* upstream, float* d_cell, i64 rows, int size, int first, int last) {
    EACH(i, rows * size) {
        real* gate = gates + i / size * 4 * size + i % size;
        const float a = to_float(gate[0]), f = to_float(gate[size]), g = to_float(gate[2 * size]), o = to_float(gate[3 * size]);
        const float dh = (d_hidden ? to_float(d_hidden[i]) : 0.f) + (upstream ? to_float(upstream[i]) : 0.f), t = tanhf(to_float(cell[i]));
        const float dc = (last ? 0.f : d_cell[i]) + dh * o * (1.f - t * t);
        gate[0] = to_real(dc * g * a * (1.f - a));
        gate[size] = to_real(first ? 0.f : dc * to_float(cell_before[i]) * f * (1.f - f));
        gate[2 * size] = to_real(dc * a * (1.f - g * g));
        gate[3 * size] = to_real(dh * t * o * (1.f - o));
        d_cell[i] = dc * f;
    }
}
