// SPDX-License-Identifier: Apache-2.0
#include "exchange/encode/residuals.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "kernels/sum.h"

namespace tug {

Residuals::OfVirtualWorker& Residuals::Find(uint32_t virtual_worker) {
  if (virtual_worker >= of_.size()) {
    of_.resize(virtual_worker + 1);
    squares_.resize(virtual_worker + 1);
  }
  OfVirtualWorker& of = of_[virtual_worker];
  of.elements.resize(table_.size());
  of.squares.resize(table_.size());
  return of;
}

std::span<float> Residuals::Of(uint32_t virtual_worker, const Segment& segment,
                               size_t state_floats) {
  AlignedBuffer& elements = Find(virtual_worker).elements[IdOf(segment)];
  const size_t floats = segment.elements() + state_floats;
  if (elements.size_bytes() == 0) elements = AlignedBuffer(floats * sizeof(float));
  TUG_CHECK_EQ(elements.size_bytes(), floats * sizeof(float));
  return elements.floats();
}

void Residuals::SumSquaresOf(uint32_t virtual_worker, const Segment& segment) {
  OfVirtualWorker& of = of_[virtual_worker];
  const uint32_t id = IdOf(segment);
  of.squares[id] = kernels::SumOfSquares(of.elements[id].floats().data(),
                                         static_cast<int64_t>(segment.elements()));
}

bool Residuals::Has(uint32_t virtual_worker, const Segment& segment) const {
  if (virtual_worker >= of_.size()) return false;
  const std::vector<AlignedBuffer>& elements = of_[virtual_worker].elements;
  return !elements.empty() && elements[IdOf(segment)].size_bytes() > 0;
}

double Residuals::SquaresOf(uint32_t virtual_worker, const Segment& segment) const {
  return Has(virtual_worker, segment) ? of_[virtual_worker].squares[IdOf(segment)] : 0;
}

void Residuals::SumSquares(uint32_t virtual_worker) {
  if (virtual_worker >= of_.size()) return;
  const std::vector<double>& squares = of_[virtual_worker].squares;
  squares_[virtual_worker] = std::accumulate(squares.begin(), squares.end(), 0.0);
}

void Residuals::GiveUpAllBut(std::span<const uint32_t> virtual_workers) {
  for (uint32_t v = 0; v < of_.size(); ++v) {
    if (std::find(virtual_workers.begin(), virtual_workers.end(), v) != virtual_workers.end()) {
      continue;
    }
    of_[v] = OfVirtualWorker();
    squares_[v] = 0;
  }
}

std::vector<SegmentResidual> Residuals::Copy(uint32_t virtual_worker) const {
  std::vector<SegmentResidual> copies;
  if (virtual_worker >= of_.size()) return copies;
  const std::vector<AlignedBuffer>& elements = of_[virtual_worker].elements;
  for (uint32_t id = 0; id < elements.size(); ++id) {
    if (elements[id].size_bytes() == 0) continue;
    copies.push_back({id, AlignedBuffer(elements[id].size_bytes())});
    std::copy(elements[id].floats().begin(), elements[id].floats().end(),
              copies.back().values.floats().begin());
  }
  return copies;
}

void Residuals::Restore(uint32_t virtual_worker, std::vector<SegmentResidual> residuals) {
  Find(virtual_worker) = OfVirtualWorker();
  OfVirtualWorker& of = Find(virtual_worker);
  for (SegmentResidual& residual : residuals) {
    const Segment& segment = table_.segment(residual.segment);
    TUG_CHECK_GE(residual.values.size_bytes(), segment.bytes());
    of.elements[residual.segment] = std::move(residual.values);
    SumSquaresOf(virtual_worker, segment);
  }
  SumSquares(virtual_worker);
}

}  // namespace tug
