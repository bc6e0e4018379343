// What all programs share: barriers, and what they compute of a unit, in forms that take few instructions.
//
// Draws are those of core/random.py: with f = 2^32 u and e = exp(-logit),
//
//     u (1 + e) <= 1     as     f + f e <= 2^32
//
// and e = 2^(-logit log2(e)), for which there is one instruction. The difference of softplus is that of core/numerics.py,
// log1p(x) with x = n / d, where t is the step, turned towards the sign of -low,
//
//     d = 1 + exp(-|low|),     n = exp(-|low|) expm1(t) = exp(t - |low|) - exp(-|low|)
//
// The first form of n is taken where |t| < 1/2, with expm1 as a series of eight terms. And
//
//     log1p(x) = log(d + n) - log(d) = 2 artanh(s),     s = n / (2 d + n)
//
// the last as a series of five terms where |s| < 1/9. Where all steps are known to be small, seven and three terms do, and
// nothing else is computed. What comes back is within 4e-7 of the exact value, relative to it or to the step, or infinite
// where the step is beyond float32.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define LOG2_E 1.4426950408889634f
#define LOG_2 0.6931471805599453f
#define GOLDEN 0x9E3779B9u
#define SECOND 0xAC4C1B51u
#define ALL_LANES 0xFFFFFFFFu

__device__ __forceinline__ float exp2_of(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float log2_of(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// 2^32 u of core/random.py: `start` is r0 + unit * GOLDEN, `shift` is r1 * SECOND
__device__ __forceinline__ float uniform(u32 start, u32 shift) {
    u32 word = (start ^ (start >> 17)) * 0xED5AD4BBu;
    word = (word ^ (word >> 11)) * SECOND + shift;
    word = (word ^ (word >> 15)) * 0x31848BABu;
    return __uint2float_rn((word ^ (word >> 14)) & 0xFFFFFFFEu);
}

// whether a unit of this 2^32 u is one, where `power` is -logit log2(e)
__device__ __forceinline__ bool is_one(float scaled, float power) {
    return __fmaf_rn(scaled, exp2_of(power), scaled) <= 4294967296.0f;
}

// softplus(low + step) - softplus(low); narrow where no |step| is beyond 1/4
template <bool IS_NARROW> __device__ __forceinline__ float softplus_difference(float low, float step) {
    const float away = fabsf(low), turned = low > 0 ? -step : step, base = low > 0 ? step : 0.0f;
    const float tail = exp2_of(-LOG2_E * away), whole = 1 + tail;
    float series = IS_NARROW ? 1.0f / 5040 : turned * (1.0f / 40320) + 1.0f / 5040;
    series = series * turned + 1.0f / 720;
    series = series * turned + 1.0f / 120;
    series = series * turned + 1.0f / 24;
    series = series * turned + 1.0f / 6;
    series = series * turned + 0.5f;
    float part = tail * (turned * (series * turned + 1.0f));
    if (!IS_NARROW && fabsf(turned) >= 0.5f) part = exp2_of(LOG2_E * (turned - away)) - tail;
    const float s = part * reciprocal(2 * whole + part), square = s * s;
    if (IS_NARROW) return base + s * ((0.4f * square + 2.0f / 3) * square + 2.0f);
    series = s * ((((2.0f / 9 * square + 2.0f / 7) * square + 0.4f) * square + 2.0f / 3) * square + 2.0f);
    const float plain = LOG_2 * (log2_of(whole + part) - log2_of(whole));
    return base + (fabsf(s) < 1.0f / 9 ? series : plain);
}

// a compensated sum, as that of core/numerics.py
__device__ __forceinline__ void add_compensated(float &total, float &carry, float increment) {
    const float sum = total + increment, back = sum - total;
    carry += (total - (sum - back)) + (increment - back);
    total = sum;
}

// Barriers in shared memory, which a warp arrives at and all wait for.
__device__ __forceinline__ void initiate(u32 barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void arrive(u32 barrier) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void wait(u32 barrier, u32 parity) {
    asm volatile("{\n.reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra AGAIN;\n}"
                 ::"r"(barrier), "r"(parity) : "memory");
}
