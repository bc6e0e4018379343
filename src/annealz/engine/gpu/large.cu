// All steps of a piece by groups of blocks that share the weights; large.py tells what the arrays are.
//
// Bits that a thread draws make one word: those of its first row below, those of the second above, two a tile of eight
// columns.

#define QUADS (MEMBERS / 4)
#define LATENT (8 * LATENT_TILES)
#define UNITS (8 * UNIT_TILES)
#define PATIENCE 20000000  // looks for what others have drawn

// States times weights, where `words` hold the states' bits of four members each: two bytes a row.
template <int TILES, int COUNT>
__device__ __forceinline__ void product(int (&sums)[COUNT], const u32 (&words)[QUADS][4], u32 weights) {
    settle(sums);
#pragma unroll
    for (int quad = 0; quad < QUADS; quad++)
#pragma unroll
        for (int byte = 0; byte < (TILES + 3) / 4; byte++) {
            u32 x[4][4];
#pragma unroll
            for (int n = 0; n < 16; n++) x[n / 4][n % 4] = words[quad][byte + 2 * (n % 2)] >> (n / 2) & 0x01010101u;
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int s = 0; s < 4; s++)
                if (4 * byte + s < TILES) {
                    const int piece = quad * TILES + 4 * byte + s;
                    multiply(sums, x[s], describe(weights + piece * 64 * COUNT), piece > 0);
                }
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    settle(sums);
}

// Bits for the same thread of all members, at once with the number that says which step they are of.
__device__ __forceinline__ void post(u64 *to, u32 bits, u32 number) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"((u64)number << 32 | bits) : "memory");
}

__device__ __forceinline__ void gather(u32 (&words)[QUADS][4], const u64 *from, u32 number, int &patience) {
    u64 seen[MEMBERS] = {};
    bool is_there;
    do {  // all that are missing at once
#pragma unroll
        for (int m = 0; m < MEMBERS; m++)
            asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %2, %3;\n@p ld.relaxed.gpu.global.u64 %0, [%1];\n}"
                         : "+l"(seen[m]) : "l"(from + m * 128), "r"((u32)(seen[m] >> 32)), "r"(number));
        is_there = true;
#pragma unroll
        for (int m = 0; m < MEMBERS; m++) is_there = is_there && (u32)(seen[m] >> 32) == number;
    } while (!is_there && --patience > 0);
#pragma unroll
    for (int quad = 0; quad < QUADS; quad++) {  // byte b of four words to word b
        const u64 *four = seen + 4 * quad;
        const u32 low = __byte_perm(four[0], four[1], 0x5140), next_low = __byte_perm(four[2], four[3], 0x5140);
        const u32 high = __byte_perm(four[0], four[1], 0x7362), next_high = __byte_perm(four[2], four[3], 0x7362);
        words[quad][0] = __byte_perm(low, next_low, 0x5410);
        words[quad][1] = __byte_perm(low, next_low, 0x7632);
        words[quad][2] = __byte_perm(high, next_high, 0x5410);
        words[quad][3] = __byte_perm(high, next_high, 0x7632);
    }
    __syncwarp();
}

