// SPDX-License-Identifier: Apache-2.0
#include "exchange/client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "transport/answering_transport.h"
#include "transport/zmq_transport.h"

namespace tug {
namespace {

constexpr uint64_t kSegment = 4096;
constexpr size_t kBlockElements = 2 * kSegment;
constexpr uint32_t kLane = 3;
constexpr PeerId kWorker = WorkerPeer(1);

SegmentTable Table() {
  BlockTable blocks;
  for (int b = 0; b < 2; ++b) blocks.add_blocks()->add_tensors()->add_shape(kBlockElements);
  return *SegmentTable::Create(blocks, kSegment);
}

// One lane owns all segments. A partition is one segment; a block has two.
ExchangeOptions Options(uint32_t resend_ms) {
  ExchangeOptions options;
  options.job = 9;
  options.timeline = 1;
  options.view = 1;
  options.lane_of_segment.assign(4, kLane);
  options.comm.set_partition_bytes(kSegment * sizeof(float));
  options.comm.set_credit_bytes(uint64_t{1} << 20);
  options.comm.set_scheduler(CommConfig::BYTESCHEDULER);
  options.comm.set_resend_ms(resend_ms);
  return options;
}

Message AnswerTo(const WireHeader& request, MessageKind kind, float weight = 0) {
  Message answer{request, Lease()};
  answer.header.kind = kind;
  answer.header.sender = LanePeer(kLane);
  if (kind == MessageKind::kWeights) {
    answer.header.version = request.clock;
    auto weights = std::make_shared<std::vector<float>>(kSegment, weight);
    answer.payload = Lease(weights, std::span<const float>(*weights));
  }
  return answer;
}

// Messages in flight between a client and the test, which acts as the lane.
class Mailboxes {
 public:
  void Sent(Outgoing message) {
    absl::MutexLock lock(&mutex_);
    sent_.push_back(std::move(message));
  }
  // Blocks until `count` messages have been sent since the last call; moves them out.
  std::vector<Outgoing> TakeSent(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&] { return sent_.size() >= count; };
    mutex_.Await(absl::Condition(&enough));
    return std::exchange(sent_, {});
  }
  void Deliver(Message message) {
    absl::MutexLock lock(&mutex_);
    inbox_.push_back(std::move(message));
  }
  void Wake() {
    absl::MutexLock lock(&mutex_);
    woken_ = true;
  }
  // The next `sends` sends find the queue full.
  void FillQueue(int sends) {
    absl::MutexLock lock(&mutex_);
    full_for_ = sends;
  }
  bool QueueIsFull() {
    absl::MutexLock lock(&mutex_);
    return full_for_ > 0 && full_for_-- > 0;
  }
  // Sets the thread that used the transport last.
  void SetDriver(std::thread::id driver) {
    absl::MutexLock lock(&mutex_);
    driver_ = driver;
  }
  void AwaitDriver(const std::function<bool(std::thread::id)>& is) {
    absl::MutexLock lock(&mutex_);
    const auto driven = [&] { return is(driver_); };
    mutex_.Await(absl::Condition(&driven));
  }
  std::deque<Message> TakeInbox(absl::Duration timeout) {
    absl::MutexLock lock(&mutex_);
    const auto ready = [&] { return woken_ || !inbox_.empty(); };
    mutex_.AwaitWithTimeout(absl::Condition(&ready), timeout);
    woken_ = false;
    return std::exchange(inbox_, {});
  }

 private:
  absl::Mutex mutex_;
  std::vector<Outgoing> sent_;
  std::deque<Message> inbox_;
  bool woken_ = false;
  std::thread::id driver_;
  int full_for_ = 0;
};

class FakeTransport final : public Transport {
 public:
  explicit FakeTransport(Mailboxes& boxes) : boxes_(boxes) {}

