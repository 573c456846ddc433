// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/files/file.h"
#include "base/files/mapped_file.h"
#include "base/status_macros.h"
#include "checkpoint/best_checkpoint.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/safetensors.h"

namespace tug {
namespace {

// Elements of one kind of one block, in one file.
struct Piece {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::span<const std::byte> bytes;
};

// Sorts by `begin`. Returns an element that is in two pieces, if any.
std::optional<uint64_t> SortAscending(std::vector<Piece>& pieces) {
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i].begin < pieces[i - 1].end) return pieces[i].begin;
  }
  return std::nullopt;
}

struct PieceName {
  std::string block;
  char kind = 'w';
  uint64_t begin = 0;
  uint64_t end = 0;
};

bool IsKind(char kind) { return kind == 'w' || kind == 'm' || kind == 'v'; }

// Kinds in a PieceName.
constexpr char kClocks = 'c';
constexpr char kResidual = 'r';

// Returns 0 for an unknown kind.
char KindOf(absl::string_view text) {
  if (text == "clocks") return kClocks;
  if (text == "residual") return kResidual;
  return text.size() == 1 && IsKind(text[0]) ? text[0] : '\0';
}

bool ParseNumber(absl::string_view text, uint64_t* number) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         absl::SimpleAtoi(text, number);
}

// "<block>/<begin>-<end>/<kind>"; a block's name may have slashes.
std::optional<PieceName> ParsePieceName(absl::string_view text) {
  const size_t kind_slash = text.rfind('/');
  if (kind_slash == absl::string_view::npos || kind_slash == 0) return std::nullopt;
  const char kind = KindOf(text.substr(kind_slash + 1));
  const size_t range_slash = text.rfind('/', kind_slash - 1);
  if (range_slash == absl::string_view::npos || kind == '\0') return std::nullopt;
  const absl::string_view range = text.substr(range_slash + 1, kind_slash - range_slash - 1);
  const size_t dash = range.find('-');
  if (dash == absl::string_view::npos) return std::nullopt;
  PieceName name{.block = std::string(text.substr(0, range_slash)), .kind = kind};
  if (!ParseNumber(range.substr(0, dash), &name.begin) ||
      !ParseNumber(range.substr(dash + 1), &name.end) || name.begin > name.end) {
    return std::nullopt;
  }
  return name;
}

absl::StatusOr<SafetensorsReader> OpenVerified(const std::string& path, const ManifestFile& file) {
  ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  const std::span<const std::byte> bytes = mapped.bytes();
  if (!bytes.empty()) {
    ::madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), MADV_SEQUENTIAL);
  }
  if (bytes.size() != file.size_bytes() || XXH3_64bits(bytes.data(), bytes.size()) != file.xxh3()) {
    return absl::DataLossError(
        absl::StrCat(path, " is truncated or damaged: its checksum does not match"));
  }
  if (!bytes.empty()) {
    ::madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), MADV_NORMAL);
  }
  return SafetensorsReader::FromMapped(std::move(mapped), TensorTypes::kAny);
}

bool IsFolder(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// The folder that RUN/best names, or `path` unchanged if it is not RUN/best.
absl::StatusOr<std::string> BehindBest(const std::string& path) {
  if (std::filesystem::path(path).filename() != kBestFile || IsFolder(path)) return path;
  const std::string run = FolderOf(path);
  const absl::StatusOr<BestCheckpoint> best = ReadBest(run);
  if (best.ok()) {
    return FolderPath(CheckpointsFolder(run), best->version, FolderKind::kFinal);
  }
  if (!absl::IsNotFound(best.status())) return best.status();
  return absl::NotFoundError(absl::StrCat("no checkpoint at ", path,
                                          ": no checkpoint of this run was evaluated yet; name the "
                                          "run folder for its last checkpoint"));
}

}  // namespace

absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path) {
  const std::string named = WithoutTrailingSlashes(path);
  ASSIGN_OR_RETURN(const std::string given, BehindBest(named));
  const std::string checkpoints = CheckpointsFolder(given);
  FoundCheckpoint found;
  found.folder = given;
  if (IsFolder(checkpoints)) {
    ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> candidates, ListCandidates(checkpoints));
    if (candidates.empty()) {
      return absl::NotFoundError(absl::StrCat("no complete checkpoint in ", checkpoints,
                                              "; name another run folder or start the job again"));
    }
    found.folder = candidates.front().path;
  } else if (!ParseFolderPath(given) && !IsFolder(given)) {
    return absl::NotFoundError(
        absl::StrCat("no checkpoint at ", given,
                     ": no such folder; name a run folder or RUN/checkpoints/step-N"));
  }
  absl::StatusOr<Manifest> manifest = CheckFolder(found.folder);
  if (manifest.ok()) {
    found.manifest = *std::move(manifest);
    return found;
  }
  if (!absl::IsNotFound(manifest.status())) {
    return WithOlderCheckpoint(manifest.status(), found.folder);
  }
  const absl::Status missing = absl::NotFoundError(
      absl::StrCat("no complete checkpoint in ", found.folder, ": it has no ", kManifestFile));
  if (ParseFolderPath(found.folder)) return WithOlderCheckpoint(missing, found.folder);
  return absl::NotFoundError(absl::StrCat(
      missing.message(), " and no checkpoints; name a run folder or RUN/checkpoints/step-N"));
}

