typedef char @_is_supported[(-1 >> 1) == -1 && (-1 & 3) == 3 ? 1 : -1];

#if defined(__FAST_MATH__)
#error "without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#error "floats must be computed as floats: -msse2 -mfpmath=sse"
#endif

#ifndef $_DATA
#define $_DATA /* before each constant: a section, PROGMEM */
#endif
#ifndef $_LAYER
#define $_LAYER(number, tensor, bytes) ((void)0)
#endif
#ifndef $_STEP
#define $_STEP(tensor, bytes) ((void)0)
#endif
#ifndef $_SUMS
#define $_SUMS(sums, results, first, count)
#endif
