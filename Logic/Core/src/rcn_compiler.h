// SPDX-License-Identifier: Apache-2.0
/* What some compilers know beyond C11, under names that are empty elsewhere. (Visibility is in
 * rcn_status.h, because the public headers need it; vectors are in rcn_lanes.h.)
 *
 * With RCN_PLAIN_C (an option of CMake) GCC and Clang are treated as compilers that know only C11,
 * so that what others get is compiled and tested, too.
 */
#ifndef RCN_COMPILER_H
#define RCN_COMPILER_H

/* GCC, Clang and whatever has their attributes, vectors and built-in functions. */
#if defined(__GNUC__) && !defined(RCN_PLAIN_C)
#define RCN_GNU
#endif

/* Checks the arguments of a function like printf. */
#if defined(RCN_GNU) && defined(__MINGW32__)
#define RCN_PRINTF(text, first) __attribute__((format(gnu_printf, text, first)))
#elif defined(RCN_GNU)
#define RCN_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define RCN_PRINTF(text, first)
#endif

/* A helper that must be compiled into each copy of the loop that calls it. */
#if defined(RCN_GNU)
#define RCN_INLINE static inline __attribute__((always_inline, unused))
#elif defined(_MSC_VER)
#define RCN_INLINE static __forceinline
#else
#define RCN_INLINE static inline
#endif

/* Compiles a hot loop once more for AVX2 and picks at run time, so that what is shipped runs on
 * every x86-64 machine and is fast on today's. Sanitizers cannot run before the program starts,
 * where the choice is made. Integer loops and element-wise float loops only: the results must not
 * depend on which copy runs. */
#if defined(__x86_64__) && defined(__linux__) && defined(RCN_GNU) && !defined(__clang__) &&        \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(RCN_NO_DISPATCH)
#define RCN_DISPATCH __attribute__((target_clones("avx2", "default")))
#else
#define RCN_DISPATCH
#endif

#endif /* RCN_COMPILER_H */
