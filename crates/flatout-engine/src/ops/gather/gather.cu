
// output[t, b, :] = table[index[b] + t, :], with length 1 for plain rows; without an index the table is the batch, sample by sample.
template <typename From, typename To, typename Convert>
__device__ __forceinline__ void gather_rows(const From* table, const int* index, To* output, i64 rows, int batch, int width, int length, Results* results, Convert turn) {
    EACH(i, (i64)length * batch * width) {
        const int column = i % width, sample = i / width % batch, time = i / width / batch;
        i64 row = (index ? (i64)index[sample] : (i64)sample * length) + time;
        if (index && (row < 0 || row >= rows)) {
            results->bad_index = index[sample] + 1;
            row = 0;
        }
        output[i] = turn(table[row * width + column]);
    }
}
extern "C" __global__ void gather_f32(const float* table, const int* index, real* output, i64 rows, int batch, int width, int length, Results* results) {
    gather_rows(table, index, output, rows, batch, width, length, results, [](float x) { return to_real(x); });
}
extern "C" __global__ void gather_u8(const u8* table, const int* index, real* output, i64 rows, int batch, int width, int length, Results* results, float scale, float shift) {
    gather_rows(table, index, output, rows, batch, width, length, results, [=](u8 x) { return to_real(x * scale + shift); });
}
extern "C" __global__ void gather_i32(const int* table, const int* index, int* output, i64 rows, int batch, int width, int length, Results* results) {
    gather_rows(table, index, output, rows, batch, width, length, results, [](int x) { return x; });
}
// A table in the precision of activations.
extern "C" __global__ void gather_real(const real* table, const int* index, real* output, i64 rows, int batch, int width, int length, Results* results) {
    gather_rows(table, index, output, rows, batch, width, length, results, [](real x) { return x; });
}
// Pictures [height, width, channels], flipped and shifted as pictures.rs draws it. carried: they lie in the batch's order.
extern "C" __global__ void gather_pictures(const u8* table, const int* index, real* output, i64 rows, int batch, int height, int width, int channels, Results* results, float scale, float shift, int flip, int padding, int carried, u64 purpose, const Control* control) {
    const u64 key = stream_key(control->seed, purpose, control->epoch);
    const int line = width * channels, size = height * line;
    EACH(i, (i64)batch * size) {
        const int sample = i / size, place = i % size, channel = place % channels;
        const i64 picture = index[sample];
        i64 from = carried ? sample : picture;
        if (!carried && (picture < 0 || picture >= rows)) {
            results->bad_index = picture + 1;
            from = 0;
        }
        const u64 bits = mix(key + (u64)picture * 0x9e3779b97f4a7c15ull), ways = 2 * (u64)padding + 1;
        const int right = (int)((bits >> 1 & 0x7fffffffull) % ways) - padding, down = (int)((bits >> 32 & 0x7fffffffull) % ways) - padding;
        const int row = min(max(place / line + down, 0), height - 1), along = min(max(place % line / channels + right, 0), width - 1);
        const int column = flip && (bits & 1) ? width - 1 - along : along;
        output[i] = to_real(table[from * size + row * line + column * channels + channel] * scale + shift);
    }
}
