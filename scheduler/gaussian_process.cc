// SPDX-License-Identifier: Apache-2.0
#include "scheduler/gaussian_process.h"

#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "Eigen/Cholesky"
#include "Eigen/Core"
#include "base/check.h"

namespace tug {
namespace {

double Matern52(double distance) {
  const double scaled = std::sqrt(5.0) * distance;
  return (1 + scaled + scaled * scaled / 3) * std::exp(-scaled);
}

// Log-normal prior of a parameter, centred on `center`.
struct Likely {
  double center;
  double log_deviation;

  double LogDensity(double value) const {
    const double z = std::log(value / center) / log_deviation;
    return -z * z / 2;
  }
};

// Values are logarithms of step times: 0.3 is a factor of 1.35. Coordinates are octaves. The grids
// omit weak signals and great lengths, which make the process overconfident too early.
constexpr Likely kSignal{0.3, 1.0};
constexpr Likely kLength{3.0, 0.5};
constexpr double kSignals[] = {0.12, 0.25, 0.5, 1.0};
constexpr double kLengths[] = {1.5, 2.5, 4};
constexpr double kNoises[] = {0.005, 0.01, 0.02, 0.04, 0.08};

}  // namespace

struct GaussianProcess::Factorization {
  Eigen::LLT<Eigen::MatrixXd> factor;  // of the observations' covariance
  Eigen::VectorXd weights;             // inverse covariance times (values - expected values)
};

GaussianProcess::GaussianProcess(std::vector<GpObservation> observations,
                                 const GpParameters& parameters)
    : observations_(std::move(observations)), parameters_(parameters) {
  const auto n = static_cast<Eigen::Index>(observations_.size());
  TUG_CHECK(n > 0);
  Eigen::MatrixXd covariance(n, n);
  Eigen::VectorXd unexpected(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const GpObservation& row = observations_[static_cast<size_t>(i)];
    for (Eigen::Index j = 0; j <= i; ++j) {
      covariance(i, j) = Covariance(row.at, observations_[static_cast<size_t>(j)].at);
      covariance(j, i) = covariance(i, j);
    }
    covariance(i, i) += parameters_.noise * parameters_.noise / row.measurements;
    unexpected(i) = row.value - row.at.expected;
  }
  const Eigen::LLT<Eigen::MatrixXd> factor(covariance);
  TUG_CHECK(factor.info() == Eigen::Success) << "the covariance is not positive definite";
  const Eigen::VectorXd weights = factor.solve(unexpected);
  log_marginal_likelihood_ = -0.5 * unexpected.dot(weights) -
                             factor.matrixLLT().diagonal().array().log().sum() -
                             0.5 * static_cast<double>(n) * std::log(2 * std::numbers::pi);
  factorization_ = std::make_shared<const Factorization>(Factorization{factor, weights});
}

GaussianProcess GaussianProcess::Fit(std::span<const GpObservation> observations,
                                     double likely_noise) {
  const std::vector<GpObservation> all(observations.begin(), observations.end());
  const Likely noises{likely_noise, 0.5};
  std::optional<GpParameters> best;
  double best_score = 0;
  for (const double signal : kSignals) {
    for (const double length : kLengths) {
      for (const double noise : kNoises) {
        const GpParameters parameters{signal, length, noise};
        const double score = GaussianProcess(all, parameters).log_marginal_likelihood() +
                             kSignal.LogDensity(signal) + kLength.LogDensity(length) +
                             noises.LogDensity(noise);
        if (best.has_value() && score <= best_score) continue;
        best = parameters;
        best_score = score;
      }
    }
  }
  return GaussianProcess(all, *best);
}

double GaussianProcess::Covariance(const GpPoint& a, const GpPoint& b) const {
  const double dx = a.x - b.x, dy = a.y - b.y;
  const double distance = std::sqrt(dx * dx + dy * dy);  // std::hypot needs glibc 2.35
  return parameters_.signal * parameters_.signal * Matern52(distance / parameters_.length) +
         kOffset * kOffset + kSlope * kSlope * a.expected * b.expected;
}

GpPrediction GaussianProcess::At(const GpPoint& point) const {
  const auto& [factor, weights] = *factorization_;
  Eigen::VectorXd shared(weights.size());
  for (Eigen::Index i = 0; i < shared.size(); ++i) {
    shared(i) = Covariance(point, observations_[static_cast<size_t>(i)].at);
  }
  const double known = shared.dot(factor.solve(shared));
  const double variance = Covariance(point, point) - known;
  return {.mean = point.expected + shared.dot(weights),
          .deviation = std::sqrt(std::max(variance, 0.0))};
}

double ExpectedImprovement(const GpPrediction& prediction, double best) {
  const double gain = best - prediction.mean;
  if (prediction.deviation <= 0) return std::max(gain, 0.0);
  const double z = gain / prediction.deviation;
  const double below = std::erfc(-z / std::numbers::sqrt2) / 2;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return gain * below + prediction.deviation * density;
}

}  // namespace tug
