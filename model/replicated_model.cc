// SPDX-License-Identifier: Apache-2.0
#include "model/replicated_model.h"

#include <algorithm>
#include <deque>
#include <new>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"

namespace tug {
namespace {

using Call = std::function<void()>;

// A thread that executes calls in the order they are posted. The destructor finishes all of them.
class CallThread {
 public:
  CallThread() : thread_([this] { Run(); }) {}
  ~CallThread() {
    {
      absl::MutexLock lock(&mutex_);
      ends_ = true;
    }
    thread_.join();
  }
  void Post(Call call) {
    absl::MutexLock lock(&mutex_);
    calls_.push_back(std::move(call));
  }

 private:
  void Run() {
    while (true) {
      Call next;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(
            +[](CallThread* self) { return self->ends_ || !self->calls_.empty(); }, this));
        if (calls_.empty()) return;
        next = std::move(calls_.front());
        calls_.pop_front();
      }
      next();
    }
  }

  absl::Mutex mutex_;
  std::deque<Call> calls_ ABSL_GUARDED_BY(mutex_);
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Waits for a number of calls.
class Countdown {
 public:
  explicit Countdown(size_t count) : left_(count) {}
  void Done() {
    absl::MutexLock lock(&mutex_);
    --left_;
  }
  // Whether all calls finished within `timeout`.
  bool Wait(absl::Duration timeout) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(
                                       +[](size_t* left) { return *left == 0; }, &left_),
                                   timeout);
  }

 private:
  absl::Mutex mutex_;
  size_t left_ ABSL_GUARDED_BY(mutex_);
};

// Copies of a micro-batch's arrays: replicas read them later than the caller keeps its own.
struct Arrays {
  explicit Arrays(const MicroBatch& batch)
      : tokens(batch.tokens.begin(), batch.tokens.end()),
        lengths(batch.lengths.begin(), batch.lengths.end()),
        decoder_tokens(batch.decoder_tokens.begin(), batch.decoder_tokens.end()),
        targets(batch.targets.begin(), batch.targets.end()) {}
  std::vector<int32_t> tokens, lengths, decoder_tokens, targets;
};

// Samples [first, first + count) of `array`.
std::span<const int32_t> PartOf(const std::vector<int32_t>& array, int samples, int first,
                                int count) {
  const size_t of_sample = array.size() / static_cast<size_t>(samples);
  return std::span(array).subspan(static_cast<size_t>(first) * of_sample,
                                  static_cast<size_t>(count) * of_sample);
}

class ReplicatedModel final : public Model {
 public:
  explicit ReplicatedModel(ReplicatedModelOptions options)
      : options_(std::move(options)), replicas_(options_.names.size()) {}
  ~ReplicatedModel() override {
    RunOnAll([](int, Replica& replica) {
      replica.model.reset();
      replica.arrays.reset();
      return absl::OkStatus();
    });
  }
  absl::Status Make();

  const BlockTable& blocks() const override { return blocks_; }
  std::optional<int> tied_block() const override { return tied_block_; }

  void BindWeights(int block, WeightsView weights) override {
    PostToAll([=](Model& model) { model.BindWeights(block, weights); });
  }
  void ReleaseWeights(int block) override {
    RunOnAll([=](int, Replica& replica) {
      replica.model->ReleaseWeights(block);
      return absl::OkStatus();
    });
  }
  uint64_t weight_copy_bytes() const override { return 0; }  // each replica has its own memory
  void BindGradient(int block, std::span<float> gradient) override {
    PostToAll([=](Model& model) { model.BindGradient(block, gradient); });
  }

  void Start(const MicroBatch& batch) override;
  void Forward(int block) override {
    PostToAll([=](Model& model) { model.Forward(block); });
  }
  void Backward(int block) override {
    PostToAll([=](Model& model) { model.Backward(block); });
  }
  LossSums losses() const override;

  bool queues() const override { return true; }
  absl::Status AwaitGradient(int block) override {
    RunOnAll([=](int, Replica& replica) { return replica.model->AwaitGradient(block); });
    return status();
  }
  std::shared_ptr<void> Pin(std::span<std::byte> host) override {
    std::shared_ptr<void> pin;
    RunOnFirst([&](Model& model) { pin = model.Pin(host); });
    return pin;
  }
  absl::Status status() const override {
    absl::MutexLock lock(&mutex_);
    return status_;
  }
  absl::Status Synchronize() override {
    RunOnAll([](int, Replica& replica) { return replica.model->Synchronize(); });
    return status();
  }

  void Logits(std::span<const int32_t> tokens, std::span<float> logits) override {
    RunOnFirst([&](Model& model) { model.Logits(tokens, logits); });
  }
  void Logits(const MicroBatch& batch, int position, std::span<float> logits) override {
    RunOnFirst([&](Model& model) { model.Logits(batch, position, logits); });
  }

 private:
  // All members except the thread are used on the thread only.
  struct Replica {
    std::unique_ptr<Model> model;          // null: creation failed
    std::shared_ptr<const Arrays> arrays;  // of the current pass
    CallThread thread;
  };
  using ReplicaCall = std::function<absl::Status(int number, Replica& replica)>;

  // Runs the call; an error of the call, or else of the model, becomes the replica's.
  void RunCall(int number, const ReplicaCall& call) const;
  void Post(int number, ReplicaCall call, std::shared_ptr<Countdown> done) const;
  void PostToAll(std::function<void(Model&)> call) const;
  void RunOnAll(const ReplicaCall& call) const;
  void RunOnFirst(const std::function<void(Model&)>& call) const;
  void Await(const std::shared_ptr<Countdown>& done) const;
  // Keeps the first error and aborts the replicas' waits.
  void Fail(const absl::Status& status) const;

