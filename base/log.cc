// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/standard_error.h"
#include "nlohmann/json.hpp"
#include "spdlog/formatter.h"
#include "spdlog/logger.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/sinks/rotating_file_sink.h"

namespace tug {
namespace {

// Separate the message from its fields, and a field's name from its value, inside spdlog; they
// never appear in the output.
constexpr char kFieldSeparator = '\x1f';
constexpr char kValueSeparator = '\x1e';

struct Form {
  LogFormat format = LogFormat::kText;
  std::string process;
};

struct Line {
  std::string time;
  std::string level;
  std::string message;
  std::vector<std::pair<std::string, std::string>> fields;
};

Line Parse(const spdlog::details::log_msg& from) {
  Line line;
  const auto since = from.time.time_since_epoch();
  const int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  line.time =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixMillis(ms), absl::UTCTimeZone());
  const spdlog::string_view_t level = spdlog::level::to_string_view(from.level);
  line.level.assign(level.data(), level.size());
  const absl::string_view payload(from.payload.data(), from.payload.size());
  const std::vector<std::string> parts = absl::StrSplit(payload, kFieldSeparator);
  line.message = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    line.fields.push_back(absl::StrSplit(parts[i], absl::MaxSplits(kValueSeparator, 1)));
  }
  return line;
}

// Quotes an empty value, or one with a space, a quote or "=".
std::string Quoted(const std::string& value) {
  const bool plain = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return c > ' ' && c != '"' && c != '=';
  });
  if (plain) return value;
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string TextOf(const Line& line, const Form& form) {
  std::string text = absl::StrCat(line.time, " ", line.level);
  if (!form.process.empty()) absl::StrAppend(&text, " ", form.process);
  absl::StrAppend(&text, ": ", line.message);
  for (const auto& [name, value] : line.fields)
    absl::StrAppend(&text, " ", name, "=", Quoted(value));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

std::string JsonOf(const Line& line, const Form& form) {
  nlohmann::ordered_json json = {{"time", line.time}, {"level", line.level}};
  if (!form.process.empty()) json["process"] = form.process;
  json["message"] = line.message;
  for (const auto& [name, value] : line.fields) json[name] = value;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

class Formatter final : public spdlog::formatter {
 public:
  explicit Formatter(Form form) : form_(std::move(form)) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const Line line = Parse(message);
    const std::string text =
        form_.format == LogFormat::kJson ? JsonOf(line, form_) : TextOf(line, form_);
    out.append(text.data(), text.data() + text.size());
    out.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<Formatter>(form_);
  }

 private:
  const Form form_;
};

class Sink final : public spdlog::sinks::base_sink<std::mutex> {
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    WriteStandardError(absl::string_view(line.data(), line.size()));
  }
  void flush_() override {}
};

// One per process, since stderr is; thread-safe.
spdlog::logger& Logger() {
  static spdlog::logger& logger = *[] {
    auto made = std::make_unique<spdlog::logger>("tug", std::make_shared<Sink>());
    made->set_formatter(std::make_unique<Formatter>(Form()));
    return made.release();
  }();
  return logger;
}

class LogForm {
 public:
  template <typename Change>
  void Set(Change change) {
    absl::MutexLock lock(&mutex_);
    change(form_);
    Logger().set_formatter(std::make_unique<Formatter>(form_));
    if (spdlog::logger* const file = this->file()) {
      file->set_formatter(std::make_unique<Formatter>(form_));
    }
  }

  // Null: no file.
  spdlog::logger* file() const { return file_.load(std::memory_order_acquire); }
  void SetFile(std::shared_ptr<spdlog::sinks::sink> sink) {
    absl::MutexLock lock(&mutex_);
    auto made = std::make_unique<spdlog::logger>("tug", std::move(sink));
    made->set_formatter(std::make_unique<Formatter>(form_));
    made->set_error_handler([](const std::string&) {});
    made->flush_on(spdlog::level::info);
    file_.store(made.get(), std::memory_order_release);
    files_.push_back(std::move(made));
  }

 private:
  absl::Mutex mutex_;
  Form form_ ABSL_GUARDED_BY(mutex_);
  std::atomic<spdlog::logger*> file_ = nullptr;
  // Also earlier ones: a thread may still write to them.
  std::vector<std::unique_ptr<spdlog::logger>> files_ ABSL_GUARDED_BY(mutex_);
};

LogForm& ProcessForm() {
  static LogForm& form = *new LogForm;
  return form;
}

void Log(spdlog::level::level_enum level, std::string_view message, LogFields fields) {
  std::string payload(message);
  for (const auto& [name, value] : fields) {
    payload += kFieldSeparator;
    payload += name;
    payload += kValueSeparator;
    payload += value;
  }
  const spdlog::string_view_t text(payload.data(), payload.size());
  Logger().log(level, text);
  if (spdlog::logger* const file = ProcessForm().file()) file->log(level, text);
}

}  // namespace

std::optional<LogFormat> ParseLogFormat(std::string_view text) {
  if (text == "text") return LogFormat::kText;
  if (text == "json") return LogFormat::kJson;
  return std::nullopt;
}

void SetLogFormat(LogFormat format) {
  ProcessForm().Set([&](Form& form) { form.format = format; });
}

void SetLogProcess(const std::string& name) {
  ProcessForm().Set([&](Form& form) { form.process = name; });
}

absl::Status SetLogFile(const std::string& path) {
  try {
    ProcessForm().SetFile(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
        path, kLogFileBytes, /*max_files=*/1));
  } catch (const spdlog::spdlog_ex& error) {
    return absl::InternalError(absl::StrCat("cannot write the log ", path, ": ", error.what(),
                                            "; check the permissions of its folder"));
  }
  return absl::OkStatus();
}

void LogInFile(LogLevel level, std::string_view message) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::info, spdlog::level::warn,
                                                   spdlog::level::err};
  if (spdlog::logger* const file = ProcessForm().file()) {
    file->log(kLevels[static_cast<size_t>(level)],
              spdlog::string_view_t(message.data(), message.size()));
  }
}

void LogInfo(std::string_view message, LogFields fields) {
  Log(spdlog::level::info, message, fields);
}
void LogWarning(std::string_view message, LogFields fields) {
  Log(spdlog::level::warn, message, fields);
}
void LogError(std::string_view message, LogFields fields) {
  Log(spdlog::level::err, message, fields);
}

}  // namespace tug
