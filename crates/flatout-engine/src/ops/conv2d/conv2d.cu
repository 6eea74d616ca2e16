
// PyTorch's [filter][channel][place] f32 → [filter][place][channel], as the library reads channels-last weights.
extern "C" __global__ void conv_weight(const float* weight, real* target, int filters, int channels, int places) {
    EACH(i, (i64)filters * channels * places) {
        const int channel = i % channels, place = i / channels % places;
        target[i] = to_real(weight[(i / channels / places * channels + channel) * places + place]);
    }
}
// The way back, adding.
extern "C" __global__ void conv_weight_gradient(const real* source, float* target, int filters, int channels, int places) {
    EACH(i, (i64)filters * channels * places) {
        const int place = i % places, channel = i / places % channels;
        target[i] += to_float(source[(i / places / channels * places + place) * channels + channel]);
    }
}
// values = activation(values + bias), in place.
template <int V>
__device__ __forceinline__ void conv_finish(real* values, const float* bias, i64 rows, int channels, int activation) {
    const Columns<V> mine(channels);
    if (!mine.active) return;
    float own[V];
#pragma unroll
    for (int v = 0; v < V; ++v) own[v] = bias ? bias[mine.channel + v] : 0.f;
#pragma unroll 4
    for (i64 row = mine.first; row < rows; row += mine.stride) {
        Pack<V>* there = (Pack<V>*)(values + row * channels + mine.channel);
        Pack<V> pack = *there;
#pragma unroll
        for (int v = 0; v < V; ++v) pack.value[v] = to_real(activated(to_float(pack.value[v]) + own[v], activation));
        *there = pack;
    }
}
extern "C" __global__ void conv_add(const real* source, real* target, i64 count) {
    EACH(i, count) target[i] = to_real(to_float(target[i]) + to_float(source[i]));
}
#define CONV(V)                                                                                                                   \
    extern "C" __global__ void conv_finish_##V(real* values, const float* bias, i64 rows, int channels, int activation) {           \
        conv_finish<V>(values, bias, rows, channels, activation);                                                                  \
    }
CONV(1)
CONV(8)