  absl::Status Connect(PeerId, const std::string&) override { return absl::OkStatus(); }
  absl::Status Send(Outgoing message) override {
    if (boxes_.QueueIsFull()) return absl::ResourceExhaustedError("the queue is full");
    ++counters_.sent_messages;
    boxes_.SetDriver(std::this_thread::get_id());
    boxes_.Sent(std::move(message));
    return absl::OkStatus();
  }
  void Poll(absl::Duration timeout, const std::function<void(Message)>& handler) override {
    boxes_.SetDriver(std::this_thread::get_id());
    for (Message& message : boxes_.TakeInbox(timeout)) handler(std::move(message));
  }
  void Wake() override { boxes_.Wake(); }
  TransportCounters counters() const override { return counters_; }

 private:
  Mailboxes& boxes_;
  TransportCounters counters_;
};

class ExchangeClientTest : public testing::Test {
 protected:
  void Start(uint32_t resend_ms = 600000, bool frees_gradients = false) {
    ExchangeOptions options = Options(resend_ms);
    options.frees_gradients = frees_gradients;
    client_ = std::make_unique<ExchangeClient>(std::move(options), table_,
                                               std::make_unique<FakeTransport>(boxes_));
  }
  // Returns a pointer that expires once the gradient has no reader.
  std::weak_ptr<AlignedBuffer> Push(uint32_t block, uint32_t virtual_worker) {
    auto gradient = std::make_shared<AlignedBuffer>(kBlockElements * sizeof(float));
    client_->Push(
        {block, virtual_worker, 1, 0, 10, Lease(gradient, std::as_const(*gradient).floats())});
    return gradient;
  }
  void Answer(const std::vector<Outgoing>& messages, MessageKind kind, float weight = 0) {
    for (const Outgoing& m : messages) boxes_.Deliver(AnswerTo(m.header, kind, weight));
  }

