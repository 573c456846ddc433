#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "data/line_text.h"
#include "data/sentencepiece_model.h"
#include "data/sentencepiece_trainer.h"
#include "data/tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kFolder[] = "data/testdata/sentencepiece/";

std::string Contents(const std::string& path) {
  auto bytes = ReadWholeFile(path, 1 << 20);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *std::move(bytes);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Make(const std::string& model_bytes) {
  DataConfig config;
  config.set_resolved_tokenizer(model_bytes);
  return MakeSentencePieceTokenizer(config);
}

SentencePieceModel Parsed(const std::string& name) {
  SentencePieceModel model;
  EXPECT_TRUE(model.ParseFromString(Contents(kFolder + name)));
  return model;
}

std::string ErrorOf(const SentencePieceModel& model) {
  return std::string(Make(model.SerializeAsString()).status().message());
}

// A file of sentences with a few words in them.
class SentencePieceTrainer : public testing::Test {
 protected:
  SentencePieceTrainer() : path_(testing::TempDir() + "/sentences.txt") {
    std::ofstream file(path_, std::ios::binary);
    const char* words[] = {"server", "worker", "lower", "newer", "gradient", "naïve", "the", "of"};
    for (int i = 0; i < 2000; ++i) {
      file << words[i * i % 8] << (i % 11 == 0 ? "  " : " ") << words[i % 7]
           << (i % 5 == 0 ? ".\n" : " ");
    }
  }

  absl::StatusOr<SentencePieceModel> Train(uint32_t pieces) {
    auto text = TextSource::Open(path_);
    EXPECT_TRUE(text.ok());
    return TrainSentencePieces(EncodedTextOf(*text, TextForm::kRunning), pieces);
  }

  std::string path_;
};

TEST(SentencePieceTokenizer, GivesTheTokensOfTheOriginalProgram) {
  const auto golden = nlohmann::json::parse(Contents(std::string(kFolder) + "golden.json"));
  ASSERT_GT(golden.size(), 100u);
  std::string name;
  std::unique_ptr<Tokenizer> tokenizer;
  for (const auto& row : golden) {
    if (row["model"] != name) {
      name = row["model"];
      tokenizer = *Make(Contents(kFolder + name + ".model"));
    }
    const auto text = row["text"].get<std::string>();
    const auto tokens = tokenizer->Encode(text);
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    ASSERT_EQ(*tokens, row["tokens"].get<std::vector<int32_t>>()) << name << ": " << text;
    ASSERT_EQ(*tokenizer->Decode(*tokens), text);
  }
}

TEST(SentencePieceTokenizer, KeepsLineEndsAndSpacesWhateverTheModelSaysOfThem) {
  for (const char* name : {"bpe.model", "unigram.model"}) {
    SentencePieceModel model = Parsed(name);
    model.mutable_normalizer_spec()->set_add_dummy_prefix(true);
    model.mutable_normalizer_spec()->set_remove_extra_whitespaces(true);
    const auto tokenizer = Make(model.SerializeAsString());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const std::string text = "\n\n  The  server\n keeps\r\n\tweights \xFF \xE2\x96\x81 \n ";
    const auto tokens = (*tokenizer)->Encode(text);
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(*(*tokenizer)->Decode(*tokens), text);
  }
}

TEST(SentencePieceTokenizer, DecodesEveryToken) {
  const auto tokenizer = *Make(Contents(std::string(kFolder) + "bpe.model"));
  for (uint32_t token = 0; token < tokenizer->symbols(); ++token) {
    const int32_t tokens[] = {static_cast<int32_t>(token)};
    EXPECT_TRUE(tokenizer->Decode(tokens).ok());
  }
  const int32_t special[] = {0, 1, 2};
  EXPECT_EQ(*tokenizer->Decode(special), "\xEF\xBF\xBD");
}

TEST(SentencePieceTokenizer, RefusesModelsThatDoNotGiveTextBack) {
  SentencePieceModel model = Parsed("bpe.model");
  model.mutable_trainer_spec()->set_model_type(SentencePieceModel::Trainer::WORD);
  EXPECT_THAT(ErrorOf(model), AllOf(HasSubstr("WORD"), HasSubstr("--byte_fallback")));
  model = Parsed("bpe.model");
  model.mutable_normalizer_spec()->set_name("nmt_nfkc");
  model.mutable_normalizer_spec()->set_precompiled_charsmap("rules");
  EXPECT_THAT(ErrorOf(model), AllOf(HasSubstr("nmt_nfkc"), HasSubstr("identity")));
  model = Parsed("bpe.model");
  model.mutable_trainer_spec()->set_treat_whitespace_as_suffix(true);
  EXPECT_THAT(ErrorOf(model), HasSubstr("spaces at the end"));
  model = Parsed("bpe.model");
  const SentencePieceModel good = model;
  *model.add_pieces() = model.pieces(500);
  EXPECT_THAT(ErrorOf(model), HasSubstr("twice"));
  model = good;
  model.mutable_pieces(10)->set_piece("<0xZZ>");
  EXPECT_THAT(ErrorOf(model), HasSubstr("<0xZZ>"));

  model = Parsed("bpe.model");
  for (int i = 0; i < model.pieces_size(); ++i) {
    if (model.pieces(i).type() == SentencePieceModel::Piece::BYTE) {
      model.mutable_pieces(i)->set_type(SentencePieceModel::Piece::UNUSED);
    }
  }
  const auto without_bytes = Make(model.SerializeAsString());
  ASSERT_TRUE(without_bytes.ok()) << without_bytes.status();
  EXPECT_THAT(std::string((*without_bytes)->Encode("the 漢 sign").status().message()),
              AllOf(HasSubstr("U+6F22 (漢)"), HasSubstr("offset 3"), HasSubstr("--byte_fallback")));
}

TEST(SentencePieceTokenizer, RefusesScoresAndPiecesThatTextCannotBeDividedBy) {
  for (const std::string name : {"bpe.model", "unigram.model"}) {
    const SentencePieceModel good = Parsed(name);
    for (const float score : {std::nanf(""), INFINITY, -INFINITY}) {
      SentencePieceModel model = good;
      model.mutable_pieces(500)->set_score(score);
      EXPECT_THAT(ErrorOf(model), AllOf(HasSubstr("piece 500 \""), HasSubstr("not finite"),
                                        HasSubstr("; give a model")));
    }
    SentencePieceModel model = good;
    model.mutable_pieces(500)->set_piece(std::string(kMaxPieceBytes, 'x'));
    EXPECT_EQ(ErrorOf(model), "");
    model.mutable_pieces(500)->set_type(SentencePieceModel::Piece::USER_DEFINED);
    model.mutable_pieces(500)->set_piece("\n" + std::string(kMaxPieceBytes, 'x'));
    EXPECT_THAT(ErrorOf(model), AllOf(HasSubstr("1025 bytes in its piece 500 \"\\nxxx"),
                                      HasSubstr("more than 1024"), Not(HasSubstr("\n"))));
  }
}

TEST(SentencePieceTokenizer, DamagedModelsGiveOneLine) {
  const std::string good = Contents(std::string(kFolder) + "bpe.model");
  EXPECT_THAT(std::string(Make("").status().message()),
              AllOf(HasSubstr("data.resolved_tokenizer is not a SentencePiece model")));
  for (size_t size = 0; size < good.size(); size += 37) {
    const auto made = Make(good.substr(0, size));  // a piece less, or an error
    if (made.ok()) continue;
    EXPECT_THAT(std::string(made.status().message()), HasSubstr("; give a model"));
  }
  std::string bad = good;
  for (size_t at = 0; at < bad.size(); at += 13) {
    bad[at] = static_cast<char>(bad[at] + 77);
    const auto made = Make(bad);
    if (made.ok()) (void)(*made)->Encode("The server keeps weights.");
    bad[at] = good[at];
  }
}

TEST(SentencePieceTokenizer, NamesAFileThatIsNoModel) {
  const std::string path = testing::TempDir() + "/no.model";
  std::ofstream(path) << "some text";
  DataConfig config;
  config.set_tokenizer_path(path);
  EXPECT_THAT(std::string(ResolveSentencePiece(EncodedText(), config).message()),
              AllOf(HasSubstr("data.tokenizer_path " + path), HasSubstr("not a SentencePiece")));
  config.set_tokenizer_path(path + "s");
  EXPECT_THAT(std::string(ResolveSentencePiece(EncodedText(), config).message()),
              HasSubstr("no.models"));
}

TEST_F(SentencePieceTrainer, LearnsWordsAndIsDeterministic) {
  const auto model = Train(340);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->SerializeAsString(), Train(340)->SerializeAsString());
  EXPECT_LE(model->pieces_size(), 340);
  const auto tokenizer = Make(model->SerializeAsString());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode(" server")->size(), 1u);
  EXPECT_EQ((*tokenizer)->Encode(" server the gradient")->size(), 3u);
  EXPECT_EQ(*(*tokenizer)->Decode(*(*tokenizer)->Encode("naïve 漢\n\n")), "naïve 漢\n\n");
}

TEST_F(SentencePieceTrainer, MakesFewerPiecesOfAShortTextAndRefusesTooFew) {
  const auto model = Train(1000000);
  ASSERT_TRUE(model.ok());
  EXPECT_LT(model->pieces_size(), 400);
  EXPECT_THAT(std::string(Train(100).status().message()),
              AllOf(HasSubstr("data.pieces = 100"), HasSubstr("set data.pieces to")));
}

}  // namespace
}  // namespace tug
