
// The mask of cpu/dropout.rs, drawn again where it is needed again; a threshold of 0 keeps everything.
extern "C" __global__ void dropout(const real* source, real* target, i64 count, u64 purpose, u64 threshold, float scale, const Control* control, int add) {
    const u64 key = stream_key(control->seed, purpose, control->tick);
    EACH(i, count) {
        const float value = to_float(source[i]) * dropout_factor(key, i, threshold, scale);
        target[i] = to_real(add ? to_float(target[i]) + value : value);
    }
}
