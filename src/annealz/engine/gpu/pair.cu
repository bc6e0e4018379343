// All steps of a chunk of units with few neighbours each, a block per chain and a thread per unit; pairs.py tells what the
// arrays are: those of units lie in the order of the colours, (colours, ..., width).

extern "C" __global__ void __launch_bounds__(THREADS) pair_steps(
    GIVEN, const int *__restrict__ sites, const int *__restrict__ near, const float *__restrict__ couplings,
    const float *__restrict__ start, const float *__restrict__ change, const float *__restrict__ offset, HELD) {
    extern __shared__ u8 x[];
    __shared__ u32 keys[2 * AHEAD * DRAWS];
    __shared__ float parts[WARPS];
    const int chain = blockIdx.x, count = count_in[0], first = first_in[0];
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
        float pairs = 0, alone = 0;
        for (int colour = 0; colour < DRAWS; colour++)
            for (int place = threadIdx.x; place < WIDTH; place += THREADS) {
                const int unit = sites[colour * WIDTH + place];
                if (unit >= UNITS) continue;
                const int here = x[unit];
                for (int d = 0; d < DEGREE; d++) {
                    const int at = (colour * DEGREE + d) * WIDTH + place;
                    pairs += x[near[at]] == here ? couplings[at] : 0.0f;
                }
                alone += change[(colour * STATES + here) * WIDTH + place];
            }
        give(parts, 0.5f * pairs + alone);
        for (int colour = 0; colour < DRAWS; colour++) {
            __syncthreads();
            if (colour == 0 && threadIdx.x == 0) {
                const float slope = added(parts) + offset[0];
                weight.add((beta1 - beta0) * slope, slots[i], slope);
            }
            for (int place = threadIdx.x; place < WIDTH; place += THREADS) {
                const int unit = sites[colour * WIDTH + place];
                if (unit >= UNITS) continue;
                float logits[STATES] = {}, largest = -3.4e38f, level = 0;
                for (int d = 0; d < DEGREE; d++) {
                    const int at = (colour * DEGREE + d) * WIDTH + place, other = x[near[at]];
                    const float coupling = couplings[at];
#pragma unroll
                    for (int state = 0; state < STATES; state++) logits[state] += other == state ? coupling : 0.0f;
                }
#pragma unroll
                for (int state = 0; state < STATES; state++) {
                    const int at = (colour * STATES + state) * WIDTH + place;
                    logits[state] = start[at] + beta1 * (logits[state] + change[at]);
                    largest = fmaxf(largest, logits[state]);
                }
#pragma unroll
                for (int state = 0; state < STATES; state++) {
                    level += exp2_of(LOG2_E * (logits[state] - largest));
                    logits[state] = level;  // of this state and those before it
                }
                level *= TINY * uniform(row[2 * colour] + place * GOLDEN, row[2 * colour + 1] * SECOND);
                int drawn = 0;
#pragma unroll
                for (int state = 0; state < STATES - 1; state++) drawn += level > logits[state];
                x[unit] = drawn;
            }
        }
    }
    __syncthreads();
    for (int unit = threadIdx.x; unit < UNITS; unit += THREADS) x_out[chain * UNITS + unit] = x[unit];
    if (threadIdx.x == 0) total_out[chain] = weight.total, carry_out[chain] = weight.carry;
}
