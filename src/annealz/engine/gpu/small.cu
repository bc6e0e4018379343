// All steps of a piece for eight chains a block; small.py tells what the arrays are.

#define THREADS (32 * WARPS)
#define CHAINS 8
#define LATENT_WARPS CHAINS
#define COLUMNS (8 * GROUPS)
#define LANES ((COLUMNS + 31) / 32)
#define STRIDE (32 * LANES + 4)           // of partial sums, so that no two lanes write to the same bank
#define MOST ((TILES + WARPS - 1) / WARPS)  // tiles of a warp
#define FULL (TILES / WARPS)
#define ONE 0x3C00u  // in half precision

__device__ __forceinline__ void multiply(float (&sums)[4], const uint4 &w, u32 x0, u32 x1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w), "r"(x0), "r"(x1));
}

__device__ __forceinline__ u32 transposed(u32 x) {
    u32 y;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) small_steps(
    const int *__restrict__ count_in, const int *__restrict__ slots, const float *__restrict__ betas,
    const u32 *__restrict__ keys, const uint4 *__restrict__ up_in, const uint4 *__restrict__ down_in,
    const float *__restrict__ state_power, const float *__restrict__ latent_bias,
    const float *__restrict__ latent_change, const float *__restrict__ scalars, const u8 *v_in,
    const float *total_in, const float *carry_in, const float *, const float *, const float *, u8 *v_out,
    float *total_out, float *carry_out, float *recorded_total, float *recorded_carry, float *recorded_slope) {
    extern __shared__ uint4 shared[];
    uint4 *up = shared, *down = up + TILES * GROUPS * 32;
    float *parts = (float *)(down + TILES * GROUPS * 32);  // (warps, chains, STRIDE)
    unsigned short *h = (unsigned short *)(parts + WARPS * CHAINS * STRIDE);  // (chains, COLUMNS)
    const u32 parts_done = (u32)__cvta_generic_to_shared(h + CHAINS * COLUMNS), h_done = parts_done + 8;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, quad = lane % 4, row = lane / 4;
    const int count = count_in[0], first = blockIdx.x * CHAINS, pair = first + 2 * quad;
    for (int n = threadIdx.x; n < TILES * GROUPS * 32; n += THREADS) {
        up[n] = up_in[n];
        down[n] = down_in[n];
    }
    if (threadIdx.x == 0) {
        initiate(parts_done, WARPS);
        initiate(h_done, LATENT_WARPS);
    }
    __syncthreads();

    // the last warps draw the latent units too, of a chain each
    const int chain = warp - (WARPS - LATENT_WARPS);
    const bool is_latent_warp = chain >= 0;
    const float scale = scalars[0], largest = scalars[1];
    float bias[LANES], change[LANES], total = 0, carry = 0;
    u32 h0 = 0, h1 = 0;
    if (is_latent_warp) {
        total = total_in[first + chain];
        carry = carry_in[first + chain];
        h0 = keys[first + chain];
        h1 = keys[NUM_CHAINS + first + chain];
        for (int n = 0; n < LANES; n++) {
            const bool is_latent = lane + 32 * n < NUM_LATENT;
            bias[n] = is_latent ? latent_bias[lane + 32 * n] : 0;
            change[n] = is_latent ? latent_change[lane + 32 * n] : 0;
        }
    }
    uint2 v0 = *(const uint2 *)(keys + 2 * NUM_CHAINS + pair), v1 = *(const uint2 *)(keys + 3 * NUM_CHAINS + pair);
    float beta0 = betas[0], beta1 = betas[1];
    int slot = slots[0];

    // what of the weights fits into registers, and the sums over my units of the first states
    uint4 held[HELD + 1][GROUPS];
    float power[MOST][2], sums[GROUPS][4] = {};
#pragma unroll
    for (int j = 0; j < MOST; j++) {
        const int tile = warp + j * WARPS, unit = 16 * tile + row;
        if (j < FULL || tile < TILES) {
#pragma unroll
            for (int k = 0; k < GROUPS; k++)
                if (j < HELD) held[j][k] = down[(tile * GROUPS + k) * 32 + lane];
            u32 x[2];
#pragma unroll
            for (int e = 0; e < 2; e++) {
                power[j][e] = state_power[unit + 8 * e];
                const u8 *v = v_in + pair * NUM_UNITS + unit + 8 * e;
                x[e] = transposed((v[0] ? ONE : 0) | (v[NUM_UNITS] ? ONE << 16 : 0));
            }
#pragma unroll
            for (int m = 0; m < GROUPS; m++) multiply(sums[m], up[(tile * GROUPS + m) * 32 + lane], x[0], x[1]);
        }
    }

    for (int i = 0; i < count; i++) {
        float *to = parts + (warp * CHAINS + 2 * quad) * STRIDE + row;
#pragma unroll
        for (int high = 0; high < GROUPS; high++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int low = high + GROUPS;
                to[8 * high + e * STRIDE] = sums[high / 2][2 * (high % 2) + e] + sums[low / 2][2 * (low % 2) + e];
            }
        arrive(parts_done);
        const int next = min(i + 1, LENGTH - 1);
        const u32 *next_keys = keys + next * 4 * NUM_CHAINS;
        const uint2 next_v0 = *(const uint2 *)(next_keys + 2 * NUM_CHAINS + pair);
        const uint2 next_v1 = *(const uint2 *)(next_keys + 3 * NUM_CHAINS + pair);
        const float next_beta = betas[next + 1];
        const int next_slot = slots[next];

        float fields[LANES], drive[LANES], h_power[LANES];
        if (is_latent_warp) {
            float u[LANES];
#pragma unroll
            for (int n = 0; n < LANES; n++) u[n] = uniform(h0 + (lane + 32 * n) * GOLDEN, h1 * SECOND);
            h0 = next_keys[first + chain];
            h1 = next_keys[NUM_CHAINS + first + chain];
            wait(parts_done, i & 1);
#pragma unroll
            for (int n = 0; n < LANES; n++) {
                const int latent = lane + 32 * n;
                const float *from = parts + chain * STRIDE + latent;
                float sum[4] = {};
#pragma unroll
                for (int w = 0; w < WARPS; w++) sum[w % 4] += from[w * CHAINS * STRIDE];
                const float product = scale * ((sum[0] + sum[1]) + (sum[2] + sum[3]));
                fields[n] = latent < NUM_LATENT ? product + change[n] : 0;
                drive[n] = latent == NUM_LATENT ? product : 0;
                h_power[n] = -LOG2_E * (bias[n] + beta1 * fields[n]);
                // the last column adds b - b_A
                const bool is = latent < NUM_LATENT ? is_one(u[n], h_power[n]) : latent == NUM_LATENT;
                if (latent < COLUMNS) h[chain * COLUMNS + latent] = is ? ONE : 0;
            }
            arrive(h_done);
        }
        float u[MOST][4];  // of my units, while others draw the latent ones
#pragma unroll
        for (int j = 0; j < MOST; j++) {
            const u32 at = (16 * (warp + j * WARPS) + row) * GOLDEN, below = at + 8 * GOLDEN;
            if (j < FULL || warp + j * WARPS < TILES) {
                u[j][0] = uniform(v0.x + at, v1.x * SECOND);
                u[j][1] = uniform(v0.y + at, v1.y * SECOND);
                u[j][2] = uniform(v0.x + below, v1.x * SECOND);
                u[j][3] = uniform(v0.y + below, v1.y * SECOND);
            }
        }
        wait(h_done, i & 1);
        u32 drawn[GROUPS];
#pragma unroll
        for (int g = 0; g < GROUPS; g++) drawn[g] = *(const u32 *)(h + row * COLUMNS + 8 * g + 2 * quad);
#pragma unroll
        for (int m = 0; m < GROUPS; m++)
#pragma unroll
            for (int e = 0; e < 4; e++) sums[m][e] = 0;
        const float slope_of_power = -LOG2_E * beta1 * scale;
#pragma unroll
        for (int j = 0; j < MOST; j++) {
            const int tile = warp + j * WARPS;
            if (j < FULL || tile < TILES) {
                float product[4] = {};
#pragma unroll
                for (int k = 0; k < GROUPS; k++) {
                    const uint4 w = j < HELD ? held[j < HELD ? j : 0][k] : down[(tile * GROUPS + k) * 32 + lane];
                    multiply(product, w, drawn[(2 * k) % GROUPS], drawn[(2 * k + 1) % GROUPS]);
                }
                u32 x[2];
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const bool left = is_one(u[j][2 * e], __fmaf_rn(slope_of_power, product[2 * e], power[j][e]));
                    const bool right = is_one(u[j][2 * e + 1], __fmaf_rn(slope_of_power, product[2 * e + 1], power[j][e]));
                    if (i == count - 1) {
                        u8 *v = v_out + pair * NUM_UNITS + 16 * tile + row + 8 * e;
                        v[0] = left;
                        v[NUM_UNITS] = right;
                    }
                    x[e] = transposed((left ? ONE : 0) | (right ? ONE << 16 : 0));
                }
#pragma unroll
                for (int m = 0; m < GROUPS; m++) multiply(sums[m], up[(tile * GROUPS + m) * 32 + lane], x[0], x[1]);
            }
        }
        if (is_latent_warp) {
            const float lowest = fminf(beta0, beta1), width = fabsf(beta1 - beta0);
            const bool is_narrow = width * largest < 0.25f;
            float term = 0;
#pragma unroll
            for (int n = 0; n < LANES; n++) {
                const float low = bias[n] + lowest * fields[n], step = width * fields[n];
                const float rise = is_narrow ? softplus_difference<true>(low, step) : softplus_difference<false>(low, step);
                term += lane + 32 * n < NUM_LATENT ? rise : width * drive[n];
            }
            for (int lanes = 16; lanes; lanes /= 2) term += __shfl_xor_sync(ALL_LANES, term, lanes);
            add_compensated(total, carry, beta1 >= beta0 ? term : -term);
            if (slot >= 0) {
                float slope = 0;
#pragma unroll
                for (int n = 0; n < LANES; n++) slope += drive[n] + fields[n] / (1 + exp2_of(h_power[n]));
                for (int lanes = 16; lanes; lanes /= 2) slope += __shfl_xor_sync(ALL_LANES, slope, lanes);
                const int at = slot * NUM_CHAINS + first + chain;
                if (lane == 0) {
                    recorded_total[at] = total;
                    recorded_carry[at] = carry;
                    recorded_slope[at] = slope;
                }
            }
        }
        v0 = next_v0;
        v1 = next_v1;
        beta0 = beta1;
        beta1 = next_beta;
        slot = next_slot;
    }
    if (is_latent_warp && lane == 0) {
        total_out[first + chain] = total;
        carry_out[first + chain] = carry;
    }
}
