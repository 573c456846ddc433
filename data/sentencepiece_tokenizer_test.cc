// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files/file.h"
#include "data/line_text.h"
#include "data/text/sentencepiece_model.h"
#include "data/text/sentencepiece_trainer.h"
#include "data/text/tokenizer.h"
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

using Piece = SentencePieceModel::Piece;

struct NewPiece {
  const char* text;  // with marks instead of spaces
  float score;
  Piece::Type type = Piece::NORMAL;
};

// Model of <unk>, <s>, </s>, the 256 bytes and `pieces`, the first of which is token 259. Keeps
// spaces.
SentencePieceModel ModelOf(SentencePieceModel::Trainer::ModelType type,
                           std::initializer_list<NewPiece> pieces) {
  SentencePieceModel model;
  const auto add = [&](std::string text, float score, Piece::Type piece_type) {
    Piece& piece = *model.add_pieces();
    piece.set_piece(std::move(text));
    piece.set_score(score);
    piece.set_type(piece_type);
  };
  add("<unk>", 0, Piece::UNKNOWN);
  add("<s>", 0, Piece::CONTROL);
  add("</s>", 0, Piece::CONTROL);
  for (int byte = 0; byte < 256; ++byte) add(absl::StrFormat("<0x%02X>", byte), 0, Piece::BYTE);
  for (const NewPiece& piece : pieces) add(piece.text, piece.score, piece.type);
  model.mutable_trainer_spec()->set_model_type(type);
  model.mutable_trainer_spec()->set_byte_fallback(true);
  model.mutable_normalizer_spec()->set_add_dummy_prefix(false);
  model.mutable_normalizer_spec()->set_remove_extra_whitespaces(false);
  return model;
}

constexpr auto kUnigram = SentencePieceModel::Trainer::UNIGRAM;
constexpr auto kBpe = SentencePieceModel::Trainer::BPE;

// Pieces of the tokens of `text`: "a|▁|b"; or the error.
std::string Pieces(const SentencePieceModel& model, const std::string& text) {
  const auto tokenizer = Make(model.SerializeAsString());
  if (!tokenizer.ok()) return std::string(tokenizer.status().message());
  const auto tokens = (*tokenizer)->Encode(text);
  if (!tokens.ok()) return std::string(tokens.status().message());
  return absl::StrJoin(*tokens, "|", [&](std::string* out, int32_t token) {
    absl::StrAppend(out, model.pieces(token).piece());
  });
}

// Error that a job with this model file gets.
std::string ErrorOfFile(const SentencePieceModel& model) {
  const std::string path = testing::TempDir() + "/file.model";
  std::ofstream(path, std::ios::binary) << model.SerializeAsString();
  DataConfig config;
  config.set_tokenizer_path(path);
  return std::string(ResolveSentencePiece(EncodedText(), config).message());
}

// Trains on a file of sentences with few distinct words.
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

  void Write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

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

