
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
