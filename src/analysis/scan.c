/* SPDX-License-Identifier: MIT */
#include "analysis/scan.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/*
 * Words from one on, behind the hits that there are.  Without a branch: a wrong
 * guess costs more than a store.
 */
static inline size_t scan_plain(const uint8_t *bytes, size_t from, size_t n,
				unsigned word, uint64_t base, uint64_t span,
				struct scan_hits *ret, size_t hits)
{
	for (size_t i = from; i < n; i++) {
		uint64_t off = load_word(bytes + word * i, word) - base;

		ret->pos[hits] = (uint16_t)i;
		ret->off[hits] = off;
		hits += off < span;
	}
	return hits;
}

#if defined(__x86_64__)
/*
 * Four words at a time; AVX2 compares signed, so both sides are shifted.  Most
 * groups of eight hold no address at all.
 */
__attribute__((target("avx2")))
static size_t scan_avx2(const uint8_t *bytes, size_t n, uint64_t base,
			uint64_t span, struct scan_hits *ret)
{
	const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
	const __m256i low = _mm256_set1_epi64x((int64_t)base);
	const __m256i top = _mm256_set1_epi64x(
		(int64_t)(span ^ UINT64_C(1) << 63));
	size_t hits = 0, i;

	for (i = 0; i + 8 <= n; i += 8) {
		const uint8_t *p = bytes + 8 * i;
		__m256i a = _mm256_loadu_si256((const void *)p);
		__m256i b = _mm256_loadu_si256((const void *)(p + 32));
		__m256i da = _mm256_sub_epi64(a, low);
		__m256i db = _mm256_sub_epi64(b, low);
		__m256i ma = _mm256_cmpgt_epi64(top,
						_mm256_xor_si256(da, sign));
		__m256i mb = _mm256_cmpgt_epi64(top,
						_mm256_xor_si256(db, sign));
		unsigned bits = (unsigned)_mm256_movemask_pd(
					_mm256_castsi256_pd(ma)) |
				(unsigned)_mm256_movemask_pd(
					_mm256_castsi256_pd(mb)) << 4;

		for (; bits; bits &= bits - 1) {
			unsigned k = (unsigned)__builtin_ctz(bits);

			ret->pos[hits] = (uint16_t)(i + k);
			ret->off[hits++] = load_u64(p + 8 * k) - base;
		}
	}
	return scan_plain(bytes, i, n, 8, base, span, ret, hits);
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}
#else
static size_t scan_avx2(const uint8_t *bytes, size_t n, uint64_t base,
			uint64_t span, struct scan_hits *ret)
{
	return scan_plain(bytes, 0, n, 8, base, span, ret, 0);
}

static bool has_avx2(void)
{
	return false;
}
#endif

size_t scan_words(const uint8_t *bytes, size_t n, unsigned word,
		  uint64_t base, uint64_t span, struct scan_hits *ret)
{
	if (word == 4)
		return scan_plain(bytes, 0, n, 4, base, span, ret, 0);
	if (has_avx2())
		return scan_avx2(bytes, n, base, span, ret);
	return scan_plain(bytes, 0, n, 8, base, span, ret, 0);
}
