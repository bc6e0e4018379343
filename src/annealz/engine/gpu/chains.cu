// What programs with a block per chain share: keys of random bits, and the log weight of the chain.
//
// Keys are those of core/random.py, of all DRAWS of AHEAD steps at a time. THREADS are those of a block.

#define WARPS (THREADS / 32)
#define TINY 2.3283064365386963e-10f  // 2^-32
#define ROUND(turn)                                   \
    x0 += x1;                                         \
    x1 = __funnelshift_l(x1, x1, turn) ^ x0;
#define ROUNDS(a, b, c, d) ROUND(a) ROUND(b) ROUND(c) ROUND(d)

__device__ __forceinline__ void threefry(u32 key0, u32 key1, u32 &x0, u32 &x1) {
    const u32 key2 = key0 ^ key1 ^ 0x1BD11BDAu;
    x0 += key0, x1 += key1;
    ROUNDS(13, 15, 26, 6)
    x0 += key1, x1 += key2 + 1;
    ROUNDS(17, 29, 16, 24)
    x0 += key2, x1 += key0 + 2;
    ROUNDS(13, 15, 26, 6)
    x0 += key0, x1 += key1 + 3;
    ROUNDS(17, 29, 16, 24)
    x0 += key1, x1 += key2 + 4;
    ROUNDS(13, 15, 26, 6)
    x0 += key2, x1 += key0 + 5;
}

// The rows' keys of a chain, two words for every draw of every step from `step` on.
__device__ __forceinline__ void make_keys(u32 (&keys)[2 * AHEAD * DRAWS], const u32 *key, u32 chain, u32 step) {
    for (int n = threadIdx.x; n < AHEAD * DRAWS; n += THREADS) {
        u32 of_draw0 = n % DRAWS, of_draw1 = 0, word0 = chain, word1 = step + n / DRAWS;
        threefry(key[0], key[1], of_draw0, of_draw1);
        threefry(of_draw0, of_draw1, word0, word1);
        keys[2 * n] = word0, keys[2 * n + 1] = word1;
    }
}

__device__ __forceinline__ float over_warp(float x) {
#pragma unroll
    for (int apart = 16; apart; apart /= 2) x += __shfl_xor_sync(ALL_LANES, x, apart);
    return x;
}

// A warp's part of a sum over the block, where the first thread finds it after the next barrier.
__device__ __forceinline__ void give(float (&parts)[WARPS], float x) {
    x = over_warp(x);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
}

__device__ __forceinline__ float added(const float (&parts)[WARPS]) {
    float sum = 0;
    for (int n = 0; n < WARPS; n++) sum += parts[n];
    return sum;
}

// The log weight of a chain, which the first thread of its block keeps, and its records.
struct Weight {
    float total, carry;
    int chain;
    float *totals, *carries, *slopes;  // (records, chains)

    __device__ void add(float increment, int slot, float slope) {
        add_compensated(total, carry, increment);
        if (slot < 0) return;
        totals[slot * NUM_CHAINS + chain] = total;
        carries[slot * NUM_CHAINS + chain] = carry;
        slopes[slot * NUM_CHAINS + chain] = slope;
    }
};

// What every such program is given before and after what is its own.
#define GIVEN                                                                                                          \
    const int *__restrict__ count_in, const int *__restrict__ slots, const float *__restrict__ betas,                  \
        const u32 *__restrict__ key, const int *__restrict__ first_in, const u32 *__restrict__ indices
#define HELD                                                                                                           \
    const u8 *x_in, const float *total_in, const float *carry_in, const float *, const float *, const float *,         \
        u8 *x_out, float *total_out, float *carry_out, float *totals, float *carries, float *slopes
