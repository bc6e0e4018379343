// All steps of a chunk on a square lattice, a block per chain; lattice.py tells what the arrays are.

// The field of a site from the other colour's spins, those of rows and of columns weighted apart.
__device__ __forceinline__ float field_at(int site, const u8 *other, bool is_right_in_even_rows, float across, float down) {
    const int row = site / HALF, place = site % HALF;
    const int above = row > 0 ? site - HALF : site + SITES - HALF;
    const int below = row < HEIGHT - 1 ? site + HALF : site + HALF - SITES;
    const int right = place < HALF - 1 ? site + 1 : site + 1 - HALF, left = place > 0 ? site - 1 : site - 1 + HALF;
    const int beside = (row % 2 == 0) == is_right_in_even_rows ? right : left;
    return across * (float)(other[site] + other[beside]) + down * (float)(other[above] + other[below]);
}

extern "C" __global__ void __launch_bounds__(THREADS) lattice_steps(
    GIVEN, const float *__restrict__ scalars, const float *__restrict__ latent_bias, const float *__restrict__ latent_change,
    const float *__restrict__ state_bias, const float *__restrict__ state_change, HELD) {
    extern __shared__ u8 spins[];
    __shared__ u32 keys[2 * AHEAD * DRAWS];
    __shared__ float terms[WARPS], climbs[WARPS];
    u8 *state = spins, *latent = spins + SITES;
    const int chain = blockIdx.x, count = count_in[0], first = first_in[0];
    const float across = scalars[0], down = scalars[1], offset = scalars[2], largest = scalars[3];
    Weight weight = {total_in[chain], carry_in[chain], chain, totals, carries, slopes};
    for (int site = threadIdx.x; site < SITES; site += THREADS) state[site] = x_in[chain * SITES + site];
    for (int i = 0; i < count; i++) {
        if (i % AHEAD == 0) {
            __syncthreads();
            make_keys(keys, key, indices[chain], first + 1 + i);
        }
        __syncthreads();
        const u32 *row = keys + 2 * DRAWS * (i % AHEAD);
        const float beta0 = betas[i], beta1 = betas[i + 1], lowest = fminf(beta0, beta1), width = fabsf(beta1 - beta0);
        const int slot = slots[i];
        const bool is_narrow = width * largest < 0.25f;
        float term = 0, drive = 0, climb = 0;
        for (int site = threadIdx.x; site < SITES; site += THREADS) {
            const float bias = latent_bias[site];
            const float field = field_at(site, state, true, across, down) + latent_change[site];
            term += is_narrow ? softplus_difference<true>(bias + lowest * field, width * field)
                              : softplus_difference<false>(bias + lowest * field, width * field);
            drive += state[site] ? state_change[site] : 0.0f;
            const float power = -LOG2_E * (bias + beta1 * field);
            if (slot >= 0) climb += field / (1 + exp2_of(power));
            latent[site] = is_one(uniform(row[0] + site * GOLDEN, row[1] * SECOND), power);
        }
        give(terms, (beta1 >= beta0 ? term : -term) + (beta1 - beta0) * drive);
        if (slot >= 0) give(climbs, climb + drive);
        __syncthreads();
        if (threadIdx.x == 0)
            weight.add(added(terms) + (beta1 - beta0) * offset, slot, slot < 0 ? 0.0f : added(climbs) + offset);
        for (int site = threadIdx.x; site < SITES; site += THREADS) {
            const float field = field_at(site, latent, false, across, down) + state_change[site];
            state[site] = is_one(uniform(row[2] + site * GOLDEN, row[3] * SECOND), -LOG2_E * (state_bias[site] + beta1 * field));
        }
    }
    __syncthreads();
    for (int site = threadIdx.x; site < SITES; site += THREADS) x_out[chain * SITES + site] = state[site];
    if (threadIdx.x == 0) total_out[chain] = weight.total, carry_out[chain] = weight.carry;
}
