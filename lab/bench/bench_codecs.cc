// SPDX-License-Identifier: Apache-2.0
// tug bench codecs: gradient codecs, compared with memcpy of the same buffer.
//
// 1. A gradient of the given size is cut into segments of 262,144 elements, the default of a job;
// they are encoded one after another, decoded and added, encoded with error feedback.
// 2. Warm up: everything once, so that residuals are no longer zero.
// 3. `runs` times, each operation of each codec in turn, memcpy just before each, so that drift of
// the machine affects both. Times are the thread's processor time.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/byte_size.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compression/codecs/codecs.h"
#include "config/field_path.h"
#include "config/job_config.h"
#include "config/push_plan.h"
#include "lab/bench/bench_command.h"
#include "lab/bench/bench_sizes.h"
#include "limits/bench_stats.h"
#include "limits/huge_array.h"
#include "limits/stream_loops.h"

namespace tug {
namespace {

constexpr size_t kSegment = 262144;
constexpr uint64_t kMinBytes = uint64_t{4} << 10;
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
// Passes over a buffer add up to this many bytes.
constexpr size_t kTimedBytes = size_t{16} << 20;

struct BenchCodecs {
  std::vector<std::string> bytes = {"4M", "16M"};
  std::vector<std::string> codecs;  // empty: all
  double density = 0.01;
  int runs = 9;
};

std::unique_ptr<const SegmentCodec> MakeFor(const CodecRow& row, double density) {
  JobConfig job;
  const std::string path = absl::StrCat("comm.push_codec.", row.name);
  TUG_CHECK_OK(SetFieldFromText(job, path, "{}"));
  if (row.sparse) SetFieldFromNumber(job, absl::StrCat(path, ".density"), density);
  FillDefaults(job, 1);
  PushCodecConfig& config = *job.mutable_comm()->mutable_push_codec();
  if (config.has_dgc()) config.mutable_dgc()->set_density_warmup_steps(0);
  return MakeCodec(config);
}

// A gradient and its encodings.
class CodecRun {
 public:
  CodecRun(const CodecRow& row, double density, std::span<const float> elements)
      : row_(row),
        codec_(MakeFor(row, density)),
        elements_(elements),
        slot_bytes_(codec_->MaxEncodedBytes(std::min(kSegment, elements.size()))),
        encoded_(Segments() * slot_bytes_),
        lengths_(Segments()),
        sum_(elements.size()),
        residual_floats_(kSegment + codec_->StateFloats(kSegment)),
        residual_(IsUnbiased(row.id) ? 0 : Segments() * residual_floats_) {}

  const CodecRow& row() const { return row_; }

  void Encode() {
    for (size_t i = 0; i < Segments(); ++i) {
      lengths_[i] = codec_->Encode(Key(i), SegmentOf(elements_, i), Slot(i), scratch_);
      TUG_CHECK_GE(lengths_[i], 1u);
    }
    ++clock_;
  }
  void EncodeWithResidual() {
    for (size_t i = 0; i < Segments(); ++i) {
      const std::span<const float> elements = SegmentOf(elements_, i);
      const std::span<float> residual = residual_.span().subspan(
          i * residual_floats_, elements.size() + codec_->StateFloats(elements.size()));
      lengths_[i] = codec_->EncodeWithResidual(Key(i), elements, residual, Slot(i), scratch_);
      TUG_CHECK_GE(lengths_[i], 1u);
    }
    ++clock_;
  }
  // Decodes the last encoding and adds it to the sum.
  void DecodeAndAdd() {
    for (size_t i = 0; i < Segments(); ++i) {
      TUG_CHECK(DecoderOf(row_.id)->Decode(Slot(i).first(lengths_[i]), DecodeTo::kAdd,
                                           SegmentOf(sum_.span(), i)));
    }
  }
  size_t EncodedBytes() const {
    size_t bytes = 0;
    for (const size_t length : lengths_) bytes += length;
    return bytes;
  }