  const ReplicatedModelOptions options_;
  BlockTable blocks_;
  std::optional<int> tied_block_;
  bool is_made_ = false;  // waits in Make have no timeout: make and join have their own
  mutable absl::Mutex mutex_;
  mutable absl::Status status_ ABSL_GUARDED_BY(mutex_);
  mutable std::deque<Replica> replicas_;  // last: threads end before other members do
};

absl::Status ReplicatedModel::Make() {
  const int count = static_cast<int>(replicas_.size());
  std::vector<absl::Status> made(replicas_.size());
  RunOnAll([&](int number, Replica& replica) {
    absl::StatusOr<std::unique_ptr<Model>> model = options_.make(number);
    if (model.ok()) replica.model = *std::move(model);
    made[static_cast<size_t>(number)] = model.status();
    return absl::OkStatus();
  });
  for (int number = 0; number < count; ++number) {
    const absl::Status& status = made[static_cast<size_t>(number)];
    if (status.ok()) continue;
    return absl::Status(status.code(), absl::StrCat(options_.names[static_cast<size_t>(number)],
                                                    ": ", status.message()));
  }
  RETURN_IF_ERROR(status());
  blocks_ = replicas_.front().model->blocks();
  tied_block_ = replicas_.front().model->tied_block();
  RunOnAll([&](int number, Replica&) { return options_.join(number); });
  is_made_ = true;
  return status();
}

void ReplicatedModel::RunCall(int number, const ReplicaCall& call) const {
  Replica& replica = replicas_[static_cast<size_t>(number)];
  absl::Status status;
  try {
    status = call(number, replica);
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("not enough host memory");
  }
  if (status.ok() && replica.model != nullptr) status = replica.model->status();
  if (status.ok()) return;
  Fail(absl::Status(status.code(), absl::StrCat(options_.names[static_cast<size_t>(number)], ": ",
                                                status.message())));
}

void ReplicatedModel::Post(int number, ReplicaCall call, std::shared_ptr<Countdown> done) const {
  replicas_[static_cast<size_t>(number)].thread.Post(
      [this, number, call = std::move(call), done = std::move(done)] {
        RunCall(number, call);
        if (done != nullptr) done->Done();
      });
}

void ReplicatedModel::PostToAll(std::function<void(Model&)> call) const {
  for (int number = 0; number < static_cast<int>(replicas_.size()); ++number) {
    Post(
        number,
        [call](int, Replica& replica) {
          call(*replica.model);
          return absl::OkStatus();
        },
        nullptr);
  }
}

void ReplicatedModel::RunOnAll(const ReplicaCall& call) const {
  const auto done = std::make_shared<Countdown>(replicas_.size());
  for (int number = 0; number < static_cast<int>(replicas_.size()); ++number) {
    Post(number, call, done);
  }
  Await(done);
}

void ReplicatedModel::RunOnFirst(const std::function<void(Model&)>& call) const {
  const auto done = std::make_shared<Countdown>(1);
  Post(
      0,
      [&call](int, Replica& replica) {
        call(*replica.model);
        return absl::OkStatus();
      },
      done);
  Await(done);
}

void ReplicatedModel::Await(const std::shared_ptr<Countdown>& done) const {
  if (done->Wait(is_made_ ? options_.timeout : absl::InfiniteDuration())) return;
  Fail(absl::DeadlineExceededError(absl::StrCat("a model on ", replicas_.size(),
                                                " devices: not all of them finished within ",
                                                absl::FormatDuration(options_.timeout))));
  done->Wait(absl::InfiniteDuration());
}

void ReplicatedModel::Fail(const absl::Status& status) const {
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return;
    status_ = status;
  }
  options_.abort();
}

void ReplicatedModel::Start(const MicroBatch& batch) {
  const auto arrays = std::make_shared<const Arrays>(batch);
  const int count = static_cast<int>(replicas_.size());
  int first = 0;
  for (int number = 0; number < count; ++number) {
    MicroBatch part = batch;
    part.samples = batch.samples / count + (number < batch.samples % count ? 1 : 0);
    part.tokens = PartOf(arrays->tokens, batch.samples, first, part.samples);
    part.lengths = PartOf(arrays->lengths, batch.samples, first, part.samples);
    part.decoder_tokens = PartOf(arrays->decoder_tokens, batch.samples, first, part.samples);
    part.targets = PartOf(arrays->targets, batch.samples, first, part.samples);
    part.dropout.first_sample += static_cast<uint32_t>(first);
    first += part.samples;
    Post(
        number,
        [part, arrays](int, Replica& replica) {
          replica.model->Start(part);
          replica.arrays = arrays;
          return absl::OkStatus();
        },
        nullptr);
  }
}

LossSums ReplicatedModel::losses() const {
  std::vector<LossSums> parts(replicas_.size());
  RunOnAll([&](int number, Replica& replica) {
    parts[static_cast<size_t>(number)] = replica.model->losses();
    return absl::OkStatus();
  });
  LossSums sums;
  for (const LossSums& part : parts) {
    sums.loss += part.loss;
    sums.targets += part.targets;
    sums.correct += part.correct;
  }
  return sums;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> NewReplicatedModel(ReplicatedModelOptions options) {
  auto model = std::make_unique<ReplicatedModel>(std::move(options));
  RETURN_IF_ERROR(model->Make());
  return model;
}

}  // namespace tug
