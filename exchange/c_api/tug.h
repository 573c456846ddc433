/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUG_EXCHANGE_C_API_TUG_H_
#define TUG_EXCHANGE_C_API_TUG_H_

/* Push and pull for programs with their own model, in C99 (libtug.so.0; docs/c_api.md).
 *
 * A program joins a Tugboat job as one of its workers, declares blocks of FP32 numbers, and then
 * pulls their weights and pushes its gradients in every step. Servers hold the weights and AdamW's
 * state, sum the gradients of all workers, and update the weights. The job file has
 * `model { external: true }`; its train.steps is the number of steps.
 *
 *   tug_init("127.0.0.1:7070", &tug);
 *   tug_declare(tug, "weights", 1000, 0, 0.02f, TUG_WEIGHT_DECAY, &block);
 *   tug_start(tug);
 *   while ((status = tug_begin_step(tug, &step)) == TUG_OK) {
 *     tug_pull(tug, block, weights, &pulled);
 *     tug_wait(tug, pulled);
 *     ... gradient = sum over this worker's `samples` samples ...
 *     tug_push(tug, block, gradient, samples, &pushed);
 *     tug_wait(tug, pushed);
 *   }
 *   tug_shutdown(tug);
 *   tug_free(tug);
 *
 * Steps. With sync.policy BSP, version s of the weights is the result of s steps, and step s
 * computes with version s. With SSP and ASP every push is an update, step s computes with the
 * newest weights that the policy allows, and programs may end after different numbers of steps;
 * optimizer.clip is OFF then, so a program clips its own gradient. (BACKUP is refused: a program
 * cannot skip a step.) In a step every worker pushes every block exactly once, in any order. A pull
 * of a block before its push gets version s, a pull after it waits for version s + 1. So a program
 * may pull a block right after its push, and wait for it only when the next step needs it. Each
 * version of a block can be pulled once.
 *
 * Errors. Every function returns a status; tug_last_error returns one line: what happened and what
 * to do. After a job error (TUG_JOB_FAILED, TUG_UNREACHABLE) all further calls fail: shut down and
 * free. An invalid call changes nothing.
 *
 * Threads. All functions are thread-safe, except tug_free. The library starts threads: one for
 * messages, one for ZeroMQ, one for heartbeats to the coordinator, and gRPC's. A process may have
 * several contexts, each a separate worker; a context does not survive fork().
 */

#include <stdint.h>

/* Version of this header. The library is compatible with programs that were compiled with an older
 * header of the same TUG_VERSION_MAJOR; before 1.0 of the same TUG_VERSION_MINOR, too. */
#define TUG_VERSION_MAJOR 0
#define TUG_VERSION_MINOR 1
#define TUG_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the library: "0.1.0". */
const char* tug_version(void);

/* One worker of one job. */
typedef struct tug_context tug_context;

typedef enum tug_status {
  TUG_OK = 0,
  TUG_FINISHED = 1,         /* from tug_begin_step: all steps are done; not an error */
  TUG_INVALID_ARGUMENT = 2, /* fix the call */
  TUG_REFUSED = 3,          /* not allowed at this point or in this job; see the message */
  TUG_UNREACHABLE = 4,      /* the coordinator or the servers do not reply */
  TUG_JOB_FAILED = 5,       /* another node was lost or failed; the message says how to resume */
  TUG_OUT_OF_MEMORY = 6,
  TUG_INTERNAL = 7
} tug_status;

/* Flags of tug_declare. */
enum {
  TUG_WEIGHT_DECAY = 1 /* apply the job's optimizer.adamw.weight_decay; usual for matrices */
};

/* A push or a pull to wait for with tug_wait. Never 0. */
typedef uint64_t tug_ticket;

/* Connects to the coordinator at "host:port"; waits for it for up to 8 s. Sets *context even on
 * errors, except TUG_OUT_OF_MEMORY, so that tug_last_error can be called; free it with tug_free. */
tug_status tug_init(const char* coordinator, tug_context** context);

/* Like tug_init, for a job with security.mode TOKEN or CURVE: `key_file` is the path of a copy of
 * its key file (tug keys), which only its owner may read; NULL: as tug_init. TUG_REFUSED: the keys
 * are not those of the job. */
tug_status tug_init_with_keys(const char* coordinator, const char* key_file, tug_context** context);

