// What all programs compute of a unit, as arithmetic.py does, in single instructions of a GPU where it has them.

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
