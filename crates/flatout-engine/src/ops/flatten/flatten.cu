
// [rows, columns] of each image to [columns, rows], through a tile of 32 × 32. Launched with 32 × 8 threads.
extern "C" __global__ void transpose_images(const real* source, real* target, int rows, int columns, int add) {
    __shared__ real tile[32][33];
    const int down = (rows + 31) / 32, over = (columns + 31) / 32, number = blockIdx.x % (down * over);
    const i64 image = (i64)(blockIdx.x / (down * over)) * rows * columns;
    const int row = number / over * 32, column = number % over * 32, lane = threadIdx.x % 32, line = threadIdx.x / 32;
    for (int i = line; i < 32; i += 8)
        if (row + i < rows && column + lane < columns) tile[i][lane] = source[image + (i64)(row + i) * columns + column + lane];
    __syncthreads();
    for (int i = line; i < 32; i += 8)
        if (column + i < columns && row + lane < rows) {
            real* place = target + image + (i64)(column + i) * rows + row + lane;
            *place = add ? to_real(to_float(*place) + to_float(tile[lane][i])) : tile[lane][i];
        }
}
