// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/scheduling_section.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/byte_size.h"
#include "base/charts/chart.h"
#include "base/charts/markdown_table.h"
#include "base/median.h"
#include "base/xml_text.h"
#include "config/field_path.h"
#include "lab/experiment/charts/report_page.h"
#include "lab/experiment/charts/timeline_svg.h"
#include "lab/experiment/measures/figure_text.h"

namespace tug {
namespace {

constexpr char kHeading[] = "Order of sending";
constexpr double kNoDifference = 0.005;   // of a speed-up from 1: does not count
constexpr double kFewMilliseconds = 100;  // below, one decimal is shown

constexpr const char* kOrderFields[] = {"comm.scheduler="};

bool IsOfOrder(const PlannedAxis& axis) { return SetsAny(axis, kOrderFields); }

CommConfig::Scheduler SchedulerOf(const PlannedCase& one) { return one.config.comm().scheduler(); }

std::string SchedulingTitleOf(const ExperimentPlan& plan, const PlannedCase& one) {
  const std::string others =
      NamedValues(plan, one, [&](size_t axis) { return !IsOfOrder(plan.axes[axis]); });
  return others.empty() ? "all cases" : others;
}

std::string OrderOf(const ExperimentPlan& plan, const PlannedCase& one) {
  const std::string labels = LabelsSetting(plan, one, kOrderFields);
  if (!labels.empty()) return labels;
  return EnumValueText(*CommConfig::Scheduler_descriptor()->FindValueByNumber(SchedulerOf(one)));
}

// Null: no section needs it, or the run has not ended.
const CaseCourse* CourseOf(const ExperimentResults& results, size_t number) {
  if (number >= results.courses.size() || !results.courses[number].figures.has_value()) {
    return nullptr;
  }
  return &results.courses[number];
}

std::string LabelOf(const std::string& order, const PlannedCase& one, const CaseCourse* course) {
  if (SchedulerOf(one) != CommConfig::AUTO || course == nullptr) return order;
  const std::optional<SettledSchedule>& settled = course->scheduled.settled;
  if (!settled.has_value()) return absl::StrCat(order, " (not settled)");
  return absl::StrFormat("%s (%s, credit %s)", order, ByteSizeText(settled->partition_bytes),
                         ByteSizeText(settled->credit_bytes));
}

std::optional<OrderResult> ResultOf(const ExperimentResults& results, size_t number) {
  const PlannedCase& one = results.plan.cases[number];
  const auto milliseconds = results.SpreadOf(one, "mean_step_time");
  if (!milliseconds.has_value() || milliseconds->median <= 0) return std::nullopt;
  const CaseCourse* course = CourseOf(results, number);
  OrderResult result{
      .number = number, .order = OrderOf(results.plan, one), .milliseconds = *milliseconds};
  result.label = LabelOf(result.order, one, course);
  const auto median = [&](const char* measure) {
    const auto spread = results.SpreadOf(one, measure);
    return spread.has_value() ? spread->median : 0;
  };
  result.exposed_milliseconds = median("exposed_time");
  result.overlap_percent = median("overlap");
  if (course == nullptr) return result;
  const double seconds = milliseconds->median * 1e-3;
  const ScheduledStep& scheduled = course->scheduled;
  if (scheduled.bound.has_value()) result.over_bound = seconds / scheduled.bound->seconds;
  if (scheduled.predicted_seconds.has_value()) {
    result.deviation = *scheduled.predicted_seconds / seconds - 1;
  }
  return result;
}

// Sets the speed-ups of all orders except FIFO.
void AddSpeedUps(const ExperimentResults& results, OrderGroup& group) {
  const std::vector<PlannedCase>& cases = results.plan.cases;
  const auto is_fifo = [&](const OrderResult& result) {
    return SchedulerOf(cases[result.number]) == CommConfig::FIFO;
  };
  const auto fifo = std::find_if(group.orders.begin(), group.orders.end(), is_fifo);
  if (fifo == group.orders.end()) return;
  for (OrderResult& result : group.orders) {
    if (is_fifo(result)) continue;
    const auto compared =
        results.CompareWith(fifo->number, result.number, *FindMeasure("mean_step_time"));
    if (compared.has_value()) result.speed_up = compared->spread;
  }
}

std::string Milliseconds(double value) {
  return NumberText(value, value < kFewMilliseconds ? 1 : 0);
}

std::optional<double> BoundMilliseconds(const ExperimentResults& results, const OrderGroup& group) {
  if (!group.bound_of.has_value()) return std::nullopt;
  return results.courses[*group.bound_of].scheduled.bound->seconds * 1e3;
}

// "0.91 to 1.37", or one number if both are equal. REQUIRES: `values` is not empty.
std::string RangeText(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const std::string from = NumberText(*least, 2), to = NumberText(*most, 2);
  return from == to ? from : absl::StrCat(from, " to ", to);
}

// One order over all groups, compared with FIFO and with the lower bound.
std::string OrderFinding(const std::string& order, const std::vector<OrderGroup>& groups) {
  std::vector<double> speed_ups, over_bounds;
  size_t faster = 0, slower = 0;
  bool repeated = false;
  double most = 0;
  std::string where;
  for (const OrderGroup& group : groups) {
    for (const OrderResult& result : group.orders) {
      if (result.order != order) continue;
      if (result.over_bound.has_value()) over_bounds.push_back(*result.over_bound);
      if (!result.speed_up.has_value()) continue;
      speed_ups.push_back(result.speed_up->median);
      repeated = repeated || result.speed_up->count > 1;
      faster += result.speed_up->low > 1 + kNoDifference;
      slower += result.speed_up->high < 1 - kNoDifference;
      if (speed_ups.back() <= most) continue;
      most = speed_ups.back();
      where = group.title;
    }
  }
  std::vector<std::string> parts;
  if (!speed_ups.empty()) {
    parts.push_back(absl::StrCat(RangeText(speed_ups), " times as fast as FIFO (WFBP)"));
  }
  if (speed_ups.size() > 1) absl::StrAppend(&parts.back(), ", highest with ", where);
  if (speed_ups.size() > 1 && repeated) {
    parts.push_back(
        absl::StrFormat("the whole interval is above %.3f in %d of %d cases, below %.3f in %d",
                        1 + kNoDifference, faster, speed_ups.size(), 1 - kNoDifference, slower));
  }
  if (!over_bounds.empty()) parts.push_back(RangeText(over_bounds) + " times the lower bound");
  return parts.empty() ? "" : absl::StrCat(order, ": ", absl::StrJoin(parts, "; "));
}

std::string PredictionFinding(const std::vector<OrderGroup>& groups) {
  std::vector<double> off;
  double most = -1;
  std::string where;
  for (const OrderGroup& group : groups) {
    for (const OrderResult& result : group.orders) {
      if (!result.deviation.has_value()) continue;
      off.push_back(std::abs(*result.deviation));
      if (off.back() <= most) continue;
      most = off.back();
      where = absl::StrCat(result.order, ", ", group.title);
    }
  }
  if (off.empty()) return "";
  const size_t count = off.size();
  return absl::StrFormat(
      "Simulated step times differ from measured ones by %s in the median of %d cases, by %s at "
      "most (%s)",
      PercentText(Median(std::move(off))), count, PercentText(most), where);
}

// Replaces missing bounds and predictions.
std::string NoBoundText() {
  return "There is no lower bound and no prediction: both need a testbed with one host per node "
         "(place.testbed), no comm.impair, and BSP with push and pull.";
}

bool AnyBound(const std::vector<OrderGroup>& groups) {
  return std::any_of(groups.begin(), groups.end(),
                     [](const OrderGroup& group) { return group.bound_of.has_value(); });
}

std::string BoundLegend(const std::vector<OrderGroup>& groups) {
  return AnyBound(groups) ? absl::StrCat(" ", BoundSwatch(), "the lower bound.") : "";
}

// Meaning of the columns that the table has.
std::string MeaningText(const ExperimentResults& results, const std::vector<OrderGroup>& groups) {
  std::string text = absl::StrCat(
      "Step times are means over the workers, median over a run; figures are ",
      SpreadMeaning(results.plan.repeats),
      ". Exposed time: per step, waiting for weights. Overlap: share of the time of pushes and "
      "pulls hidden by computing.");
  const bool any_speed_up = std::any_of(groups.begin(), groups.end(), [](const OrderGroup& group) {
    return std::any_of(group.orders.begin(), group.orders.end(),
                       [](const OrderResult& order) { return order.speed_up.has_value(); });
  });
  if (any_speed_up) {
    text +=
        " Speed-up: step time with FIFO (WFBP) divided by that with this order, repeat by repeat.";
  }
  if (AnyBound(groups)) {
    text +=
        " Bound: no schedule is faster. Simulated: prediction of prediction/scheduling.h "
        "for "
        "the same job.";
  }
  return text;
}

std::string LoadText(const ExperimentResults& results, const OrderGroup& group) {
  for (const OrderResult& order : group.orders) {
    const CaseCourse* course = CourseOf(results, order.number);
    if (course == nullptr) continue;
    const LinkLoad load = LinkLoadOf(course->config, results.plan.cases[order.number].place);
    const CommConfig& comm = course->config.comm();
    std::string text = absl::StrFormat(
        "%d blocks, %.2f MB (sizes x %.4g), %s ms of computing per step (times x %.4g)",
        BlockNamesOf(course->config).size(), load.model_bytes * 1e-6,
        course->config.replay().size_scale(), Milliseconds(load.compute_seconds * 1e3),
        course->config.replay().time_scale());
    if (load.transfer_seconds.has_value() && load.compute_seconds > 0) {
      absl::StrAppendFormat(
          &text, ", %s ms for a step's bytes one way over the busiest link: %.3g times as long",
          Milliseconds(*load.transfer_seconds * 1e3),
          *load.transfer_seconds / load.compute_seconds);
    }
    return absl::StrFormat(
        "%s. Sizes with %s: segments of %d elements, partitions of %s, credit of %s, for pulls %s.",
        text, order.order, comm.segment_elements(), ByteSizeText(comm.partition_bytes()),
        ByteSizeText(comm.credit_bytes()), ByteSizeText(comm.pull_credit_bytes()));
  }
  return "";
}

std::string GroupHtml(const ExperimentResults& results, const OrderGroup& group) {
  std::vector<DrawnTimeline> drawn;
  std::vector<std::string> blocks;
  std::optional<double> bound_seconds;
  for (const OrderResult& order : group.orders) {
    const CaseCourse* course = CourseOf(results, order.number);
    if (course == nullptr) continue;
    const Timeline& timeline = course->scheduled.timeline;
    if (blocks.empty()) blocks = BlockNamesOf(course->config);
    drawn.push_back(
        {order.label, &timeline,
         absl::StrFormat("this step %s ms, median %s ms", Milliseconds(timeline.seconds * 1e3),
                         Milliseconds(order.milliseconds.median))});
  }
  if (group.bound_of.has_value()) {
    const WorkedOutStep& bound = *results.courses[*group.bound_of].scheduled.bound;
    bound_seconds = bound.seconds;
    drawn.push_back({"ideal", &bound.timeline,
                     absl::StrFormat("the fluid schedule on the busiest link, %s ms: no schedule "
                                     "is faster",
                                     Milliseconds(bound.seconds * 1e3))});
  }
  if (drawn.empty()) return "";
  return absl::StrCat("<h3>", XmlEscaped(group.title), "</h3>\n<p class=\"note\">",
                      XmlEscaped(LoadText(results, group)), "</p>\n<div class=\"card\">\n",
                      TimelinesSvg(drawn, blocks, bound_seconds), "</div>\n");
}

// Explains the colours and rows of the timelines.
std::string Legend(const std::vector<OrderGroup>& groups) {
  constexpr size_t kShades = 6;
  std::string ramp;
  for (size_t i = 0; i < kShades; ++i) {
    absl::StrAppend(&ramp, i == 0 ? "" : ", ", BlockColor(i, kShades, true));
  }
  return absl::StrCat(
      "<h3>Timelines</h3>\n"
      "<p>One worker in the first repeat, from the beginning of a backward pass to the end of the "
      "forward pass that uses the updated weights. The colour is the block: ",
      Swatch(absl::StrCat("width:96px;background:linear-gradient(to right, ", ramp, ")")),
      "from the first, which is needed first, to the last. Light is forward, dark is backward. ",
      WaitSwatch(),
      "waiting for weights: exposed communication. Push and pull are drawn by arrival: a partition "
      "begins when the previous one has arrived.",
      BoundLegend(groups), "</p>\n");
}

// Bars with a separate axis for each group of cases.
std::string BarsSvg(const ExperimentResults& results, const std::vector<OrderGroup>& groups) {
  std::vector<Chart> charts;
  for (const OrderGroup& group : groups) {
    const std::optional<double> bound = BoundMilliseconds(results, group);
    Chart chart = RowsChart(group.title, MeasureHeading("mean_step_time"));
    for (const OrderResult& order : group.orders) {
      const double step = order.milliseconds.median;
      const double waits = std::clamp(order.exposed_milliseconds, 0.0, step);
      std::string label = Milliseconds(step) + " ms";
      if (order.over_bound) absl::StrAppendFormat(&label, ", %.2f x bound", *order.over_bound);
      if (order.speed_up) absl::StrAppendFormat(&label, ", speed-up %.2f", order.speed_up->median);
      Bar bar{.name = order.order,
              .parts = {{step - waits, "var(--busy)", absl::StrCat(order.order, ": ", label)},
                        {waits, "", absl::StrCat(order.order, ": waits for weights")}},
              .label = label};
      if (bound.has_value()) bar.marks = {{*bound, "bound"}};
      AddBar(chart, bar);
    }
    charts.push_back(std::move(chart));
  }
  return ChartsSvg(charts, {.left = 170, .right = 250});
}

}  // namespace

std::vector<OrderGroup> OrderGroupsOf(const ExperimentResults& results) {
  std::vector<OrderGroup> groups;
  for (size_t number = 0; number < results.plan.cases.size(); ++number) {
    std::optional<OrderResult> result = ResultOf(results, number);
    if (!result.has_value()) continue;
    const std::string title = SchedulingTitleOf(results.plan, results.plan.cases[number]);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const OrderGroup& other) { return other.title == title; });
    if (group == groups.end()) group = groups.insert(groups.end(), OrderGroup{.title = title});
    if (result->over_bound.has_value() && !group->bound_of.has_value()) group->bound_of = number;
    group->orders.push_back(*std::move(result));
  }
  for (OrderGroup& group : groups) AddSpeedUps(results, group);
  return groups;
}

