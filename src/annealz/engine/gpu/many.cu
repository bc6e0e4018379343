// All steps of a piece for 128 chains a block, past which the weights stream; many.py tells what the arrays are.
//
// Of 64 units of a tile a thread draws 16 in two rows each: one word, which the same thread needs as an operand of the
// next product. Bit 8 t + 4 c + i of it is column 32 c + 8 t + 2 quad + i / 2 of row i % 2.

#define TILE 64
#define ROWS (3 * TILE)
#define CHUNK_BYTES (32 * ROWS)
#define COMPUTING 256  // threads, two warpgroups; a third one fetches, with fewer registers
#define THREADS (COMPUTING + 128)
#define UNITS (TILE * UNIT_TILES)
#define LATENT (TILE * LATENT_TILES)

// Where a block stands in the ring of pieces of the weights.
struct Ring {
    u32 pieces, full, empty;
    int slot;
    u32 parity;

    __device__ __forceinline__ u32 here() const { return pieces + slot * PIECE * CHUNK_BYTES; }

    __device__ __forceinline__ void turn() {
        slot++;
        if (slot == STAGES) {
            slot = 0;
            parity ^= 1;
        }
    }
};

// Brings the weights of all products of a half step to shared memory, piece after piece.
__device__ __forceinline__ void fetch(Ring &ring, const u8 *from, int tiles, int chunks) {
    for (int tile = 0; tile < tiles; tile++)
        for (int left = chunks; left > 0; left -= PIECE) {
            const u32 size = min(left, PIECE) * CHUNK_BYTES, full = ring.full + 8 * ring.slot;
            wait(ring.empty + 8 * ring.slot, ring.parity ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full), "r"(size) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                         ::"r"(ring.here()), "l"(from), "r"(size), "r"(full) : "memory");
            from += size;
            ring.turn();
        }
}

// States times the weights of a tile: it is under way when this returns, and there after `finish`.
template <int CHUNKS>
__device__ __forceinline__ void begin(int (&sums)[ROWS / 2], const u32 (&words)[(CHUNKS + 1) / 2], Ring &ring) {
    settle(sums);
#pragma unroll
    for (int first = 0; first < CHUNKS; first += PIECE) {
        u32 x[PIECE][4] = {};
#pragma unroll
        for (int n = 0; n < PIECE; n++)
            if (first + n < CHUNKS) {
#pragma unroll
                for (int i = 0; i < 4; i++) x[n][i] = words[(first + n) / 2] >> (4 * ((first + n) % 2) + i) & 0x01010101u;
                settle(x[n]);
            }
        wait(ring.full + 8 * ring.slot, ring.parity);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int n = 0; n < PIECE; n++)
            if (first + n < CHUNKS) multiply(sums, x[n], describe(ring.here() + n * CHUNK_BYTES), first + n > 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (first > 0) {
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            arrive(ring.empty + 8 * (ring.slot > 0 ? ring.slot - 1 : STAGES - 1));
        }
        if (first + PIECE < CHUNKS) ring.turn();
    }
}

__device__ __forceinline__ void finish(int (&sums)[ROWS / 2], Ring &ring) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    settle(sums);
    arrive(ring.empty + 8 * ring.slot);
    ring.turn();
}

// Which bit of the word of a tile is column 8 j + 2 quad + e % 2 of row e / 2.
__device__ __forceinline__ constexpr u32 bit_of(int j, int e) { return 1u << (8 * (j % 4) + 4 * (j / 4) + 2 * (e % 2) + e / 2); }

