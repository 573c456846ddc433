// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CPU_LINEAR_ONEDNN_MATMUL_H_
#define TUG_KERNELS_CPU_LINEAR_ONEDNN_MATMUL_H_

#include <oneapi/dnnl/dnnl.hpp>

namespace tug {

// Describes C = A B for oneDNN 2 and for oneDNN 3, which has no operation descriptors. With
// `allow_empty` a product that oneDNN cannot compute gives an empty description; otherwise it
// throws dnnl::error.
inline dnnl::matmul::primitive_desc DescribeMatMul(const dnnl::engine& engine,
                                                   const dnnl::memory::desc& a,
                                                   const dnnl::memory::desc& b,
                                                   const dnnl::memory::desc& c,
                                                   const dnnl::primitive_attr& attributes = {},
                                                   bool allow_empty = false) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, a, b, c, attributes, allow_empty};
#else
  return {{a, b, c}, attributes, engine, allow_empty};
#endif
}

}  // namespace tug

#endif  // TUG_KERNELS_CPU_LINEAR_ONEDNN_MATMUL_H_