/* Message of the calling thread's last failed call on this context, one line; "" if none failed.
 * Valid until that thread's next failed call, or tug_free. */
const char* tug_last_error(const tug_context* context);

/* Declares a block: `elements` FP32 numbers (at least 1) that are pushed and pulled as a whole,
 * initialised to normal(init_mean, init_std) from the job's seed, or to the constant init_mean if
 * init_std is 0. All workers declare the same blocks in the same order: that of the forward pass,
 * since earlier blocks are sent first. `name`: 1 to 128 letters, digits, '.', '_', '-', '/'; also
 * its name in checkpoints. Sets *block to its number: 0, 1, ... Call before tug_start. */
tug_status tug_declare(tug_context* context, const char* name, uint64_t elements, float init_mean,
                       float init_std, uint32_t flags, uint32_t* block);

/* Joins the job, and returns when all its servers and workers are ready; waits for those that are
 * not started yet. Call once. TUG_REFUSED: for example, another worker has declared other
 * blocks. */
tug_status tug_start(tug_context* context);

/* This worker's rank among the job's workers, 0 to count - 1, to select its part of the data. Call
 * after tug_start. */
tug_status tug_worker_index(tug_context* context, uint32_t* index);
tug_status tug_worker_count(tug_context* context, uint32_t* count);

/* Ends the step in progress, whose blocks must all have been pushed, and begins the next one: sets
 * *step (may be NULL) to its number. Numbers start at 0, or at the checkpoint's step in a resumed
 * job. TUG_FINISHED: no further step; the final weights can still be pulled. Call from one thread
 * at a time. */
tug_status tug_begin_step(tug_context* context, uint64_t* step);

/* Sends the block's gradient of the step in progress: `gradient` holds the undivided sum over
 * `count` (at least 1) samples of this worker. The update uses the sum over all workers divided by
 * the sum of their counts, so workers need not have equal shares. Returns at once, unless the
 * block's previous push is not committed yet. If `gradient` lies in a tug_buffer, at a multiple of
 * 64 bytes, it is sent in place and must not change until tug_wait(*ticket) returns. Any other
 * memory is copied: it may be reused when tug_push returns. */
tug_status tug_push(tug_context* context, uint32_t block, const float* gradient, uint64_t count,
                    tug_ticket* ticket);

/* Requests the block's weights: before its push those of the step in progress, after it those of
 * the next step (see Steps, above). Also allowed before the first step and after the last.
 * `weights` is written until tug_wait(*ticket) returns TUG_OK or, if that fails, until tug_free.
 * Returns at once. */
tug_status tug_pull(tug_context* context, uint32_t block, float* weights, tug_ticket* ticket);

/* Blocks until a pull's weights have arrived, or a push is part of the new weights and its memory
 * is no longer read. A push needs no wait if its memory is not reused. */
tug_status tug_wait(tug_context* context, tug_ticket ticket);

/* Adds to the loss of the step in progress: the sum over `count` samples of this worker. Shown in
 * `tug status`, the coordinator's progress line, and metrics.jsonl and loss.svg of the run folder.
 * A loss that is not finite for train.max_nonfinite_steps steps in a row ends the job. */
tug_status tug_report_loss(tug_context* context, double loss_sum, uint64_t count);

/* Returns memory to push from without a copy, aligned to 64 bytes, contents unspecified. Freed by
 * tug_free: allocate once, not in every step. Call after tug_start. */
tug_status tug_buffer(tug_context* context, uint64_t size_bytes, void** memory);

/* Requests an orderly end of the job, like `tug stop`: tug_begin_step then returns TUG_FINISHED in
 * all workers after the same step. */
tug_status tug_stop(tug_context* context);

/* Leaves the job. After TUG_FINISHED: returns when the job has ended and its last checkpoint is
 * written. Earlier: fails the job and returns TUG_REFUSED. TUG_OK if tug_start was never called. */
tug_status tug_shutdown(tug_context* context);

/* Ends the library's threads, and frees the context and all its buffers. No other call on the
 * context may be in progress. Without a prior tug_shutdown the job fails. NULL: no effect. */
void tug_free(tug_context* context);

#ifdef __cplusplus
}
#endif

#endif /* TUG_EXCHANGE_C_API_TUG_H_ */
