/* Small functions that the kernels call; a file gets those that it uses. An empty line ends each.
 * Shifts of negative numbers are arithmetic, and casts to narrower integers wrap: a file checks both.
 * scale_two is TOSA's DOUBLE_ROUND with a shift above 31, without a branch: the high half of the doubled product, and a
 * division by a power of two, rounded half away from zero. The shift is r + 32, and a > -2^31. Source: TOSA 1.0, RESCALE.
 * dot1, dot2 and dot4 add products of windows of n elements with filters, which lie k elements apart, to rows of an
 * even number of sums. dot8 adds up twice its products: compilers make one instruction of two products of int16. */

static inline int32_t add32(int32_t a, int32_t b) {
  return (int32_t)((uint32_t)a + (uint32_t)b);
}

static inline int32_t sub32(int32_t a, int32_t b) {
  return (int32_t)((uint32_t)a - (uint32_t)b);
}

static inline int32_t mul32(int32_t a, int32_t b) {
  return (int32_t)((uint32_t)a * (uint32_t)b);
}

static inline int32_t div32(int32_t a, int32_t b) {
  return b == 0 ? 0 : b == -1 ? (int32_t)(0U - (uint32_t)a) : a / b;
}

static inline int32_t abs32(int32_t a) {
  return a < 0 ? (int32_t)(0U - (uint32_t)a) : a;
}

static inline int32_t min32(int32_t a, int32_t b) {
  return a < b ? a : b;
}

static inline int32_t max32(int32_t a, int32_t b) {
  return a > b ? a : b;
}

