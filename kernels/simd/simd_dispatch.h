// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_SIMD_SIMD_DISPATCH_H_
#define TUG_KERNELS_SIMD_SIMD_DISPATCH_H_

// Include after hwy/highway.h (and that after hwy/foreach_target.h).

// Selects the version of the function template NAME, instantiated for TYPE, for the machine's best
// instruction set: HWY_EXPORT and HWY_DYNAMIC_DISPATCH in one, which do not accept templates.
//   template <typename T>
//   void Twice(int64_t n, T* x) { TUG_DISPATCH(TwiceRange, T)(n, x); }
// Use it inside `#if HWY_ONCE`, in the namespace that contains those of the instruction sets. NAME
// takes one type: the comma of a second one would split the macro's arguments.
#if HWY_IDE || ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0)
#define TUG_DISPATCH(NAME, TYPE) HWY_STATIC_DISPATCH(NAME<TYPE>)
#else
// The first entry of the table serves the first call: it detects the instruction set.
#define TUG_DISPATCH(NAME, TYPE)                                                                   \
  [] {                                                                                             \
    static decltype(&HWY_STATIC_DISPATCH(NAME<TYPE>)) const table[HWY_MAX_DYNAMIC_TARGETS + 2] = { \
        &decltype(hwy::DeduceFunctionCache(                                                        \
            &HWY_STATIC_DISPATCH(NAME<TYPE>)))::template ChooseAndCall<table>,                     \
        HWY_CHOOSE_TARGET_LIST(NAME<TYPE>), HWY_CHOOSE_FALLBACK(NAME<TYPE>)};                      \
    return table[hwy::GetChosenTarget().GetIndex()];                                               \
  }()
#endif

#endif  // TUG_KERNELS_SIMD_SIMD_DISPATCH_H_
