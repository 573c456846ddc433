// SPDX-License-Identifier: Apache-2.0
#include "security/key_file.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <cerrno>
#include <cstdio>
#include <span>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr char kFirstLine[] = "tug keys 1";
constexpr char kAnyVersion[] = "tug keys ";
constexpr size_t kLimitBytes = 16 << 10;
constexpr size_t kCurveCharacters = 40;
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

std::string Sha256(absl::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<char*>(digest), sizeof(digest)));
}

// The last line, without newline: checksum of `body`.
std::string SumOf(absl::string_view body) { return absl::StrCat("sha256 ", Sha256(body)); }

// All lines except the last.
std::string Body(const JobKeys& keys) {
  std::string text =
      absl::StrCat(kFirstLine, "\nmode ", ModeName(keys.mode), "\ntoken ", keys.token, "\n");
  if (keys.mode == SecurityConfig::CURVE) {
    absl::StrAppend(&text, "curve-public ", keys.curve.public_key, "\ncurve-secret ",
                    keys.curve.secret_key, "\ntls-certificate ",
                    absl::Base64Escape(keys.tls.certificate), "\ntls-key ",
                    absl::Base64Escape(keys.tls.private_key), "\n");
  }
  return text;
}

bool IsToken(const std::string& text) {
  return text.size() == kTokenDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Whether both are keys and belong together.
bool IsCurvePair(const CurveKeyPair& pair) {
  if (pair.public_key.size() != kCurveCharacters || pair.secret_key.size() != kCurveCharacters) {
    return false;
  }
  char public_key[kCurveCharacters + 1];
  return zmq_curve_public(public_key, pair.secret_key.c_str()) == 0 &&
         pair.public_key == public_key;
}

// The text after `name` and a space in `line`; empty if the line starts differently.
std::string Value(absl::string_view line, absl::string_view name) {
  if (!absl::ConsumePrefix(&line, name) || !absl::ConsumePrefix(&line, " ")) return "";
  return std::string(line);
}

SecurityConfig::Mode ModeOf(const std::string& name) {
  if (name == "token") return SecurityConfig::TOKEN;
  return name == "curve" ? SecurityConfig::CURVE : SecurityConfig::MODE_DEFAULT;
}

// Parses the lines before the checksum into `keys`. False: they are invalid.
bool TakeKeys(const std::vector<std::string>& lines, JobKeys& keys) {
  if (lines.size() < 3) return false;
  keys.mode = ModeOf(Value(lines[1], "mode"));
  keys.token = Value(lines[2], "token");
  if (!IsToken(keys.token)) return false;
  if (keys.mode == SecurityConfig::TOKEN) return lines.size() == 3;
  if (keys.mode != SecurityConfig::CURVE || lines.size() != 7) return false;
  keys.curve = {Value(lines[3], "curve-public"), Value(lines[4], "curve-secret")};
  return absl::Base64Unescape(Value(lines[5], "tls-certificate"), &keys.tls.certificate) &&
         absl::Base64Unescape(Value(lines[6], "tls-key"), &keys.tls.private_key) &&
         IsCurvePair(keys.curve) && IsTlsIdentityOf(keys.tls, TlsName(keys));
}

// Ends each line, the last one included, with a newline alone.
std::string WithPlainEnds(std::string text) {
  if (!absl::EndsWith(text, "\n")) text.push_back('\n');
  return absl::StrReplaceAll(text, {{"\r\n", "\n"}});
}

absl::Status NotAKeyFile(const std::string& source, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat(source, " is not a key file: ", why, "; make one with: tug keys FILE"));
}

absl::Status WriteNewFile(const std::string& path, const std::string& text) {
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid() && errno == EEXIST) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, " exists, and keys are never overwritten: pass another file"));
  }
  if (!file.valid()) return FileError(errno, "make", path);
  absl::Status written = WriteAll(file.get(), path, std::as_bytes(std::span(text)));
  if (written.ok() && fsync(file.get()) != 0) written = FileError(errno, "write", path);
  if (!written.ok()) unlink(path.c_str());
  return written;
}

}  // namespace

std::string KeyFileText(const JobKeys& keys) {
  const std::string body = Body(keys);
  return absl::StrCat(body, SumOf(body), "\n");
}

absl::StatusOr<JobKeys> ParseKeyFile(const std::string& file_text, const std::string& source) {
  if (file_text.empty()) return NotAKeyFile(source, "it is empty");
  const std::string text = WithPlainEnds(file_text);
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (!absl::StartsWith(lines[0], kAnyVersion)) {
    return NotAKeyFile(source, absl::StrCat("its first line is not '", kFirstLine, "'"));
  }
  if (lines[0] != kFirstLine) {
    return NotAKeyFile(source,
                       absl::StrCat("it has another version, this tug reads '", kFirstLine, "'"));
  }
  const std::string damaged = "it is damaged, or was changed";
  if (lines.size() < 3 || !lines.back().empty()) return NotAKeyFile(source, damaged);
  lines.pop_back();
  const std::string sum = lines.back();
  const size_t body_bytes = text.size() - sum.size() - 1;
  if (sum != SumOf(text.substr(0, body_bytes))) return NotAKeyFile(source, damaged);
  lines.pop_back();
  JobKeys keys;
  if (!TakeKeys(lines, keys) || KeyFileText(keys) != text) return NotAKeyFile(source, damaged);
  return keys;
}

absl::StatusOr<JobKeys> ReadKeyFile(const std::string& path) {
  // O_NONBLOCK: opening a named pipe would otherwise wait for a writer.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return FileError(errno, "open", path);
  struct stat status;
  if (fstat(file.get(), &status) != 0) return FileError(errno, "stat", path);
  if (!S_ISREG(status.st_mode)) return NotAKeyFile(path, "it is not a regular file");
  if ((status.st_mode & kOthers) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is accessible to other users (mode %04o): create new keys with `tug "
                        "keys FILE`, or run chmod 600 %s if no one else could have read it",
                        path, status.st_mode & 07777, path));
  }
  std::string text(kLimitBytes + 1, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got =
        pread(file.get(), text.data() + filled, text.size() - filled, static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", path);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  if (filled > kLimitBytes) return NotAKeyFile(path, "it is too long");
  text.resize(filled);
  return ParseKeyFile(text, path);
}

absl::Status WriteNewKeyFile(const std::string& path, const JobKeys& keys) {
  return WriteNewFile(path, KeyFileText(keys));
}

absl::Status ReplaceKeyFile(const std::string& path, const JobKeys& keys) {
  const std::string fresh = path + ".new";
  unlink(fresh.c_str());  // left by a process that was killed
  RETURN_IF_ERROR(WriteNewFile(fresh, KeyFileText(keys)));
  if (std::rename(fresh.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  unlink(fresh.c_str());
  return FileError(error, "write", path);
}

}  // namespace tug