static inline int64_t min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static inline int64_t max64(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static inline int32_t clamp32(int32_t a, int32_t low, int32_t high) {
  return a < low ? low : a > high ? high : a;
}

static inline int32_t clamp64(int64_t a, int32_t low, int32_t high) {
  return a < low ? low : a > high ? high : (int32_t)a;
}

static inline int32_t half_away(int32_t a, int32_t n) {
  return (a + (1 << (n - 1)) - (a < 0)) >> n;
}

static inline int32_t q15_mul(int32_t a, int32_t b) {
  return min32((a * b + (1 << 14)) >> 15, 32767);
}

static inline int32_t q15_exp(int32_t a, int32_t bits) {
  static const int16_t powers[7] = {25520, 19875, 12055, 4435, 600, 11, 0};
  const int32_t quarter = 1 << (13 - bits), within = (a & (quarter - 1)) - quarter, rest = (int16_t)(within - a);
  const int32_t x = within * (1 << bits) + (1 << 12), x2 = q15_mul(x, x), x4 = half_away(q15_mul(x2, x2), 2);
  const int32_t tail = half_away(q15_mul(x4 + q15_mul(x2, x), 10923) + x2, 1);
  int32_t y = 28918 + q15_mul((int16_t)(x + tail), 28918);
  for (int32_t k = 0; k < 7; k++) {
    const int32_t product = q15_mul(y, powers[k]);
    y = (rest & (quarter << k)) != 0 ? product : y;
  }
  return a == 0 ? 32767 : bits > 5 && a < -(1 << (20 - bits)) ? 0 : y;
}

static inline int32_t q13_reciprocal(int32_t a) {
  const int32_t half = (a + 32768) >> 1;
  int32_t x = (int16_t)(23130 + q15_mul(half, -15420));
  for (int32_t step = 0; step < 3; step++) {
    const int32_t rest = (int16_t)(8192 - q15_mul(half, x));
    x = (int16_t)(x + q15_mul(x, rest) * 4);
  }
  return x;
}

static inline int32_t q15_logistic(int32_t a) {
  const int32_t y = min32(q13_reciprocal(q15_exp(-abs32(a), 3)) * 2, 32767);
  return a == 0 ? 16384 : a > 0 ? y : 32767 - y;
}

static inline int32_t q15_tanh(int32_t a, int32_t bits) {
  const int32_t y = min32((int16_t)(q13_reciprocal(q15_exp(-abs32(a), bits + 1)) - 8192) * 4, 32767);
  return a == 0 ? 0 : a > 0 ? y : -y;
}

static inline int32_t reaches(float a, float scale, int32_t level) {
  const float quotient = a / scale, edge = (float)level - 0.5f;
  return level > 0 ? quotient >= edge : quotient > edge;
}

static inline float minf32(float a, float b) {
  return a < b || a != a ? a : b;
}

static inline float maxf32(float a, float b) {
  return a > b || a != a ? a : b;
}

static inline float clampf32(float a, float low, float high) {
  return a < low ? low : a > high ? high : a;
}

static inline int32_t shl32(int32_t a, int32_t n) {
  return (int32_t)((uint32_t)a << (uint32_t)n);
}

static inline int32_t shr32(int32_t a, int32_t n) {
  return (int32_t)((uint32_t)a >> (uint32_t)n);
}

static inline int32_t sar_round(int32_t a, int32_t n) {
  return n > 0 ? (int32_t)(((int64_t)a >> n) + (((int64_t)a >> (n - 1)) & 1)) : a;
}

static inline int32_t clz32(int32_t a) {
  uint32_t u = (uint32_t)a;
  int32_t n = 0;
  if (u == 0U) {
    return 32;
  }
  for (int32_t s = 16; s > 0; s >>= 1) {
    if (u >> (32 - s) == 0U) {
      n += s;
      u <<= s;
    }
  }
  return n;
}

static inline int32_t mul_shift(int32_t a, int32_t b, int32_t s) {
  return (int32_t)(((int64_t)a * b + ((int64_t)1 << (s - 1))) >> s);
}

static inline int32_t scale_two(int32_t a, int32_t m, int32_t r) {
  const int32_t h = (int32_t)(uint32_t)((uint64_t)((int64_t)a * m + (1 << 30)) >> 31);
  return (((h - (h < 0)) >> r) + 1) >> 1;
}

static inline int32_t scale_one(int64_t a, int32_t m, int32_t s) {
  return (int32_t)((a * m + ((int64_t)1 << (s - 1))) >> s);
}

static inline int64_t scale_one64(int64_t a, int32_t m, int32_t s) {
  return (a * m + ((int64_t)1 << (s - 1))) >> s;
}

static inline int64_t scale_two64(int32_t a, int32_t m, int32_t s) {
  int64_t round = (int64_t)1 << (s - 1);
  if (s > 31) {
    round += a < 0 ? -(1 << 30) : (1 << 30);
  }
  return ((int64_t)a * m + round) >> s;
}

static inline int32_t scale_each(int32_t a, int32_t m, int32_t s) {
  return s > 31 ? scale_two(a, m, s - 32) : scale_one(a, m, s);
}

static inline int32_t interpolated(const int16_t *table, int32_t a) {
  const int32_t base = table[(a >> 7) + 256], next = table[(a >> 7) + 257];
  return base * 128 + (next - base) * (a & 127);
}

static inline int32_t to_int32(float a) {
  if (!(a > -2147483648.0f)) {
    return a != a ? 0 : INT32_MIN;
  }
  if (a >= 2147483648.0f) {
    return INT32_MAX;
  }
  const int32_t t = (int32_t)a;
  const float d = a - (float)t;
  if (d > 0.5f || (d == 0.5f && (t & 1) != 0)) {
    return t + 1;
  }
  return d < -0.5f || (d == -0.5f && (t & 1) != 0) ? t - 1 : t;
}

static inline float floorf32(float a) {
  if (!(a > -8388608.0f && a < 8388608.0f) || a == 0.0f) {
    return a;
  }
  const float t = (float)(int32_t)a;
  return t > a ? t - 1.0f : t;
}

static inline float ceilf32(float a) {
  return -floorf32(-a);
}

static inline float sigmoid(float a) {
  return (float)(1.0 / (1.0 + exp(-(double)a)));
}

static void dot4(const int16_t *x, const int8_t *w, int32_t n, int32_t k, int32_t outputs, int32_t *a) {
  for (int32_t o = 0; o < outputs; o += 2) {
    const int8_t *w0 = w + o * k, *w1 = w0 + k;
    int32_t s00 = 0, s01 = 0, s10 = 0, s11 = 0, s20 = 0, s21 = 0, s30 = 0, s31 = 0;
    for (int32_t i = 0; i < n; i++) {
      s00 += x[i] * w0[i];
      s01 += x[i] * w1[i];
      s10 += x[i + n] * w0[i];
      s11 += x[i + n] * w1[i];
      s20 += x[i + 2 * n] * w0[i];
      s21 += x[i + 2 * n] * w1[i];
      s30 += x[i + 3 * n] * w0[i];
      s31 += x[i + 3 * n] * w1[i];
    }
    a[o] += s00;
    a[o + outputs] += s10;
    a[o + 2 * outputs] += s20;
    a[o + 3 * outputs] += s30;
    a[o + 1] += s01;
    a[o + 1 + outputs] += s11;
    a[o + 1 + 2 * outputs] += s21;
    a[o + 1 + 3 * outputs] += s31;
  }
}

static void dot2(const int16_t *x, const int8_t *w, int32_t n, int32_t k, int32_t outputs, int32_t *a) {
  for (int32_t o = 0; o < outputs; o += 2) {
    const int8_t *w0 = w + o * k, *w1 = w0 + k;
    int32_t s00 = 0, s01 = 0, s10 = 0, s11 = 0;
    for (int32_t i = 0; i < n; i++) {
      s00 += x[i] * w0[i];
      s01 += x[i] * w1[i];
      s10 += x[i + n] * w0[i];
      s11 += x[i + n] * w1[i];
    }
    a[o] += s00;
    a[o + outputs] += s10;
    a[o + 1] += s01;
    a[o + 1 + outputs] += s11;
  }
}

static void dot1(const int16_t *x, const int8_t *w, int32_t n, int32_t k, int32_t outputs, int32_t *a) {
  for (int32_t o = 0; o < outputs; o += 2) {
    const int8_t *w0 = w + o * k, *w1 = w0 + k;
    int32_t s0 = 0, s1 = 0;
    for (int32_t i = 0; i < n; i++) {
      s0 += x[i] * w0[i];
      s1 += x[i] * w1[i];
    }
    a[o] += s0;
    a[o + 1] += s1;
  }
}

static int32_t dot8(const int8_t *x, const int8_t *w, int32_t n, int32_t zero) {
  int32_t s = 0;
  for (int32_t i = 0; i < n; i++) {
    const int16_t twice = (int16_t)((x[i] - zero) * 2);
    s += twice * w[i];
  }
  return s / 2;
}

static float dotf(const float *x, const float *w, int32_t n) {
  float s[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
  int32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int32_t k = 0; k < 8; k++) {
      s[k] += x[i + k] * w[i + k];
    }
  }
  for (; i < n; i++) {
    s[0] += x[i] * w[i];
  }
  return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

static uint32_t hash(uint32_t i) {
  uint32_t h = i * 2654435761U;
  h ^= h >> 15;
  h *= 2246822519U;
  return h ^ (h >> 13);
}