TEST(SentencePieceTokenizer, KeepsLineEndsAndSpacesDespiteModelSettings) {
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

// Expected values of the next six tests: sentencepiece 0.2.3.
TEST(SentencePieceTokenizer, UserDefinedPiecesAlwaysWin) {
  const auto model = ModelOf(
      kUnigram, {{"a", -1}, {"b", -1}, {"▁", -1}, {"bab", 0.5f}, {"ab", 0, Piece::USER_DEFINED}});
  EXPECT_EQ(Pieces(model, "ab b a ab\nab"), "ab|▁|b|▁|a|▁|ab|<0x0A>|ab");
}

TEST(SentencePieceTokenizer, DividesRunsIntoUserDefinedPiecesAsTheLibrary) {
  const std::string two(2, '='), three(3, '='), seven(7, '=');
  const auto model = ModelOf(kUnigram, {{"a", -1},
                                        {"▁", -3},
                                        {"=", -2},
                                        {two.c_str(), 0, Piece::USER_DEFINED},
                                        {three.c_str(), 0, Piece::USER_DEFINED},
                                        {seven.c_str(), 0, Piece::USER_DEFINED}});
  const auto of_run = [&](size_t length) { return Pieces(model, "a " + std::string(length, '=')); };
  EXPECT_EQ(of_run(8), absl::StrJoin(std::vector<std::string>{"a", "▁", two, three, three}, "|"));
  EXPECT_EQ(of_run(15),
            absl::StrJoin(std::vector<std::string>{"a", "▁", two, three, seven, three}, "|"));
  EXPECT_EQ(of_run(40), absl::StrJoin(std::vector<std::string>{"a", "▁", three, seven, seven, seven,
                                                               two, seven, seven},
                                      "|"));
}

TEST(SentencePieceTokenizer, KeepsFirstFoundOfEqualScores) {
  const auto model = ModelOf(kUnigram, {{"-", -5}, {"--", -6}, {"▁", -3}, {"a", -4}});
  EXPECT_EQ(Pieces(model, "a --- a"), "a|▁|-|--|▁|a");
}

TEST(SentencePieceTokenizer, RoundsTheScoresOfALineAsTheLibrary) {
  const auto model = ModelOf(
      kUnigram,
      {{"x", -6.9f}, {"▁", -2.5f}, {"aaa", -7.0450358390808105f}, {"aaaa", -6.9234185218811035f}});
  const std::string a(10, 'a');
  EXPECT_EQ(Pieces(model, "x " + a), "x|▁|aaa|aaa|aaaa");
  EXPECT_EQ(Pieces(model, "x x " + a + "\n" + a), "x|▁|x|▁|aaaa|aaa|aaa|<0x0A>|aaa|aaa|aaaa");
}

// "a|b" scores higher than "ab" by less than the FP32 resolution of a large sum.
TEST(SentencePieceTokenizer, SumsFromZeroAgainInALongLineAsTheLibrary) {
  const auto model = ModelOf(kUnigram, {{"a", -1000}, {"b", -999.499f}, {"ab", -1999.5f}});
  const std::vector<std::pair<const char*, int>> runs = {{"|a|b", 8}, {"|ab", 42}, {"|a|b", 8},
                                                         {"|ab", 43}, {"|a|b", 8}, {"|ab", 11}};
  std::string expected;
  for (const auto& [piece, count] : runs) {
    for (int i = 0; i < count; ++i) expected += piece;
  }
  std::string line;
  for (int i = 0; i < 120; ++i) line += "ab";
  EXPECT_EQ(Pieces(model, line), expected.substr(1));
}

TEST(SentencePieceTokenizer, FindsPiecesThatReachOverSpaces) {
  const std::initializer_list<NewPiece> pieces = {
      {"▁of▁the", -2}, {"▁of", -3}, {"▁the", -3}, {"o", -4},  {"f", -4},   {"t", -4},  {"h", -4},
      {"e", -4},       {"▁", -5},   {"▁o", -6},   {"▁t", -6}, {"▁th", -7}, {"x▁", -7}, {"x", -9}};
  for (const auto type : {kUnigram, kBpe}) {
    EXPECT_EQ(Pieces(ModelOf(type, pieces), "o of the of\nof the"),
              "o|▁of▁the|▁of|<0x0A>|o|f|▁the");
  }
  for (const auto type : {kUnigram, kBpe}) {
    const auto model = ModelOf(type, {{"▁Ha▁Noi", 0, Piece::USER_DEFINED}, {"x", -4}, {"▁", -5}});
    EXPECT_EQ(Pieces(model, "x Ha Noi x"), "x|▁Ha▁Noi|▁|x");
  }
}

TEST(SentencePieceTokenizer, TokensDoNotDependOnCutsOfAnyUnit) {
  const auto lines = ModelOf(kBpe, {{"▁of▁the", -2},
                                    {"▁of", -3},
                                    {"▁the", -3},
                                    {"o", -4},
                                    {"f", -4},
                                    {"▁", -5},
                                    {"▁o", -6},
                                    {"t", -7}});
  for (const SentencePieceModel& model : {lines, Parsed("unigram.model"), Parsed("bpe.model")}) {
    const auto tokenizer = *Make(model.SerializeAsString());
    std::string text = "of the of the\n\n  of\n";
    for (int i = 0; i < 20000; ++i) text += i % 7 == 0 ? " of the" : " weights";  // one line
    text += std::string(70000, 'y') + "\nthe server\n";
    const auto all = *tokenizer->Encode(text);
    std::vector<int32_t> pieces;
    for (std::string_view rest = text; !rest.empty();) {
      size_t cut = 0;
      for (size_t read = 1000; cut == 0 && read < rest.size(); read += 1000) {
        cut = tokenizer->Cut(rest.substr(0, read));
        ASSERT_TRUE(cut > 0 || read <= kMaxUnitBytes + 64);
      }
      const std::string_view front = cut > 0 ? rest.substr(0, cut) : rest;
      const auto tokens = *tokenizer->Encode(front);
      pieces.insert(pieces.end(), tokens.begin(), tokens.end());
      rest.remove_prefix(front.size());
    }
    EXPECT_EQ(pieces, all);
  }
}

TEST(SentencePieceTokenizer, RefusesFilesWhoseTokensWouldDifferFromTheLibrarys) {
  SentencePieceModel model = Parsed("bpe.model");
  EXPECT_EQ(ErrorOfFile(model), "");
  model.mutable_normalizer_spec()->set_add_dummy_prefix(true);
  EXPECT_THAT(ErrorOfFile(model),
              AllOf(HasSubstr("file.model adds a space"), HasSubstr("add_dummy_prefix=false")));
  model = Parsed("unigram.model");
  model.mutable_normalizer_spec()->set_remove_extra_whitespaces(true);
  EXPECT_THAT(ErrorOfFile(model), HasSubstr("remove_extra_whitespaces=false"));
  for (const auto type : {kUnigram, kBpe}) {
    EXPECT_THAT(ErrorOfFile(ModelOf(type, {{"a", -1}, {"\n▁", 0, Piece::USER_DEFINED}})),
                AllOf(HasSubstr("piece 260 \"\\n▁\""), HasSubstr("line end inside")));
    EXPECT_EQ(ErrorOfFile(ModelOf(type, {{"a", -1}, {"\n\n", 0, Piece::USER_DEFINED}})), "");
  }
  EXPECT_THAT(ErrorOfFile(ModelOf(kBpe, {{"a", -1}, {"ab", -1, Piece::UNUSED}})),
              HasSubstr("unused piece 260 \"ab\""));
  EXPECT_THAT(ErrorOfFile(ModelOf(kBpe, {{"a", -1}, {"<s>", -1}})), HasSubstr("\"<s>\""));
  EXPECT_THAT(ErrorOfFile(ModelOf(kBpe, {{"a", -1}, {"@", 0, Piece::CONTROL}})),
              HasSubstr("piece 260 \"@\" that matches ordinary text"));
  EXPECT_EQ(
      ErrorOfFile(ModelOf(
          kUnigram, {{"a", -1}, {"ab", -1, Piece::UNUSED}, {"<s>", -1}, {"@", 0, Piece::CONTROL}})),
      "");
}

// Token 259 is "a", 260 is "x▁y".
TEST(SentencePieceTokenizer, RefusesFilesBesideTheModelThatAddTokensToItsPieces) {
  const std::string folder = testing::TempDir() + "/beside_a_model";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name, std::ios::binary) << text;
  };
  write("m.model", ModelOf(kBpe, {{"a", -1}, {"x▁y", 0, Piece::USER_DEFINED}}).SerializeAsString());
  DataConfig config;
  config.set_tokenizer_path(folder + "/m.model");
  const auto error_with = [&](const std::string& name, const std::string& text) {
    write(name, text);
    config.clear_resolved_tokenizer();
    const absl::Status status = ResolveSentencePiece(EncodedText(), config);
    std::filesystem::remove(folder + "/" + name);
    return std::string(status.message());
  };
  const auto names = [&](const std::string& file, const std::string& token) {
    return AllOf(HasSubstr(folder + "/" + file + ": the added token " + token),
                 HasSubstr("is not a piece of " + folder + "/m.model"),
                 HasSubstr("--user_defined_symbols"), HasSubstr("another folder"),
                 Not(HasSubstr("\n")));
  };
  // Allowed: tokens that equal pieces by text and number.
  EXPECT_EQ(error_with("added_tokens.json", R"({"<s>": 1, "</s>": 2, "x y": 260})"), "");
  EXPECT_NE(config.resolved_tokenizer(), "");
  EXPECT_EQ(error_with("tokenizer_config.json", R"({"added_tokens_decoder": {
      "0": {"content": "<unk>"}, "260": {"content": "x▁y"}}, "add_bos_token": true})"),
            "");
  EXPECT_EQ(error_with("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})"), "");
  EXPECT_EQ(error_with("tokenizer.json", R"({"added_tokens": [{"id": 1, "content": "<s>"}]})"), "");

  EXPECT_THAT(error_with("added_tokens.json", R"({"<s>": 1, "<pad>": 261})"),
              names("added_tokens.json", "\"<pad>\", number 261,"));
  EXPECT_EQ(config.resolved_tokenizer(), "");
  EXPECT_THAT(error_with("added_tokens.json", R"({"<s>": 2})"),
              names("added_tokens.json", "\"<s>\", number 2,"));
  EXPECT_THAT(error_with("added_tokens.json", R"({"<s>": "1"})"),
              names("added_tokens.json", "\"<s>\", without a number,"));
  EXPECT_THAT(error_with("tokenizer_config.json",
                         R"({"added_tokens_decoder": {"261": {"content": "<|user|>"}}})"),
              names("tokenizer_config.json", "\"<|user|>\", number 261,"));
  EXPECT_THAT(error_with("tokenizer.json", R"({"added_tokens": [{"id": 261, "content": "my"}]})"),
              names("tokenizer.json", "\"my\", number 261,"));
  EXPECT_THAT(error_with("added_tokens.json", R"(["<pad>"])"),
              AllOf(HasSubstr(folder + "/added_tokens.json is not a JSON object"),
                    HasSubstr("correct it, or remove it")));
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
  EXPECT_THAT(ErrorOf(model), HasSubstr("spaces at the start"));
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
                                        HasSubstr("; use a model")));
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
    const auto made = Make(good.substr(0, size));  // fewer pieces, or an error
    if (made.ok()) continue;
    EXPECT_THAT(std::string(made.status().message()), HasSubstr("; use a model"));
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

TEST_F(SentencePieceTrainer, MakesNoPieceThatTheLibraryRefuses) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "<s>x y <0x41> ";
  Write(text);
  const auto model = Train(340);
  ASSERT_TRUE(model.ok()) << model.status();
  std::map<std::string, int> times;
  for (const Piece& piece : model->pieces()) {
    EXPECT_EQ(++times[piece.piece()], 1) << piece.piece();
  }
  EXPECT_EQ(ErrorOfFile(*model), "");
  const auto tokenizer = *Make(model->SerializeAsString());
  EXPECT_EQ(*tokenizer->Decode(*tokenizer->Encode(text)), text);
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
