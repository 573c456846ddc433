// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SCHEDULER_GAUSSIAN_PROCESS_H_
#define TUG_SCHEDULER_GAUSSIAN_PROCESS_H_

// Regression of a noisy function of two variables. Source: Rasmussen & Williams 2006, Gaussian
// Processes for Machine Learning, algorithm 2.1 (prediction, marginal likelihood), section 2.7 (an
// unknown trend) and equation 4.17 (Matern 5/2).
//
// The prior is `GpPoint::expected`: right in shape, but perhaps not in height or scale. The mean
// is  a + b expected(x)  with b about 1; a and b are unknown and integrated out. So observations
// have the covariance
//   signal^2 Matern52(|x - x'| / length) + kOffset^2 + kSlope^2 expected(x) expected(x')
//   + noise^2 / measurements, on the diagonal
// around the mean expected(x).

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tug {

struct GpPoint {
  double x = 0;
  double y = 0;
  double expected = 0;  // ideally relative to its mean over the points of interest
};

// Mean of `measurements` values at a point.
struct GpObservation {
  GpPoint at;
  double value = 0;
  uint32_t measurements = 1;
};

// `signal` and `noise` are standard deviations; `length` is the distance over which values
// correlate.
struct GpParameters {
  double signal = 1;
  double length = 1;
  double noise = 0.1;  // of one measurement
};

struct GpPrediction {
  double mean = 0;
  double deviation = 0;  // standard deviation of the function, without noise
};

// Immutable, thread-safe. Deterministic.
class GaussianProcess {
 public:
  static constexpr double kOffset = 10;
  static constexpr double kSlope = 0.6;

  // REQUIRES: at least one observation; positive parameters and numbers of measurements.
  GaussianProcess(std::vector<GpObservation> observations, const GpParameters& parameters);

  // Chooses the most likely parameters of a small grid: by marginal likelihood and log-normal
  // priors for logarithms of step times over octaves (gaussian_process.cc); the prior of the noise
  // is centred on `likely_noise`.
  static GaussianProcess Fit(std::span<const GpObservation> observations, double likely_noise);

  GpPrediction At(const GpPoint& point) const;
  double log_marginal_likelihood() const { return log_marginal_likelihood_; }
  const GpParameters& parameters() const { return parameters_; }

 private:
  struct Factorization;  // hides Eigen, which only gaussian_process.cc includes

  double Covariance(const GpPoint& a, const GpPoint& b) const;

  const std::vector<GpObservation> observations_;
  const GpParameters parameters_;
  std::shared_ptr<const Factorization> factorization_;  // immutable, so copies share it
  double log_marginal_likelihood_ = 0;
};

// Expected amount by which a value drawn from `prediction` lies below `best`; a value above counts
// as 0 (Jones et al. 1998, equation 15).
double ExpectedImprovement(const GpPrediction& prediction, double best);

}  // namespace tug

#endif  // TUG_SCHEDULER_GAUSSIAN_PROCESS_H_
