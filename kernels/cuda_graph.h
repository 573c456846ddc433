#ifndef TUG_KERNELS_CUDA_GRAPH_H_
#define TUG_KERNELS_CUDA_GRAPH_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace tug::kernels::cuda {

// What was queued on a stream, to be queued again as one: a CUDA graph. The host then takes about
// as long as for one or two kernels, and the device goes from one to the next without it.
//
// Kernels keep their arguments by value, so that what these point to lives as long as this does.
// Scratch memory is a graph's own, at the same place in every launch. Objects move, are not for two
// threads at a time, and may go while what they launched is under way.
class Graph {
 public:
  // Of what `queue` queues on the stream, of which nothing is done: kernels, products, fills,
  // copies between device memories, scratch memory that is let go of again. Meanwhile the calling
  // thread uses no event of the stream, waits for nothing and allocates no other memory, and no
  // other thread uses the stream. Kernels have been launched before: loading one is no such work.
  // Errors: queue's own, those of kernels/device.h, also where it does what it may not, and where
  // there is too little memory for the graph's scratch, which is there from here on; the stream is
  // then as it was.
  static absl::StatusOr<Graph> Capture(const Stream& stream,
                                       absl::FunctionRef<absl::Status()> queue);

  // Queues all of it on the stream, of the same device.
  absl::Status Launch(const Stream& stream) const;

 private:
  struct State;  // of each .cc file
  struct Destroy {
    void operator()(State* state) const;
  };
  explicit Graph(std::unique_ptr<State, Destroy> state) : state_(std::move(state)) {}
  std::unique_ptr<State, Destroy> state_;
};

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_GRAPH_H_
