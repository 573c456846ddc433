// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/training_text.h"

#include <span>

namespace tug {
namespace {

constexpr const char* kArticles[] = {"a", "the", "every", "no", "some"};
constexpr const char* kAdjectives[] = {"small", "old",   "patient", "slow",   "bright", "heavy",
                                       "quiet", "young", "loud",    "narrow", "empty",  "blue"};
constexpr const char* kNouns[] = {"boat",    "harbour", "river", "captain", "anchor", "rope",
                                  "lantern", "storm",   "crew",  "chart",   "bridge", "tide"};
constexpr const char* kVerbs[] = {"pulls", "follows", "finds", "leaves", "carries",
                                  "meets", "watches", "tows",  "loses",  "reaches"};

// SplitMix64 (Steele et al. 2014).
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}
  const char* Pick(std::span<const char* const> words) {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return words[(z ^ (z >> 31)) % words.size()];
  }

 private:
  uint64_t state_;
};

}  // namespace

std::string TrainingText(uint64_t seed, size_t size_bytes) {
  Generator generator(seed);
  std::string text;
  while (text.size() < size_bytes) {
    const size_t begin = text.size();
    for (const std::span<const char* const> words : {std::span<const char* const>(kArticles),
                                                     {kAdjectives},
                                                     {kNouns},
                                                     {kVerbs},
                                                     {kArticles},
                                                     {kNouns}}) {
      text += generator.Pick(words);
      text += ' ';
    }
    text[begin] = static_cast<char>(text[begin] - 'a' + 'A');
    text.back() = '.';
    text += '\n';
  }
  text.resize(size_bytes);
  return text;
}

}  // namespace tug
