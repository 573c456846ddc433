// SPDX-License-Identifier: Apache-2.0
// Times all of gloo's all-reduce algorithms over TCP on this host, FP32 sums in place. Each rank
// prints "ALGORITHM BYTES SECONDS" for each algorithm and size: the mean over as many calls as fit
// into SECONDS. deploy/compare/collectives runs one process per rank.
//   gloo_allreduce FOLDER RANK WORLD SECONDS BYTES...
#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kMaxCalls = 10000;
using Context = std::shared_ptr<gloo::rendezvous::Context>;
using Call = std::function<void()>;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double TimeCalls(const Call& call, int calls) {
  const double begin = Now();
  for (int i = 0; i < calls; ++i) call();
  return (Now() - begin) / calls;
}

template <typename Algorithm>
Call Older(const Context& context, std::vector<float>& buffer) {
  auto algorithm = std::make_shared<Algorithm>(context, std::vector<float*>{buffer.data()},
                                               static_cast<int>(buffer.size()));
  return [algorithm] { algorithm->run(); };
}

Call Newer(const Context& context, std::vector<float>& buffer,
           gloo::AllreduceOptions::Algorithm algorithm) {
  return [&context, &buffer, algorithm] {
    gloo::AllreduceOptions options(context);
    options.setOutput(buffer.data(), buffer.size());
    options.setAlgorithm(algorithm);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  };
}

void Broadcast(const Context& context, int& number) {
  gloo::BroadcastOptions options(context);
  options.setOutput(&number, 1);
  options.setRoot(0);
  gloo::broadcast(options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const int rank = std::atoi(argv[2]);
  const double seconds = std::atof(argv[4]);
  gloo::transport::tcp::attr where;
  where.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(where);
  gloo::rendezvous::FileStore store(argv[1]);
  const Context context = std::make_shared<gloo::rendezvous::Context>(rank, std::atoi(argv[3]));
  context->connectFullMesh(store, device);
  for (int a = 5; a < argc; ++a) {
    std::vector<float> buffer(std::strtoull(argv[a], nullptr, 10) / sizeof(float));
    using Options = gloo::AllreduceOptions;
    const std::pair<const char*, Call> all[] = {
        {"ring", Newer(context, buffer, Options::Algorithm::RING)},
        {"bcube", Newer(context, buffer, Options::Algorithm::BCUBE)},
        {"AllreduceRing", Older<gloo::AllreduceRing<float>>(context, buffer)},
        {"AllreduceRingChunked", Older<gloo::AllreduceRingChunked<float>>(context, buffer)},
        {"AllreduceHalvingDoubling", Older<gloo::AllreduceHalvingDoubling<float>>(context, buffer)},
        {"AllreduceBcube", Older<gloo::AllreduceBcube<float>>(context, buffer)}};
    for (const auto& [name, call] : all) {
      TimeCalls(call, 1);
      int calls = std::clamp(static_cast<int>(seconds / TimeCalls(call, 2)), 1, kMaxCalls);
      Broadcast(context, calls);
      const double mean = TimeCalls(call, calls);
      std::printf("%s %s %.9g\n", name, argv[a], mean);
    }
  }
  return 0;
}