extern "C" __global__ void __launch_bounds__(256, 1) large_steps(
    const int *__restrict__ count_in, const int *__restrict__ slots, const float *__restrict__ betas,
    const u32 *__restrict__ keys, const uint4 *__restrict__ up_in, const uint4 *__restrict__ down_in,
    const float *__restrict__ latent_in, const float *__restrict__ state_in, const float *__restrict__ largest,
    const u8 *v_in, const u64 *, u8 *v_out, u64 *posted, float *parts, float *slopes) {
    extern __shared__ uint4 shared[];
    const int member = blockIdx.x % MEMBERS, group = blockIdx.x / MEMBERS, num_groups = gridDim.x / MEMBERS;
    const int lane = threadIdx.x % 32, quad = lane % 4, thread = threadIdx.x % 128, warpgroup = threadIdx.x / 128;
    const int row = 16 * (thread / 32) + lane / 4, count = count_in[0], num_blocks = NUM_CHAINS / 64;
    const int up_size = QUADS * UNIT_TILES * UP_ROWS * 2, down_size = QUADS * LATENT_TILES * DOWN_ROWS * 2;
    uint4 *up = shared, *down = up + up_size;
    float *latent = (float *)(down + down_size), *state = latent + 3 * LATENT;
    for (int n = threadIdx.x; n < up_size; n += 256) up[n] = up_in[member * up_size + n];
    for (int n = threadIdx.x; n < down_size; n += 256) down[n] = down_in[member * down_size + n];
    for (int n = threadIdx.x; n < 3 * LATENT; n += 256) latent[n] = latent_in[member * 3 * LATENT + n];
    for (int n = threadIdx.x; n < 3 * UNITS; n += 256) state[n] = state_in[member * 3 * UNITS + n];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const u32 up_at = (u32)__cvta_generic_to_shared(up), down_at = (u32)__cvta_generic_to_shared(down);
    const int first_latent = member * LATENT + 2 * quad, first_unit = member * UNITS + 2 * quad;
    const int num_left = NUM_LATENT - first_latent;
    const float *latent_scale = latent + 2 * quad, *latent_bias = latent_scale + LATENT, *latent_change = latent_bias + LATENT;
    const float *state_scale = state + 2 * quad, *state_bias = state_scale + UNITS, *state_change = state_bias + UNITS;
    int patience = PATIENCE;

    for (int block = group + warpgroup * num_groups; block < num_blocks; block += 2 * num_groups) {
        const int chain = 64 * block + row;
        u64 *v_posted = posted + block * MEMBERS * 128 + thread, *h_posted = v_posted + num_blocks * MEMBERS * 128;
        u32 words[QUADS][4], drawn = 0, key[8], next_key[8];
#pragma unroll
        for (int n = 0; n < 4 * UNIT_TILES; n++) {
            const int bit = n / 2, of_row = n % 2;
            const u8 is = v_in[(chain + 8 * of_row) * (MEMBERS * UNITS) + first_unit + 8 * (bit / 2) + bit % 2];
            drawn |= (u32)(is != 0) << (bit + 16 * of_row);
        }
        post(v_posted + member * 128, drawn, 1);
#pragma unroll
        for (int n = 0; n < 8; n++) next_key[n] = keys[(n / 2) * NUM_CHAINS + chain + 8 * (n % 2)];
        float beta0 = betas[0];

        for (int i = 0; i < count; i++) {
            const float beta1 = betas[i + 1];
            const int slot = slots[i], next = min(i + 1, LENGTH - 1);
#pragma unroll
            for (int n = 0; n < 8; n++) {
                key[n] = next_key[n];
                next_key[n] = keys[(4 * next + n / 2) * NUM_CHAINS + chain + 8 * (n % 2)];
            }
            {
                float u[LATENT_TILES][4], fields[LATENT_TILES][4];
                int sums[UP_ROWS / 2] = {};
                uniforms<LATENT_TILES>(u, key, first_latent);
                gather(words, v_posted, i + 1, patience);
                product<UNIT_TILES>(sums, words, up_at);
                drawn = 0;
#pragma unroll
                for (int n = 0; n < 4 * LATENT_TILES; n++) {
                    const int j = n / 4, e = n % 4, column = 8 * j + e % 2;
                    fields[j][e] = together<LATENT_TILES>(sums, n) * latent_scale[column] + latent_change[column];
                    const bool is = is_one(u[j][e], -LOG2_E * (latent_bias[column] + beta1 * fields[j][e]));
                    drawn |= is && column < num_left ? 1u << (2 * j + e % 2 + 16 * (e / 2)) : 0;
                }
                post(h_posted + member * 128, drawn, i + 1);

                // the weights, while the bits travel
                const float lowest = fminf(beta0, beta1), width = fabsf(beta1 - beta0);
                float terms[2] = {}, slope[2] = {};
                if (width * largest[0] < 0.25f) weigh<true>(terms, fields, latent_bias, num_left, lowest, width);
                else weigh<false>(terms, fields, latent_bias, num_left, lowest, width);
                if (slot >= 0) climb(slope, fields, latent_bias, num_left, beta1);
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int at = (i * MEMBERS + member) * NUM_CHAINS + chain + 8 * r;
                    const float term = over_quad(beta1 >= beta0 ? terms[r] : -terms[r]);
                    if (quad == 0) parts[at] = patience > 0 ? term : __int_as_float(0x7FC00000);
                    if (slot >= 0) {
                        const float rise = over_quad(slope[r]);
                        if (quad == 0) slopes[at] = rise;
                    }
                }
            }
            {
                float u[UNIT_TILES][4];
                int sums[DOWN_ROWS / 2] = {};
                uniforms<UNIT_TILES>(u, key + 4, first_unit);
                gather(words, h_posted, i + 1, patience);
                product<LATENT_TILES>(sums, words, down_at);
                drawn = 0;
#pragma unroll
                for (int n = 0; n < 4 * UNIT_TILES; n++) {
                    const int j = n / 4, e = n % 4, column = 8 * j + e % 2;
                    const float field = together<UNIT_TILES>(sums, n) * state_scale[column] + state_change[column];
                    const bool is = is_one(u[j][e], -LOG2_E * (state_bias[column] + beta1 * field));
                    drawn |= is ? 1u << (2 * j + e % 2 + 16 * (e / 2)) : 0;
                }
                post(v_posted + member * 128, drawn, i + 2);
            }
            beta0 = beta1;
        }
#pragma unroll
        for (int n = 0; n < 4 * UNIT_TILES; n++) {
            const int bit = n / 2, of_row = n % 2;
            v_out[(chain + 8 * of_row) * (MEMBERS * UNITS) + first_unit + 8 * (bit / 2) + bit % 2] = drawn >> (bit + 16 * of_row) & 1;
        }
    }
}

// The weights after every step, a chain a thread: from what a step adds to them, and from the members' slopes.
extern "C" __global__ void account_steps(
    const int *__restrict__ count_in, const int *__restrict__ slots, const float *__restrict__ increments,
    const float *__restrict__ slopes, const float *total_in, const float *carry_in, const float *, const float *,
    const float *, float *total_out, float *carry_out, float *recorded_total, float *recorded_carry, float *recorded_slope) {
    const int chain = blockIdx.x * 32 + threadIdx.x, count = count_in[0];
    float total = total_in[chain], carry = carry_in[chain];
    for (int first = 0; first < count; first += 32) {
        float ahead[32];
#pragma unroll
        for (int n = 0; n < 32; n++) ahead[n] = increments[min(first + n, LENGTH - 1) * NUM_CHAINS + chain];
#pragma unroll
        for (int n = 0; n < 32; n++) {
            const int i = first + n;
            if (i >= count) break;
            add_compensated(total, carry, ahead[n]);
            const int slot = slots[i];
            if (slot >= 0) {
                float slope = 0;
                for (int m = 0; m < MEMBERS; m++) slope += slopes[(i * MEMBERS + m) * NUM_CHAINS + chain];
                recorded_total[slot * NUM_CHAINS + chain] = total;
                recorded_carry[slot * NUM_CHAINS + chain] = carry;
                recorded_slope[slot * NUM_CHAINS + chain] = slope;
            }
        }
    }
    total_out[chain] = total;
    carry_out[chain] = carry;
}
