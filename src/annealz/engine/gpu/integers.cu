// What the programs with weights of three bytes share: products with them, as integers.py lays them out, and what follows
// from the fields that they give.
//
// A thread has two rows of 64, `row` and row + 8, and of every eight columns two, 2 quad and 2 quad + 1. `multiply` adds
// a product of 32 inputs to its sums; integers.py writes it, for every number of rows of the weights.

// The weights of a product: eight rows of 16 bytes lie together, then the other 16 bytes of 32, then the next rows.
__device__ __forceinline__ u64 describe(u32 address) {
    return (u64)(address >> 4) | (u64)(128 >> 4) << 16 | (u64)(256 >> 4) << 32;
}

// keeps the compiler from moving what it does with these registers
template <class T, int COUNT> __device__ __forceinline__ void settle(T (&numbers)[COUNT]) {
#pragma unroll
    for (int n = 0; n < COUNT; n++) asm volatile("" : "+r"(numbers[n])::"memory");
}

// A product from those of three bytes, without its scale.
template <int TILES> __device__ __forceinline__ float together(const int *sums, int n) {
    return __fmaf_rn((float)sums[n], 65536.0f, (float)(sums[n + 4 * TILES] * 256 + sums[n + 8 * TILES]));
}

// 2^32 u of a thread's units, from two words of key a row
template <int TILES> __device__ __forceinline__ void uniforms(float (&u)[TILES][4], const u32 *key, u32 first) {
    const u32 shift0 = key[2] * SECOND, shift1 = key[3] * SECOND;
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int c = 0; c < 2; c++) {
            const u32 at = (first + 8 * j + c) * GOLDEN;
            u[j][c] = uniform(key[0] + at, shift0);
            u[j][2 + c] = uniform(key[1] + at, shift1);
        }
}

// The rise of log w in two rows; the column after the last latent unit holds the drive.
template <bool IS_NARROW, int TILES>
__device__ __forceinline__ void weigh(
    float (&terms)[2], const float (&fields)[TILES][4], const float *bias, int num_left, float lowest, float width) {
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int column = 8 * j + e % 2;
            const float step = width * fields[j][e];
            const float rise = softplus_difference<IS_NARROW>(bias[column] + lowest * fields[j][e], step);
            terms[e / 2] += column < num_left ? rise : step;
        }
}

// The slope in two rows.
template <int TILES>
__device__ __forceinline__ void climb(
    float (&slope)[2], const float (&fields)[TILES][4], const float *bias, int num_left, float beta) {
#pragma unroll
    for (int n = 0; n < 4 * TILES; n++) {
        const int j = n / 4, e = n % 4, column = 8 * j + e % 2;
        const float power = -LOG2_E * (bias[column] + beta * fields[j][e]);
        slope[e / 2] += column < num_left ? fields[j][e] / (1 + exp2_of(power)) : fields[j][e];
    }
}

__device__ __forceinline__ float over_quad(float x) {
    x += __shfl_xor_sync(ALL_LANES, x, 1);
    return x + __shfl_xor_sync(ALL_LANES, x, 2);
}
