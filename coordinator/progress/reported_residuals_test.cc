// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/reported_residuals.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tug {
namespace {

StepReport Report(uint32_t virtual_worker, double squares) {
  StepReport report;
  report.set_virtual_worker(virtual_worker);
  report.set_residual_squares(squares);
  return report;
}

TEST(ReportedResiduals, SaysOnceWhatGoesWithAWorker) {
  ReportedResiduals residuals;
  residuals.Add(2, Report(0, 4));
  residuals.Add(3, Report(2, 9));
  residuals.Add(3, Report(3, 1));
  residuals.Add(3, Report(3, 16));
  EXPECT_EQ(residuals.Take(3, {}), "error-feedback residuals of virtual workers 2, 3 (norm 5)");
  EXPECT_EQ(residuals.Take(3, {}), "");
  EXPECT_EQ(residuals.Take(2, {}), "error-feedback residuals of virtual worker 0 (norm 2)");
}

TEST(ReportedResiduals, KeepsThoseOfVirtualWorkersThatStay) {
  ReportedResiduals residuals;
  for (uint32_t v = 0; v < 3; ++v) residuals.Add(2, Report(v, 1e-4));
  const std::vector<uint32_t> owners = {2, 5, 2};
  EXPECT_EQ(residuals.Take(2, owners), "error-feedback residuals of virtual worker 1 (norm 0.01)");
  residuals.Add(5, Report(1, 1));
  EXPECT_EQ(residuals.Take(2, {}),
            "error-feedback residuals of virtual workers 0, 2 (norm 0.0141)");
}

TEST(ReportedResiduals, SaysWhatOfAnybodyACheckpointLacks) {
  ReportedResiduals residuals;
  for (uint32_t v = 0; v < 3; ++v) residuals.Add(2 + v, Report(v, 4));
  const std::vector<uint32_t> restored = {1, 7};
  EXPECT_EQ(residuals.TakeAllBut(restored),
            "error-feedback residuals of virtual workers 0, 2 (norm 2.83)");
  EXPECT_EQ(residuals.TakeAllBut(restored), "");
}

TEST(ReportedResiduals, BelievesNoNumberThatIsNoSumOfSquares) {
  ReportedResiduals residuals;
  residuals.Add(2, Report(0, -1));
  residuals.Add(2, Report(1, 1));
  residuals.Add(2, Report(1, std::numeric_limits<double>::quiet_NaN()));
  residuals.Add(2, Report(2, std::numeric_limits<double>::infinity()));
  EXPECT_EQ(residuals.Take(2, {}), "");
}

TEST(ReportedResiduals, ASkippedStepSaysNothingOfThem) {
  ReportedResiduals residuals;
  residuals.Add(2, Report(0, 4));
  StepReport skipped = Report(0, 0);
  skipped.set_skipped(true);
  residuals.Add(2, skipped);
  EXPECT_NE(residuals.Take(2, {}), "");
}

}  // namespace
}  // namespace tug