extern "C" __global__ void __launch_bounds__(THREADS, 1) many_steps(
    const int *__restrict__ count_in, const int *__restrict__ slots, const float *__restrict__ betas,
    const u32 *__restrict__ keys, const u8 *__restrict__ up, const u8 *__restrict__ down,
    const float *__restrict__ latent_in, const float *__restrict__ state_in, const float *__restrict__ largest,
    const u8 *v_in, const float *total_in, const float *carry_in, const float *, const float *, const float *, u8 *v_out,
    float *total_out, float *carry_out, float *recorded_total, float *recorded_carry, float *recorded_slope) {
    extern __shared__ __align__(128) u8 shared[];
    float *latent = (float *)(shared + STAGES * PIECE * CHUNK_BYTES), *state = latent + 3 * LATENT;
    u32 *v_words = (u32 *)(state + 3 * UNITS), *h_words = v_words + UNIT_TILES * COMPUTING;
    const u32 barriers = (u32)__cvta_generic_to_shared(h_words + LATENT_TILES * COMPUTING);
    Ring ring = {(u32)__cvta_generic_to_shared(shared), barriers, barriers + 8 * STAGES, 0, 0};
    const int count = count_in[0];
    for (int n = threadIdx.x; n < 3 * LATENT; n += THREADS) latent[n] = latent_in[n];
    for (int n = threadIdx.x; n < 3 * UNITS; n += THREADS) state[n] = state_in[n];
    if (threadIdx.x == 0) {
        for (int n = 0; n < STAGES; n++) {
            initiate(ring.full + 8 * n, 1);
            initiate(ring.empty + 8 * n, COMPUTING / 32);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const int warpgroup = __shfl_sync(ALL_LANES, threadIdx.x / 128, 0);  // so that the compiler sees it is one for all
    if (warpgroup == COMPUTING / 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == COMPUTING)
            for (int i = 0; i < count; i++) {
                fetch(ring, up, LATENT_TILES, UNIT_CHUNKS);
                fetch(ring, down, UNIT_TILES, LATENT_CHUNKS);
            }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");

    const int lane = threadIdx.x % 32, quad = lane % 4, thread = threadIdx.x % 128;
    const int chain = 64 * (2 * blockIdx.x + warpgroup) + 16 * (thread / 32) + lane / 4;
    u32 *v = v_words + threadIdx.x, *h = h_words + threadIdx.x;
    for (int tile = 0; tile < UNIT_TILES; tile++) {
        u32 drawn = 0;
        for (int n = 0; n < 32; n++) {
            const int j = n / 4, e = n % 4;
            const u8 is = v_in[(chain + 8 * (e / 2)) * UNITS + TILE * tile + 8 * j + 2 * quad + e % 2];
            drawn |= is ? bit_of(j, e) : 0;
        }
        v[tile * COMPUTING] = drawn;
    }
    float total[2] = {total_in[chain], total_in[chain + 8]}, carry[2] = {carry_in[chain], carry_in[chain + 8]};

#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const float beta0 = betas[i], beta1 = betas[i + 1], lowest = fminf(beta0, beta1), width = fabsf(beta1 - beta0);
        const bool is_narrow = width * largest[0] < 0.25f;
        const int slot = slots[i];
        float terms[2] = {}, slope[2] = {};
        u32 key[4];
        {
            u32 words[(UNIT_CHUNKS + 1) / 2];
#pragma unroll
            for (int n = 0; n < (UNIT_CHUNKS + 1) / 2; n++) words[n] = v[n * COMPUTING];
#pragma unroll
            for (int n = 0; n < 4; n++) key[n] = keys[(4 * i + n / 2) * NUM_CHAINS + chain + 8 * (n % 2)];
#pragma unroll 1
            for (int tile = 0; tile < LATENT_TILES; tile++) {
                const float *scale = latent + 3 * TILE * tile + 2 * quad, *bias = scale + TILE, *change = bias + TILE;
                const int first = TILE * tile + 2 * quad, num_left = NUM_LATENT - first;
                int sums[ROWS / 2] = {};
                float u[8][4], fields[8][4];
                begin<UNIT_CHUNKS>(sums, words, ring);
                uniforms<8>(u, key, first);
                finish(sums, ring);
                u32 drawn = 0;
#pragma unroll
                for (int n = 0; n < 32; n++) {
                    const int j = n / 4, e = n % 4, column = 8 * j + e % 2;
                    fields[j][e] = together<8>(sums, n) * scale[column] + change[column];
                    const bool is = is_one(u[j][e], -LOG2_E * (bias[column] + beta1 * fields[j][e]));
                    drawn |= is && column < num_left ? bit_of(j, e) : 0;
                }
                h[tile * COMPUTING] = drawn;
                if (is_narrow) weigh<true>(terms, fields, bias, num_left, lowest, width);
                else weigh<false>(terms, fields, bias, num_left, lowest, width);
                if (slot >= 0) climb(slope, fields, bias, num_left, beta1);
            }
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float term = over_quad(beta1 >= beta0 ? terms[r] : -terms[r]), rise = over_quad(slope[r]);
            add_compensated(total[r], carry[r], term);
            if (slot >= 0 && quad == 0) {
                const int at = slot * NUM_CHAINS + chain + 8 * r;
                recorded_total[at] = total[r];
                recorded_carry[at] = carry[r];
                recorded_slope[at] = rise;
            }
        }
        {
            u32 words[(LATENT_CHUNKS + 1) / 2];
#pragma unroll
            for (int n = 0; n < (LATENT_CHUNKS + 1) / 2; n++) words[n] = h[n * COMPUTING];
#pragma unroll
            for (int n = 0; n < 4; n++) key[n] = keys[(4 * i + 2 + n / 2) * NUM_CHAINS + chain + 8 * (n % 2)];
#pragma unroll 1
            for (int tile = 0; tile < UNIT_TILES; tile++) {
                const float *scale = state + 3 * TILE * tile + 2 * quad, *bias = scale + TILE, *change = bias + TILE;
                int sums[ROWS / 2] = {};
                float u[8][4];
                begin<LATENT_CHUNKS>(sums, words, ring);
                uniforms<8>(u, key, TILE * tile + 2 * quad);
                finish(sums, ring);
                u32 drawn = 0;
#pragma unroll
                for (int n = 0; n < 32; n++) {
                    const int j = n / 4, e = n % 4, column = 8 * j + e % 2;
                    const float field = together<8>(sums, n) * scale[column] + change[column];
                    drawn |= is_one(u[j][e], -LOG2_E * (bias[column] + beta1 * field)) ? bit_of(j, e) : 0;
                }
                v[tile * COMPUTING] = drawn;
            }
        }
    }

    for (int tile = 0; tile < UNIT_TILES; tile++)
        for (int n = 0; n < 32; n++) {
            const int j = n / 4, e = n % 4;
            u8 *to = v_out + (chain + 8 * (e / 2)) * UNITS + TILE * tile + 8 * j + 2 * quad + e % 2;
            *to = (v[tile * COMPUTING] & bit_of(j, e)) != 0;
        }
    if (quad == 0)
        for (int r = 0; r < 2; r++) {
            total_out[chain + 8 * r] = total[r];
            carry_out[chain + 8 * r] = carry[r];
        }
}