  const SegmentTable table_ = Table();
  Mailboxes boxes_;
  std::vector<float> weights_ = std::vector<float>(kBlockElements, -1.0f);
  std::unique_ptr<ExchangeClient> client_;
};

TEST_F(ExchangeClientTest, HandsRequestsOverInOrder) {
  Start();
  Push(1, 0);
  client_->Pull({1, Want::kExact, 1, weights_});
  const std::vector<Outgoing> sent = boxes_.TakeSent(4);
  ASSERT_EQ(sent.size(), 4u);
  EXPECT_EQ(sent[0].header.kind, MessageKind::kPush);
  EXPECT_EQ(sent[1].header.kind, MessageKind::kPush);
  EXPECT_EQ(sent[2].header.kind, MessageKind::kPull);
  EXPECT_EQ(sent[3].header.kind, MessageKind::kPull);
}

TEST_F(ExchangeClientTest, WaitPulledEndsWhenTheWholeBlockHasArrived) {
  Start();
  client_->Pull({1, Want::kExact, 7, weights_});
  const std::vector<Outgoing> sent = boxes_.TakeSent(2);
  Answer({sent[0]}, MessageKind::kWeights, 1.0f);
  absl::StatusOr<bool> pulled = client_->WaitPulled(1, 7, absl::ZeroDuration());
  ASSERT_TRUE(pulled.ok());
  EXPECT_FALSE(*pulled);  // half of it has arrived
  Answer({sent[1]}, MessageKind::kWeights, 2.0f);
  pulled = client_->WaitPulled(1, 7);
  ASSERT_TRUE(pulled.ok());
  EXPECT_TRUE(*pulled);
  EXPECT_EQ(weights_.front(), 1.0f);
  EXPECT_EQ(weights_.back(), 2.0f);
  EXPECT_TRUE(*client_->WaitPulled(1, 6, absl::ZeroDuration()));
  EXPECT_FALSE(*client_->WaitPulled(1, 8, absl::ZeroDuration()));
  EXPECT_FALSE(*client_->WaitPulled(0, 0, absl::ZeroDuration()));
}

TEST_F(ExchangeClientTest, CountsTheTimeWithAnythingOpen) {
  Start();
  EXPECT_EQ(client_->OpenTime().open, absl::ZeroDuration());
  const absl::Time begin = absl::Now();
  client_->Pull({1, Want::kExact, 7, weights_});
  Push(0, 0);
  const std::vector<Outgoing> sent = boxes_.TakeSent(4);
  Answer({sent[0], sent[1]}, MessageKind::kWeights);
  EXPECT_TRUE(*client_->WaitPulled(1, 7));
  const absl::Duration pulled = client_->OpenTime().open;
  EXPECT_GT(pulled, absl::ZeroDuration());
  Answer({sent[2], sent[3]}, MessageKind::kCommitted);
  EXPECT_TRUE(client_->WaitCommitted(0, 0).ok());
  const absl::Duration both = client_->OpenTime().open;
  EXPECT_GT(both, pulled);
  EXPECT_LE(both, absl::Now() - begin + absl::Milliseconds(1));  // read from two clocks
  EXPECT_EQ(client_->OpenTime().open, both) << "nothing is open";
}

TEST_F(ExchangeClientTest, WaitCommittedIsPerBlockAndVirtualWorker) {
  Start();
  const std::weak_ptr<AlignedBuffer> first = Push(0, 2);
  const std::weak_ptr<AlignedBuffer> other = Push(0, 3);
  std::vector<Outgoing> sent = boxes_.TakeSent(4);
  std::vector<Outgoing> of_first;
  for (Outgoing& m : sent) {
    if (m.header.virtual_worker == 2) of_first.push_back(std::move(m));
  }
  sent.clear();
  ASSERT_EQ(of_first.size(), 2u);
  Answer(of_first, MessageKind::kCommitted);
  of_first.clear();
  EXPECT_TRUE(client_->WaitCommitted(0, 2).ok());
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(other.expired());
  EXPECT_TRUE(client_->WaitCommitted(1, 3).ok());  // nothing was pushed there
}

TEST_F(ExchangeClientTest, WaitReceivedEndsWhenNobodyWantsTheGradientOrALaneHasNoMemory) {
  Start(600000, /*frees_gradients=*/true);
  EXPECT_TRUE(*client_->WaitReceived(1, 3)) << "nothing was pushed there";
  const std::weak_ptr<AlignedBuffer> gradient = Push(0, 2);
  Outgoing deferred;
  {
    const std::vector<Outgoing> sent = boxes_.TakeSent(2);
    Answer({sent[0]}, MessageKind::kReceived);
    Answer({sent[1]}, MessageKind::kDeferred);
    deferred = {sent[1].to, sent[1].header, Lease()};
  }
  EXPECT_FALSE(*client_->WaitReceived(0, 2));
  EXPECT_FALSE(gradient.expired());
  {
    client_->Push({1, 2, 1, 0, 10, Lease(gradient.lock(), gradient.lock()->floats())});
    const std::vector<Outgoing> sent = boxes_.TakeSent(2);
    Answer(sent, MessageKind::kCommitted);
  }
  EXPECT_TRUE(client_->WaitCommitted(1, 2).ok());
  EXPECT_FALSE(*client_->WaitReceived(0, 2, absl::Milliseconds(1))) << "the lane has not asked";
  Answer({deferred}, MessageKind::kPushWanted);
  Answer(boxes_.TakeSent(1), MessageKind::kReceived);
  EXPECT_TRUE(*client_->WaitReceived(0, 2, absl::InfiniteDuration()));
}

TEST_F(ExchangeClientTest, APullThatIsGivenUpWritesNothingMore) {
  Start();
  client_->Pull({1, Want::kExact, 7, weights_});
  const std::vector<Outgoing> sent = boxes_.TakeSent(2);
  Answer({sent[0]}, MessageKind::kWeights, 4.0f);
  EXPECT_TRUE(client_->GiveUpPull(1).ok());
  const std::vector<float> before = weights_;
  EXPECT_FALSE(*client_->WaitPulled(1, 7, absl::ZeroDuration()));
  Answer({sent[1]}, MessageKind::kWeights, 5.0f);
  std::vector<float> other(kBlockElements);
  client_->Pull({0, Want::kExact, 7, other});
  Answer(boxes_.TakeSent(2), MessageKind::kWeights, 6.0f);
  EXPECT_TRUE(*client_->WaitPulled(0, 7));
  EXPECT_EQ(weights_, before);
  EXPECT_TRUE(client_->GiveUpPull(0).ok()) << "it is there";
  EXPECT_FALSE(*client_->WaitPulled(0, 7, absl::ZeroDuration())) << "and is given up too";
}

TEST_F(ExchangeClientTest, FailsWhenALaneDoesNotKnowWhatItHadReceived) {
  Start(/*resend_ms=*/1, /*frees_gradients=*/true);
  Push(0, 2);
  Answer(boxes_.TakeSent(2), MessageKind::kReceived);
  EXPECT_TRUE(*client_->WaitReceived(0, 2));
  const std::vector<Outgoing> asked = boxes_.TakeSent(2);
  Answer({asked[0]}, MessageKind::kDropped);
  Answer({asked[1]}, MessageKind::kCommitted);
  EXPECT_EQ(client_->WaitCommitted(0, 2).code(), absl::StatusCode::kDataLoss);
}

TEST_F(ExchangeClientTest, CancelEndsAllWaitsNowAndLaterWithTheFirstReason) {
  Start();
  client_->Pull({0, Want::kExact, 1, weights_});
  Push(0, 0);
  absl::Status committed;
  absl::StatusOr<bool> pulled = false;
  std::thread waits_for_commit([&] { committed = client_->WaitCommitted(0, 0); });
  std::thread waits_for_pull([&] { pulled = client_->WaitPulled(0, 1); });
  boxes_.TakeSent(4);
  client_->Cancel(absl::AbortedError("first"));
  client_->Cancel(absl::CancelledError("second"));
  waits_for_commit.join();
  waits_for_pull.join();
  EXPECT_EQ(committed, absl::AbortedError("first"));
  EXPECT_EQ(pulled.status(), absl::AbortedError("first"));
  EXPECT_EQ(client_->WaitCommitted(1, 1), absl::AbortedError("first"));
}

TEST_F(ExchangeClientTest, EndsWithRequestsOpenAndLetsTheirBuffersGo) {
  Start();
  const std::weak_ptr<AlignedBuffer> gradient = Push(0, 0);
  client_->Pull({0, Want::kExact, 1, weights_});
  boxes_.TakeSent(4);
  EXPECT_FALSE(gradient.expired());
  client_.reset();
  EXPECT_TRUE(gradient.expired());
  EXPECT_EQ(weights_, std::vector<float>(kBlockElements, -1.0f));
}

TEST_F(ExchangeClientTest, SendsAgainByItselfWhatIsNotAnswered) {
  Start(100);
  client_->Pull({0, Want::kExact, 1, weights_});
  boxes_.TakeSent(2);
  Answer(boxes_.TakeSent(2), MessageKind::kWeights, 4.0f);
  EXPECT_TRUE(client_->WaitPulled(0, 1).ok());
  EXPECT_EQ(weights_.back(), 4.0f);
}

TEST_F(ExchangeClientTest, DrivesByItselfWhileNobodyWaitsAndLeavesToWhoDoes) {
  Start();
  const std::thread::id self = std::this_thread::get_id();
  client_->Pull({1, Want::kExact, 1, weights_});
  const std::vector<Outgoing> sent = boxes_.TakeSent(2);
  boxes_.AwaitDriver([&](std::thread::id driver) { return driver != self; });
  std::thread waits([&] { EXPECT_TRUE(*client_->WaitPulled(1, 1)); });
  boxes_.AwaitDriver([id = waits.get_id()](std::thread::id driver) { return driver == id; });
  Answer(sent, MessageKind::kWeights, 1.0f);
  waits.join();
}

TEST_F(ExchangeClientTest, AWaiterTakesOverFromTheOneWhoDrives) {
  Start();
  client_->Pull({0, Want::kExact, 1, weights_});
  std::vector<float> other(kBlockElements);
  client_->Pull({1, Want::kExact, 1, other});
  std::vector<Outgoing> of[2];
  for (const Outgoing& m : boxes_.TakeSent(4)) of[m.header.block].push_back(m);
  std::thread waits[2];
  for (uint32_t block : {0u, 1u}) {
    waits[block] = std::thread([&, block] { EXPECT_TRUE(*client_->WaitPulled(block, 1)); });
  }
  for (uint32_t block : {0u, 1u}) {
    boxes_.AwaitDriver([&](std::thread::id driver) {
      return driver == waits[0].get_id() || driver == waits[1].get_id();
    });
    Answer(of[block], MessageKind::kWeights, 1.0f);
    waits[block].join();
  }
}

TEST_F(ExchangeClientTest, SendsInOrderWhatDidNotFitTheQueueOnceItDoes) {
  Start();
  boxes_.FillQueue(5);
  Push(1, 0);
  client_->Pull({1, Want::kExact, 1, weights_});
  const std::vector<Outgoing> sent = boxes_.TakeSent(4);
  ASSERT_EQ(sent.size(), 4u);
  EXPECT_EQ(sent[0].header.kind, MessageKind::kPush);
  EXPECT_EQ(sent[1].header.first_segment, 1u);
  EXPECT_EQ(sent[3].header.kind, MessageKind::kPull);
  EXPECT_EQ(client_->counters().resent, 0u);
}

TEST_F(ExchangeClientTest, AnOpenPullIsNotThereThoughAnEarlierOneWas) {
  Start();
  for (int i = 0; i < 2; ++i) {
    client_->Pull({0, Want::kExact, 3, weights_});
    const std::vector<Outgoing> sent = boxes_.TakeSent(2);
    EXPECT_FALSE(*client_->WaitPulled(0, 3, absl::ZeroDuration()));
    Answer(sent, MessageKind::kWeights, 1.0f);
    EXPECT_TRUE(*client_->WaitPulled(0, 3));
  }
}

TEST_F(ExchangeClientTest, HandsOutWeightsInPlaceOnce) {
  Start();
  client_->Pull({0, Want::kExact, 3, weights_, true});
  std::vector<Outgoing> sent = boxes_.TakeSent(2);
  auto memory = std::make_shared<AlignedBuffer>(kBlockElements * sizeof(float));
  const Lease lease(memory, std::as_const(*memory).floats());
  for (const Outgoing& m : sent) {
    Message answer = AnswerTo(m.header, MessageKind::kWeights);
    answer.payload =
        lease.Slice(m.header.first_segment * kSegment * sizeof(float), kSegment * sizeof(float));
    answer.home = Home::kSender;
    boxes_.Deliver(std::move(answer));
  }
  EXPECT_TRUE(*client_->WaitPulled(0, 3));
  const InPlaceWeights weights = client_->TakeInPlace(0);
  EXPECT_EQ(weights.elements.data(), memory->floats().data());
  EXPECT_EQ(weights.elements.size(), kBlockElements);
  EXPECT_TRUE(client_->TakeInPlace(0).elements.empty());
  EXPECT_EQ(weights_, std::vector<float>(kBlockElements, -1.0f));
}

// Acts as a lane inside the transport: answers every message at once.
class EchoTransport final : public AnsweringTransport {
 public:
  absl::Status Send(Outgoing message) override {
    const bool push = message.header.kind == MessageKind::kPush;
    Answer(AnswerTo(message.header, push ? MessageKind::kCommitted : MessageKind::kWeights,
                    static_cast<float>(message.header.clock)));
    return absl::OkStatus();
  }
};

// Two callers, each with its own block, take turns as driver with each other and with the client's
// thread.
TEST(ExchangeClient, ServesCallersOnSeveralThreads) {
  const SegmentTable table = Table();
  ExchangeClient client(Options(600000), table, std::make_unique<EchoTransport>());
  std::vector<std::thread> callers;
  for (uint32_t block : {0u, 1u}) {
    callers.emplace_back([&client, block] {
      std::vector<float> weights(kBlockElements);
      auto gradient = std::make_shared<AlignedBuffer>(kBlockElements * sizeof(float));
      for (uint64_t clock = 0; clock < 2000; ++clock) {
        gradient->floats()[0] = static_cast<float>(clock);
        client.Push({block, 0, 1, clock, 10, Lease(gradient, std::as_const(*gradient).floats())});
        client.Pull({block, Want::kExact, clock + 1, weights});
        ASSERT_TRUE(*client.WaitPulled(block, clock + 1));
        ASSERT_EQ(weights[kSegment], static_cast<float>(clock + 1));
        ASSERT_TRUE(client.WaitCommitted(block, 0).ok());
        if (clock % 100 == 0) absl::SleepFor(2 * ExchangeClient::kLinger);  // simulates computing
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(client.counters().resent, 0u);
}

// A lane over ZeroMQ that commits every push and serves every pull, until it is destroyed.
class LaneStub {
 public:
  LaneStub() {
    transport_ = *ZmqTransport::Create({.self = LanePeer(kLane), .bind_host = "127.0.0.1"});
    thread_ = std::thread([this] {
      while (!stop_) {
        transport_->Poll(absl::Seconds(10), [this](Message m) { Answer(m.header); });
      }
    });
  }
  ~LaneStub() {
    stop_ = true;
    transport_->Wake();
    thread_.join();
  }
  std::string endpoint() const { return transport_->endpoint(); }

 private:
  void Answer(const WireHeader& request) {
    if (request.kind == MessageKind::kPush) {
      Send(request.sender, AnswerTo(request, MessageKind::kReceived));
      Send(request.sender, AnswerTo(request, MessageKind::kCommitted));
    } else {
      Send(request.sender, AnswerTo(request, MessageKind::kWeights, 5.0f));
    }
  }
  void Send(PeerId to, const Message& answer) {
    EXPECT_TRUE(transport_->Send({to, answer.header, answer.payload}).ok());
  }

  std::unique_ptr<ZmqTransport> transport_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST(ExchangeClient, PushesAndPullsOverZeroMq) {
  LaneStub lane;
  std::unique_ptr<ZmqTransport> transport = *ZmqTransport::Create({.self = kWorker});
  ASSERT_TRUE(transport->Connect(LanePeer(kLane), lane.endpoint()).ok());
  const SegmentTable table = Table();
  std::vector<std::vector<float>> weights(2, std::vector<float>(kBlockElements));
  ExchangeClient client(Options(600000), table, std::move(transport));
  auto gradient = std::make_shared<AlignedBuffer>(kBlockElements * sizeof(float));
  for (uint64_t clock = 0; clock < 20; ++clock) {
    for (uint32_t block : {1u, 0u}) {
      ASSERT_TRUE(client.WaitCommitted(block, 0).ok());
      client.Push({block, 0, 1, clock, 10, Lease(gradient, std::as_const(*gradient).floats())});
      client.Pull({block, Want::kExact, clock + 1, weights[block]});
    }
    for (uint32_t block : {0u, 1u}) ASSERT_TRUE(client.WaitPulled(block, clock + 1).ok());
  }
  for (const std::vector<float>& block : weights) {
    EXPECT_EQ(block, std::vector<float>(kBlockElements, 5.0f));
  }
}

}  // namespace
}  // namespace tug
