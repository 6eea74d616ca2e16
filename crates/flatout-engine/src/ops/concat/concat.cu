
// Columns of one matrix into some columns of another, or back.
extern "C" __global__ void copy_columns(const real* source, real* target, i64 rows, int width, int source_stride, int source_first, int target_stride, int target_first, int add) {
    EACH(i, rows * width) {
        const i64 row = i / width, column = i % width;
        const real value = source[row * source_stride + source_first + column];
        real* place = target + row * target_stride + target_first + column;
        *place = add ? to_real(to_float(*place) + to_float(value)) : value;
    }
}