std::vector<std::string> SchedulingFindings(const std::vector<OrderGroup>& groups) {
  std::vector<std::string> orders, findings;
  for (const OrderGroup& group : groups) {
    for (const OrderResult& result : group.orders) {
      if (std::find(orders.begin(), orders.end(), result.order) == orders.end()) {
        orders.push_back(result.order);
      }
    }
  }
  for (const std::string& order : orders) findings.push_back(OrderFinding(order, groups));
  findings.push_back(PredictionFinding(groups));
  std::erase(findings, "");
  if (!groups.empty() && !AnyBound(groups)) findings.push_back(NoBoundText());
  return findings;
}

std::vector<std::vector<std::string>> SchedulingTable(const ExperimentResults& results,
                                                      const std::vector<OrderGroup>& groups) {
  std::vector<std::vector<std::string>> table = {
      {"case", "order", MeasureHeading("mean_step_time"), MeasureHeading("exposed_time"),
       MeasureHeading("overlap"), "speed-up (ratio)", "lower bound (ms)", "step / bound (ratio)",
       "simulated step (ms)", "deviation (%)"}};
  for (const OrderGroup& group : groups) {
    const std::optional<double> bound = BoundMilliseconds(results, group);
    for (const OrderResult& order : group.orders) {
      const double milliseconds = order.milliseconds.median;
      const int digits = milliseconds < kFewMilliseconds ? 1 : 0;
      table.push_back(
          {group.title, order.label, SpreadText(order.milliseconds, digits),
           NumberText(order.exposed_milliseconds, digits), NumberText(order.overlap_percent, 0),
           SpreadText(order.speed_up, 2), NumberText(bound, digits),
           NumberText(order.over_bound, 2),
           order.deviation ? NumberText((1 + *order.deviation) * milliseconds, digits) : kNoFigure,
           order.deviation ? absl::StrFormat("%+.1f", *order.deviation * 100) : kNoFigure});
    }
  }
  return WithoutEmptyColumns(table);
}