struct CheckpointReader::State {
  using Key = std::pair<std::string, char>;  // block, kind

  std::string folder;
  Manifest manifest;
  std::vector<SafetensorsReader> files;
  std::map<Key, std::vector<Piece>> pieces;  // ascending, disjoint; into `files`
  std::map<std::tuple<std::string, uint64_t, uint64_t>, std::span<const std::byte>> clocks;

  absl::Status AddPieces(const SafetensorsReader& file);
  absl::Status SortPieces();
};

absl::Status CheckpointReader::State::AddPieces(const SafetensorsReader& file) {
  for (const TensorView& tensor : file.tensors()) {
    std::optional<PieceName> name = ParsePieceName(tensor.name);
    const bool clocks = name.has_value() && name->kind == kClocks;
    const bool values = name.has_value() && IsKind(name->kind) && tensor.dtype == "F32" &&
                        tensor.bytes.size() % sizeof(float) == 0 &&
                        tensor.bytes.size() / sizeof(float) == name->end - name->begin;
    if (clocks && tensor.dtype == "I64" && !tensor.bytes.empty()) {
      this->clocks[{std::move(name->block), name->begin, name->end}] = tensor.bytes;
      continue;
    }
    if (!values) {
      return absl::DataLossError(absl::StrCat(file.path(), " is not a checkpoint file: tensor \"",
                                              tensor.name, "\" is not named BLOCK/BEGIN-END/KIND"));
    }
    if (tensor.bytes.empty()) continue;
    pieces[Key(std::move(name->block), name->kind)].push_back(
        {name->begin, name->end, tensor.bytes});
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::State::SortPieces() {
  for (auto& [key, list] : pieces) {
    const std::optional<uint64_t> twice = SortAscending(list);
    if (!twice.has_value()) continue;
    return absl::DataLossError(absl::StrCat("the files of ", folder, " contain element ", *twice,
                                            " of block ", key.first, " twice"));
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckpointReader> CheckpointReader::Open(const std::string& folder) {
  ASSIGN_OR_RETURN(FoundCheckpoint found, FindCheckpoint(folder));
  auto state = std::make_unique<State>();
  state->folder = std::move(found.folder);
  state->manifest = std::move(found.manifest);
  for (const ManifestFile& file : state->manifest.files()) {
    if (file.has_virtual_worker()) continue;
    auto reader = OpenVerified(absl::StrCat(state->folder, "/", file.name()), file);
    if (!reader.ok()) return WithOlderCheckpoint(reader.status(), state->folder);
    state->files.push_back(*std::move(reader));
    if (const absl::Status added = state->AddPieces(state->files.back()); !added.ok()) {
      return WithOlderCheckpoint(added, state->folder);
    }
  }
  if (const absl::Status sorted = state->SortPieces(); !sorted.ok()) {
    return WithOlderCheckpoint(sorted, state->folder);
  }
  return CheckpointReader(std::move(state));
}

CheckpointReader::CheckpointReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
CheckpointReader::CheckpointReader(CheckpointReader&&) noexcept = default;
CheckpointReader& CheckpointReader::operator=(CheckpointReader&&) noexcept = default;
CheckpointReader::~CheckpointReader() = default;

const Manifest& CheckpointReader::manifest() const { return state_->manifest; }

absl::Status CheckpointReader::ReadRange(const std::string& block, uint64_t begin, uint64_t end,
                                         char kind, std::span<float> out) const {
  TUG_CHECK(IsKind(kind)) << kind;
  TUG_CHECK_LE(begin, end) << block;
  TUG_CHECK_EQ(out.size(), end - begin) << block;
  const auto found = state_->pieces.find(State::Key(block, kind));
  static const std::vector<Piece> kNone;
  const std::vector<Piece>& pieces = found == state_->pieces.end() ? kNone : found->second;
  auto piece = std::upper_bound(pieces.begin(), pieces.end(), begin,
                                [](uint64_t at, const Piece& p) { return at < p.end; });
  uint64_t next = begin;
  for (; next < end && piece != pieces.end() && piece->begin <= next; ++piece) {
    const uint64_t stop = std::min(end, piece->end);
    std::memcpy(out.data() + (next - begin),
                piece->bytes.data() + (next - piece->begin) * sizeof(float),
                (stop - next) * sizeof(float));
    next = stop;
  }
  if (next == end) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      state_->folder, " does not contain element ", next, " (", std::string(1, kind), ") of block ",
      block, "; it was written with another model or optimizer: resume with that configuration"));
}

bool CheckpointReader::has_clocks() const { return !state_->clocks.empty(); }

absl::StatusOr<std::vector<uint64_t>> CheckpointReader::ReadClocks(const std::string& block,
                                                                   uint64_t begin,
                                                                   uint64_t end) const {
  const auto found = state_->clocks.find({block, begin, end});
  if (found == state_->clocks.end()) {
    return absl::NotFoundError(absl::StrCat(
        state_->folder, " has no clocks for elements ", begin, " to ", end, " of block ", block,
        "; resume with the comm.segment_elements it was written with"));
  }
  std::vector<uint64_t> clocks(found->second.size() / sizeof(uint64_t));
  std::memcpy(clocks.data(), found->second.data(), clocks.size() * sizeof(uint64_t));
  return clocks;
}

// ---- residuals ----

struct ResidualReader::State {
  SafetensorsReader file;
  Manifest manifest = {};
  std::map<std::string, std::vector<Piece>> pieces =
      {};  // by block; ascending, disjoint; into `file`

  absl::Status AddPieces();
};

absl::Status ResidualReader::State::AddPieces() {
  const auto damaged = [&](const std::string& what) {
    return absl::DataLossError(
        absl::StrCat(file.path(), " is not a residual file of a checkpoint: ", what));
  };
  for (const TensorView& tensor : file.tensors()) {
    const std::optional<PieceName> name = ParsePieceName(tensor.name);
    if (!name.has_value() || name->kind != kResidual || tensor.dtype != "F32" ||
        tensor.bytes.size() / sizeof(float) < name->end - name->begin) {
      return damaged(absl::StrCat("tensor \"", tensor.name, "\" is invalid"));
    }
    pieces[name->block].push_back({name->begin, name->end, tensor.bytes});
  }
  for (auto& [block, list] : pieces) {
    const std::optional<uint64_t> twice = SortAscending(list);
    if (!twice.has_value()) continue;
    return damaged(absl::StrCat("it has element ", *twice, " of block ", block, " twice"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<ResidualReader>> ResidualReader::Open(const std::string& folder,
                                                                   uint32_t virtual_worker) {
  ASSIGN_OR_RETURN(FoundCheckpoint found, FindCheckpoint(folder));
  for (const ManifestFile& file : found.manifest.files()) {
    if (!file.has_virtual_worker() || file.virtual_worker() != virtual_worker) continue;
    auto reader = OpenVerified(absl::StrCat(found.folder, "/", file.name()), file);
    if (!reader.ok()) return WithOlderCheckpoint(reader.status(), found.folder);
    auto state = std::make_unique<State>(State{.file = *std::move(reader)});
    if (const absl::Status added = state->AddPieces(); !added.ok()) {
      return WithOlderCheckpoint(added, found.folder);
    }
    state->manifest = std::move(found.manifest);
    return std::optional<ResidualReader>(ResidualReader(std::move(state)));
  }
  return std::nullopt;
}

ResidualReader::ResidualReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
ResidualReader::ResidualReader(ResidualReader&&) noexcept = default;
ResidualReader& ResidualReader::operator=(ResidualReader&&) noexcept = default;
ResidualReader::~ResidualReader() = default;

const Manifest& ResidualReader::manifest() const { return state_->manifest; }

ResidualReader::Found ResidualReader::Read(const std::string& block, uint64_t begin, uint64_t end,
                                           std::span<float> values) const {
  TUG_CHECK_LE(begin, end) << block;
  TUG_CHECK_GE(values.size(), end - begin) << block;
  const auto found = state_->pieces.find(block);
  if (found == state_->pieces.end()) return Found::kNothing;
  const std::vector<Piece>& pieces = found->second;
  auto piece = std::upper_bound(pieces.begin(), pieces.end(), begin,
                                [](uint64_t at, const Piece& p) { return at < p.end; });
  if (piece == pieces.end() || piece->begin >= end) return Found::kNothing;
  if (piece->begin == begin && piece->end == end) {
    if (piece->bytes.size() != values.size_bytes()) return Found::kMisfit;
    std::memcpy(values.data(), piece->bytes.data(), values.size_bytes());
    return Found::kAll;
  }
  if (values.size() != end - begin) return Found::kMisfit;
  std::fill(values.begin(), values.end(), 0.0f);
  for (; piece != pieces.end() && piece->begin < end; ++piece) {
    if (piece->bytes.size() != (piece->end - piece->begin) * sizeof(float)) return Found::kMisfit;
    const uint64_t first = std::max(begin, piece->begin);
    const uint64_t stop = std::min(end, piece->end);
    std::memcpy(values.data() + (first - begin),
                piece->bytes.data() + (first - piece->begin) * sizeof(float),
                (stop - first) * sizeof(float));
  }
  return Found::kAll;
}

}  // namespace tug
