// SPDX-License-Identifier: Apache-2.0
// Decoders on bytes that no encoder wrote. An execution is a function of its number. Its buffer has
// exactly the stated length, so that AddressSanitizer detects reads beyond it:
//
//   bazel test --config=asan --test_timeout=3600 --test_arg=--executions=10000000
//       //compression/codecs:codec_fuzz_test
//
// A failure prints its number: `--executions=1 --first=NUMBER` repeats it.

#include <cstring>
#include <iostream>
#include <limits>
#include <stop_token>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "compression/codecs/codec_test_support.h"
#include "compression/codecs/frames.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

uint64_t executions = 200'000;
uint64_t first_execution = 0;

constexpr size_t kSizes[] = {1,   2,   3,   5,   8,   31,  32,  33,  63,  64,   65,
                             100, 255, 256, 257, 300, 511, 512, 513, 600, 1023, 1025};
constexpr size_t kGuard = 32;  // elements before and after the segment
constexpr float kGuardValue = 123.25f;

using Bytes = std::vector<std::byte>;

class Fuzz {
 public:
  Fuzz() {
    CodecScratch scratch;
    for (const CodecRow& row : Codecs()) {
      const auto codec = DefaultCodec(row);
      auto& of_row = valid_.emplace_back();
      for (const size_t n : kSizes) {
        Bytes out(codec->MaxEncodedBytes(n));
        const std::vector<float> elements = NormalElements(n, n, 0.01f);
        out.resize(codec->Encode({.clock = n}, elements, out, scratch));
        of_row.push_back(out);
        Bytes frame(MaxFrameBytes(codec.get(), n));
        frame.resize(WriteFrame(static_cast<uint8_t>(row.id), codec.get(), {.clock = n}, elements,
                                {}, frame, scratch));
        frames_.push_back({n, frame});
        Bytes fp32(MaxFrameBytes(nullptr, n));
        fp32.resize(WriteFrame(0, nullptr, {}, elements, {}, fp32, scratch));
        frames_.push_back({n, fp32});
      }
    }
  }

  // Returns what is wrong; empty if nothing is.
  std::string Execute(uint64_t number) {
    random_.seed(number);
    const size_t row = random_() % (Codecs().size() + 1);
    return row < Codecs().size() ? DecodeOne(row) : TakeFrames();
  }

 private:
  struct FrameOf {
    size_t elements;
    Bytes bytes;
  };

  std::string DecodeOne(size_t row) {
    const CodecRow& codec = Codecs()[row];
    const size_t size = random_() % std::size(kSizes);
    size_t n = kSizes[size];
    Bytes bytes = valid_[row][size];
    if (random_() % 8 == 0) {
      n = kSizes[random_() % std::size(kSizes)];
    } else if (random_() % 16 != 0) {
      Spoil(n, bytes);
    }
    Segment segment(n);
    const auto to = static_cast<DecodeTo>(random_() % 3);
    const bool decoded = WithExactly(bytes, [&](std::span<const std::byte> exact) {
      return DecoderOf(codec.id)->Decode(exact, to, segment.span());
    });
    const std::string wrong = segment.Wrong(decoded);
    return wrong.empty() ? "" : std::string(codec.name) + ": " + wrong;
  }

  // Decodes a payload of up to four frames.
  std::string TakeFrames() {
    std::vector<size_t> sizes;
    Bytes payload;
    for (uint64_t left = 1 + random_() % 4; left > 0; --left) {
      const FrameOf& frame = frames_[random_() % frames_.size()];
      sizes.push_back(frame.elements);
      payload.insert(payload.end(), frame.bytes.begin(), frame.bytes.end());
    }
    if (random_() % 16 != 0) Spoil(sizes[0], payload);
    std::string wrong;
    WithExactly(payload, [&](std::span<const std::byte> rest) {
      for (const size_t n : sizes) {
        const auto frame = TakeFrame(n, rest);
        if (!frame.has_value()) return false;
        Segment segment(n);
        const auto to = static_cast<DecodeTo>(random_() % 3);
        const bool decoded = DecodeFrame(*frame, to, segment.span());
        if (wrong.empty()) wrong = segment.Wrong(decoded);
      }
      return rest.empty();
    });
    return wrong.empty() ? "" : "frames: " + wrong;
  }

  // The elements of a segment, zeros, with guards around them.
  class Segment {
   public:
    explicit Segment(size_t n) : all_(n + 2 * kGuard, 0.0f) {
      std::fill_n(all_.begin(), kGuard, kGuardValue);
      std::fill_n(all_.end() - kGuard, kGuard, kGuardValue);
    }
    std::span<float> span() { return std::span(all_).subspan(kGuard, all_.size() - 2 * kGuard); }
    std::string Wrong(bool decoded) {
      for (size_t i = 0; i < kGuard; ++i) {
        if (all_[i] != kGuardValue || all_[all_.size() - 1 - i] != kGuardValue) {
          return "wrote outside of the segment";
        }
      }
      for (const float x : span()) {
        if (decoded && !std::isfinite(x)) return "true, but not finite";
      }
      return "";
    }