std::string SchedulingHtml(const ExperimentResults& results) {
  const std::vector<OrderGroup> groups = OrderGroupsOf(results);
  if (groups.empty()) return "";
  const auto table = SchedulingTable(results, groups);
  std::string timelines;
  for (const OrderGroup& group : groups) timelines += GroupHtml(results, group);
  return absl::StrCat(
      "<h2>", kHeading, "</h2>\n",
      FigureHtml("Step times",
                 absl::StrCat("Step times, medians over the repeats; ", WaitSwatch(),
                              "of that, exposed communication.", BoundLegend(groups)),
                 BarsSvg(results, groups)),
      ListHtml(SchedulingFindings(groups)), "<p>", XmlEscaped(MeaningText(results, groups)),
      "</p>\n", TableHtml(table, GroupsBegin(table)), timelines.empty() ? "" : Legend(groups),
      timelines);
}

std::string SchedulingMarkdown(const ExperimentResults& results) {
  const std::vector<OrderGroup> groups = OrderGroupsOf(results);
  if (groups.empty()) return "";
  std::string text = absl::StrCat("## ", kHeading, "\n\n");
  for (const std::string& finding : SchedulingFindings(groups)) {
    absl::StrAppend(&text, "- ", finding, "\n");
  }
  return absl::StrCat(text, "\n", MeaningText(results, groups), "\n\n",
                      MarkdownTable(SchedulingTable(results, groups)), "\n");
}

}  // namespace tug