 private:
  size_t Segments() const { return (elements_.size() + kSegment - 1) / kSegment; }
  template <typename T>
  static std::span<T> SegmentOf(std::span<T> all, size_t i) {
    return all.subspan(i * kSegment, std::min(kSegment, all.size() - i * kSegment));
  }
  std::span<std::byte> Slot(size_t i) const {
    return encoded_.span().subspan(i * slot_bytes_, slot_bytes_);
  }
  CodecKey Key(size_t segment) const {
    return {.segment = static_cast<uint32_t>(segment), .clock = clock_};
  }

  const CodecRow& row_;
  const std::unique_ptr<const SegmentCodec> codec_;
  const std::span<const float> elements_;
  const size_t slot_bytes_;
  HugeArray<std::byte> encoded_;
  std::vector<size_t> lengths_;
  HugeArray<float> sum_;
  const size_t residual_floats_;  // per segment, including the codec's additional state
  HugeArray<float> residual_;
  CodecScratch scratch_;
  uint64_t clock_ = 0;
};

// By run.
struct Rates {
  std::vector<double> gigabytes_per_second;
  std::vector<double> of_memcpy;  // divided by the rate of memcpy just before
  std::vector<double> seconds;
};

struct CodecRates {
  Rates encode, add, feedback;
};

std::string Text(const Rates& rates) {
  if (rates.seconds.empty()) return absl::StrFormat("%8s  %-20s", "-", "-");
  return absl::StrFormat("%8.2f  %-20s", SpreadOf(rates.gigabytes_per_second).median,
                         FormatSpread(SpreadOf(rates.of_memcpy), 2));
}

// Additional time of encoding with error feedback, in per cent.
std::string FeedbackCost(const CodecRates& rates) {
  if (rates.feedback.seconds.empty()) return "-";
  std::vector<double> more;
  for (size_t i = 0; i < rates.feedback.seconds.size(); ++i) {
    more.push_back(100 * (rates.feedback.seconds[i] / rates.encode.seconds[i] - 1));
  }
  return absl::StrFormat("%+.0f%%", SpreadOf(more).median);
}

void MeasureSize(const BenchCodecs& command, std::span<const CodecRow* const> rows, uint64_t bytes,
                 int core) {
  const size_t n = bytes / sizeof(float);
  HugeArray<float> gradient(n);
  HugeArray<float> copy(n);
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0.0f, 0.01f);
  for (float& x : gradient.span()) x = normal(random);

  const size_t passes = std::max<size_t>(1, kTimedBytes / bytes);
  // Run once first, so that the caches contain the operation's own data.
  const auto seconds_of = [&](const std::function<void()>& work) {
    work();
    return CpuSecondsOf([&] {
      for (size_t pass = 0; pass < passes; ++pass) work();
    });
  };
  const double gigabytes = static_cast<double>(bytes * passes) * 1e-9;
  std::vector<double> memcpy_rates;
  bool measured = false;
  const auto measure = [&](const std::function<void()>& work, Rates& rates) {
    const double copying = seconds_of([&] { std::memcpy(copy.data(), gradient.data(), bytes); });
    const double seconds = seconds_of(work);
    if (measured) memcpy_rates.push_back(gigabytes / copying);
    rates.seconds.push_back(seconds);
    rates.gigabytes_per_second.push_back(gigabytes / seconds);
    rates.of_memcpy.push_back(copying / seconds);
  };

  std::vector<std::unique_ptr<CodecRun>> runs;
  for (const CodecRow* row : rows) {
    runs.push_back(std::make_unique<CodecRun>(*row, command.density, gradient.span()));
  }
  std::vector<CodecRates> rates(runs.size());
  std::vector<double> percent(runs.size());
  for (int run = -1; run < command.runs; ++run) {
    measured = run >= 0;
    for (size_t i = 0; i < runs.size(); ++i) {
      CodecRun& codec = *runs[i];
      CodecRates warm_up;
      CodecRates& to = measured ? rates[i] : warm_up;
      measure([&] { codec.Encode(); }, to.encode);
      measure([&] { codec.DecodeAndAdd(); }, to.add);
      percent[i] = 100.0 * static_cast<double>(codec.EncodedBytes()) / static_cast<double>(bytes);
      if (!IsUnbiased(codec.row().id)) measure([&] { codec.EncodeWithResidual(); }, to.feedback);
    }
  }

