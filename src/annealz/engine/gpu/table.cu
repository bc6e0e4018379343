// All steps of a chunk of units coupled by tables, a block per chain, a lane per state and TEAM warps per unit; tables.py
// tells what the arrays are.

#define UNITS_AT_ONCE (WARPS / TEAM)

extern "C" __global__ void __launch_bounds__(THREADS, 4) table_steps(
    GIVEN, const int *__restrict__ sites, const int *__restrict__ near, const float *__restrict__ tables,
    const float *__restrict__ start, const float *__restrict__ change, const float *__restrict__ offset, HELD) {
    extern __shared__ u8 x[];
    __shared__ u32 keys[2 * AHEAD * DRAWS];
    __shared__ float parts[WARPS], fields[WARPS][32];
    const int chain = blockIdx.x, count = count_in[0], first = first_in[0];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, member = warp % TEAM, state = min(lane, STATES - 1);
    Weight weight = {total_in[chain], carry_in[chain], chain, totals, carries, slopes};
    for (int unit = threadIdx.x; unit < UNITS; unit += THREADS) x[unit] = x_in[chain * UNITS + unit];
    for (int i = 0; i < count; i++) {
        if (i % AHEAD == 0) {
            __syncthreads();
            make_keys(keys, key, indices[chain], first + 1 + i);
        }
        __syncthreads();
        const u32 *row = keys + 2 * DRAWS * (i % AHEAD);
        const float beta0 = betas[i], beta1 = betas[i + 1];
        float pairs = 0;
        for (int n = threadIdx.x; n < UNITS * DEGREE; n += THREADS) {
            const int unit = n / DEGREE, d = n % DEGREE;
            if (IS_DENSE && d >= unit) continue;  // every pair once
            const float found = tables[(n * STATES + x[IS_DENSE ? d : near[n]]) * STATES + x[unit]];
            pairs += IS_DENSE ? found : 0.5f * found;
        }
        for (int unit = threadIdx.x; unit < UNITS; unit += THREADS) pairs += change[unit * STATES + x[unit]];
        give(parts, pairs);
        for (int colour = 0; colour < DRAWS; colour++)
            for (int place0 = 0; place0 < WIDTH; place0 += UNITS_AT_ONCE) {
                __syncthreads();
                if (colour == 0 && place0 == 0 && threadIdx.x == 0) {
                    const float slope = added(parts) + offset[0];
                    weight.add((beta1 - beta0) * slope, slots[i], slope);
                }
                const int place = place0 + warp / TEAM;
                const int unit = place < WIDTH ? sites[colour * WIDTH + place] : UNITS;
                float field = 0;
                if (unit < UNITS) {
#pragma unroll 8
                    for (int d = member; d < DEGREE; d += TEAM) {
                        const int n = unit * DEGREE + d;
                        field += tables[(n * STATES + x[IS_DENSE ? d : near[n]]) * STATES + state];
                    }
                }
                if (TEAM > 1) {
                    fields[warp][lane] = field;
                    __syncthreads();
                    if (member == 0)
                        for (int m = 1; m < TEAM; m++) field += fields[warp + m][lane];
                }
                if (member > 0 || unit >= UNITS) continue;
                const float logit = start[unit * STATES + state] + beta1 * (field + change[unit * STATES + state]);
                float largest = logit;
#pragma unroll
                for (int apart = 16; apart; apart /= 2)
                    largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, apart));
                float level = lane < STATES ? exp2_of(LOG2_E * (logit - largest)) : 0.0f;
#pragma unroll
                for (int apart = 1; apart < 32; apart *= 2) {  // of this state and those before it
                    const float before = __shfl_up_sync(ALL_LANES, level, apart);
                    if (lane >= apart) level += before;
                }
                const float scaled = uniform(row[2 * colour] + place * GOLDEN, row[2 * colour + 1] * SECOND);
                const float drawn = TINY * scaled * __shfl_sync(ALL_LANES, level, 31);
                const u32 is_above = __ballot_sync(ALL_LANES, lane < STATES - 1 && drawn > level);
                if (lane == 0) x[unit] = __popc(is_above);
            }
    }
    __syncthreads();
    for (int unit = threadIdx.x; unit < UNITS; unit += THREADS) x_out[chain * UNITS + unit] = x[unit];
    if (threadIdx.x == 0) total_out[chain] = weight.total, carry_out[chain] = weight.carry;
}