   private:
    std::vector<float> all_;
  };

  // Passes a copy of exactly these bytes, on the heap at any alignment.
  template <typename Use>
  bool WithExactly(const Bytes& bytes, Use use) {
    const size_t offset = random_() % 9;
    const auto exact = std::make_unique<std::byte[]>(offset + bytes.size());
    if (!bytes.empty()) std::memcpy(exact.get() + offset, bytes.data(), bytes.size());
    return use(std::span<const std::byte>(exact.get() + offset, bytes.size()));
  }

  void Spoil(size_t n, Bytes& bytes) {
    switch (random_() % 6) {
      case 0:  // anything
        bytes.resize(random_() % (bytes.size() + 16));
        for (std::byte& b : bytes) b = static_cast<std::byte>(random_());
        break;
      case 1:  // some bytes
        for (uint64_t i = 1 + random_() % 8; i > 0; --i) {
          bytes[random_() % bytes.size()] = static_cast<std::byte>(random_());
        }
        break;
      case 2:  // a bit
        bytes[random_() % bytes.size()] ^= std::byte{1} << (random_() % 8);
        break;
      case 3:
        bytes.resize(random_() % bytes.size());
        break;
      case 4:
        bytes.resize(bytes.size() + 1 + random_() % 16, static_cast<std::byte>(random_()));
        break;
      default:  // a meaningful word, often near the front
        for (uint64_t i = 1 + random_() % 3; i > 0 && bytes.size() >= sizeof(uint32_t); --i) {
          const auto number = static_cast<uint32_t>(n);
          const uint32_t words[] = {0,          1,          number,     number + 1, 0x7FFFFFFF,
                                    0x80000000, 0xFFFFFFFF, 0x7F800000, 0xFF7FFFFF, 0x7FC00000};
          const uint32_t word = words[random_() % std::size(words)];
          const size_t places = bytes.size() - sizeof(word) + 1;
          const size_t at =
              random_() % 2 == 0 ? random_() % std::min<size_t>(places, 9) : random_() % places;
          std::memcpy(bytes.data() + at, &word, sizeof(word));
        }
    }
  }

  std::mt19937_64 random_;
  std::vector<std::vector<Bytes>> valid_;  // by row and size
  std::vector<FrameOf> frames_;
};

TEST(CodecFuzz, HostileBytesAreRefusedOrDecodeToFiniteNumbers) {
  std::cout << executions << " executions from " << first_execution << std::endl;
  Fuzz fuzz;
  for (uint64_t i = first_execution; i < first_execution + executions; ++i) {
    const std::string wrong = fuzz.Execute(i);
    ASSERT_EQ(wrong, "") << "execution " << i;
  }
}

// As when a worker writes to shared memory while a lane reads it.
TEST(CodecFuzz, BytesThatChangeWhileTheyAreDecodedDoNoHarm) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "races are what it is about";
#endif
  constexpr size_t kElements = 4097;
  CodecScratch scratch;
  for (const CodecRow& row : Codecs()) {
    const auto codec = DefaultCodec(row);
    Bytes valid(codec->MaxEncodedBytes(kElements));
    valid.resize(codec->Encode({.clock = 1}, NormalElements(kElements, 1, 0.01f), valid, scratch));
    const auto shared = std::make_unique<std::byte[]>(valid.size());
    std::memcpy(shared.get(), valid.data(), valid.size());
    const std::jthread other([&](const std::stop_token& stop) {
      std::mt19937_64 random(row.id);
      volatile std::byte* const bytes = shared.get();
      while (!stop.stop_requested()) {
        const size_t at = random() % valid.size();
        bytes[at] = static_cast<std::byte>(random());
        bytes[at] = valid[at];
      }
    });
    std::vector<float> all(kElements + 2 * kGuard);
    const std::span<float> elements = std::span(all).subspan(kGuard, kElements);
    for (int i = 0; i < 300; ++i) {
      std::fill(all.begin(), all.end(), kGuardValue);
      std::fill(elements.begin(), elements.end(), 0.0f);
      const bool decoded = DecoderOf(row.id)->Decode({shared.get(), valid.size()},
                                                     static_cast<DecodeTo>(i % 3), elements);
      for (size_t at = 0; at < all.size(); ++at) {
        if (at < kGuard || at >= kGuard + kElements) {
          ASSERT_EQ(all[at], kGuardValue) << row.name;
        } else if (decoded) {
          ASSERT_TRUE(std::isfinite(all[at])) << row.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tug

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    const bool known = (absl::ConsumePrefix(&argument, "--executions=") &&
                        absl::SimpleAtoi(argument, &tug::executions)) ||
                       (absl::ConsumePrefix(&argument, "--first=") &&
                        absl::SimpleAtoi(argument, &tug::first_execution));
    if (!known) {
      std::cerr << "codec_fuzz_test [--executions=N] [--first=N], not " << argv[i] << std::endl;
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