  std::printf("%s of FP32, core %d, %s; medians of %d runs (range); memcpy %s GB/s\n\n",
              ByteSizeText(bytes).c_str(), core, InstructionSet().c_str(), command.runs,
              FormatSpread(SpreadOf(memcpy_rates), 2).c_str());
  std::printf("%-12s %8s  %-20s %8s  %-20s %8s  %-20s %6s %9s\n", "", "encode", "/ memcpy", "add",
              "/ memcpy", "with EF", "/ memcpy", "EF", "% of FP32");
  for (size_t i = 0; i < runs.size(); ++i) {
    std::printf("%-12s %s %s %s %6s %9.2f\n", runs[i]->row().name, Text(rates[i].encode).c_str(),
                Text(rates[i].add).c_str(), Text(rates[i].feedback).c_str(),
                FeedbackCost(rates[i]).c_str(), percent[i]);
  }
  std::printf("\n");
}

absl::Status Bench(const BenchCodecs& command) {
  ASSIGN_OR_RETURN(const int core, PinToThisCore());
  std::vector<const CodecRow*> rows;
  for (const CodecRow& row : Codecs()) {
    const auto& names = command.codecs;
    if (names.empty() || std::find(names.begin(), names.end(), row.name) != names.end()) {
      rows.push_back(&row);
    }
  }
  for (const std::string& text : command.bytes) {
    ASSIGN_OR_RETURN(const uint64_t bytes, ParseByteSize(text));
    MeasureSize(command, rows, bytes, core);
  }
  std::printf(
      "GB/s: FP32 elements per second of processor time, on one core. add: decode and add to an "
      "array.\n"
      "with EF: encode with error feedback; EF: its additional time.\n");
  return absl::OkStatus();
}

std::string CheckCodec(const std::string& name) {
  std::string names;
  for (const CodecRow& row : Codecs()) {
    if (name == row.name) return "";
    absl::StrAppend(&names, names.empty() ? "" : ", ", row.name);
  }
  return absl::StrCat("unknown codec ", name, ": use one of ", names);
}

std::string CheckBytes(const std::string& text) {
  const auto bytes = ParseByteSize(text);
  if (!bytes.ok()) return std::string(bytes.status().message());
  if (*bytes >= kMinBytes && *bytes <= kMaxBytes && *bytes % sizeof(float) == 0) return "";
  return absl::StrCat(text, " is not a valid size: write a multiple of 4 from 4K to 1G");
}

std::string CheckDensity(const std::string& text) {
  double density = 0;
  if (CLI::detail::lexical_cast(text, density) && density > 0 && density <= 0.5) return "";
  return absl::StrCat(text, " is out of range: write a number above 0, up to 0.5");
}

}  // namespace

void AddBenchCodecs(CLI::App& bench, Command& chosen) {
  auto arguments = std::make_shared<BenchCodecs>();
  CLI::App* command = bench.add_subcommand(
      "codecs", "Gradient codecs on one core: encode, decode and add, error feedback");
  command->add_option("--bytes", arguments->bytes, "Gradient sizes in FP32, separated by commas")
      ->delimiter(',')
      ->check(CheckBytes)
      ->capture_default_str();
  command
      ->add_option("--codec", arguments->codecs,
                   "Codec to measure, may be given several times; default: all")
      ->check(CheckCodec)
      ->allow_extra_args(false);
  command
      ->add_option("--density", arguments->density,
                   "Share of the elements that sparse codecs send, above 0, up to 0.5")
      ->check(CheckDensity)
      ->capture_default_str();
  command->add_option("--runs", arguments->runs, "Repetitions; the table shows medians")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->footer(
      "Examples:\n  tug bench codecs\n  tug bench codecs --codec top_k --codec random_k --density "
      "0.001");
  command->callback([arguments, &chosen] { chosen = [arguments] { return Bench(*arguments); }; });
}

}  // namespace tug
