// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/files/crc32c.h"
#include "base/files/file.h"
#include "base/net/host_name.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr char kNamePrefix[] = "events.out.tfevents.";

// Rotated and offset, as TFRecord specifies: a CRC of data that contains CRCs is a weak one.
uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

template <typename Number>
void AppendLittleEndian(Number number, std::string& out) {
  for (size_t byte = 0; byte < sizeof(Number); ++byte) {
    out.push_back(static_cast<char>(number >> (8 * byte)));
  }
}

tensorboard::Event EventAt(absl::Time time, uint64_t step) {
  tensorboard::Event event;
  event.set_wall_time(absl::ToDoubleSeconds(time - absl::UnixEpoch()));
  event.set_step(static_cast<int64_t>(step));
  return event;
}

// Largest seconds in the names of the folder's event files; 0: no files.
int64_t NewestSeconds(const std::string& folder) {
  int64_t newest = 0;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view rest = name;
    int64_t seconds = 0;
    if (absl::ConsumePrefix(&rest, kNamePrefix) &&
        absl::SimpleAtoi(rest.substr(0, rest.find('.')), &seconds)) {
      newest = std::max(newest, seconds);
    }
  }
  return newest;
}

}  // namespace

std::string TfRecord(const std::string& data) {
  std::string record;
  AppendLittleEndian<uint64_t>(data.size(), record);
  AppendLittleEndian(Masked(Crc32c(record)), record);
  record += data;
  AppendLittleEndian(Masked(Crc32c(data)), record);
  return record;
}

void EventFiles::GoBack(uint64_t step, absl::Time now) {
  next_step_ = step + 1;
  if (file_ != nullptr && status_.ok()) status_ = AppendStart(next_step_, now);
}

void EventFiles::Write(uint64_t step, absl::Time now, const Scalars& scalars) {
  if (file_ == nullptr && status_.ok()) status_ = Open(now);
  if (!status_.ok()) return;
  tensorboard::Event event = EventAt(now, step);
  for (const auto& [tag, number] : scalars) {
    tensorboard::Summary::Value* const value = event.mutable_summary()->add_value();
    value->set_tag(tag);
    value->set_simple_value(static_cast<float>(number));
  }
  status_ = Append(event);
}

absl::Status EventFiles::Open(absl::Time now) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return FileError(error.value(), "make", folder_);
  // The clock may have been set back, or another host's clock may be ahead.
  const int64_t seconds = std::max(absl::ToUnixSeconds(now), NewestSeconds(folder_) + 1);
  path_ = absl::StrFormat("%s/%s%010d.%s.%d", folder_, kNamePrefix, seconds, HostName(), getpid());
  file_ = OpenStream(path_);
  if (file_ == nullptr) return FileError(errno, "write", path_);
  tensorboard::Event version = EventAt(now, 0);
  version.set_file_version("brain.Event:2");
  RETURN_IF_ERROR(Append(version));
  return AppendStart(next_step_, now);
}

absl::Status EventFiles::AppendStart(uint64_t step, absl::Time now) {
  tensorboard::Event start = EventAt(now, step);
  start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  return Append(start);
}

absl::Status EventFiles::Append(const tensorboard::Event& event) {
  const std::string record = TfRecord(event.SerializeAsString());
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size() ||
      std::fflush(file_.get()) != 0) {
    return FileError(errno, "write", path_);
  }
  return absl::OkStatus();
}

}  // namespace tug
