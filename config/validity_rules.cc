// SPDX-License-Identifier: Apache-2.0
// Invalid combinations of a job's fields.
#include <algorithm>
#include <string>
#include <vector>

#include "config/job_rules.h"
#include "config/placement_mode.h"
#include "config/push_plan.h"
#include "config/sync_mode.h"

namespace tug {
namespace {

constexpr uint64_t kFloatBytes = 4;

bool OnPieces(const DataConfig& data) {
  return data.tokenizer() == DataConfig::SENTENCEPIECE || data.tokenizer() == DataConfig::GPT2_BPE;
}

bool UpdatesByPush(const JobConfig& config) {
  return SyncModeOf(config.sync().policy()).update_per_push;
}

bool Replays(const JobConfig& config) { return config.compute() == JobConfig::REPLAY; }

// Whether workers train the job's own model, on the data it names.
bool TrainsOwnModel(const JobConfig& config) {
  return !config.model().external() && !Replays(config);
}

// Whether the learning rate reaches its minimum at decay_steps.
bool Decays(const OptimizerConfig& optimizer) {
  return optimizer.schedule() != OptimizerConfig::CONSTANT &&
         optimizer.schedule() != OptimizerConfig::INVERSE_SQRT;
}

// Whether pushes may be encoded as signs.
bool MaySendSigns(const PushCodecConfig& codec) {
  const std::vector<std::string> names = CandidateNames(codec.auto_());
  return codec.has_one_bit() ||
         (codec.has_auto_() && std::find(names.begin(), names.end(), "one_bit") != names.end());
}

bool PlainlySummed(const JobConfig& config) { return config.sync().policy() == SyncConfig::BSP; }

bool HasCodec(const JobConfig& config) {
  return config.comm().push_codec().codec_case() != PushCodecConfig::CODEC_NOT_SET;
}

bool FreesGradients(const JobConfig& config) { return PlacementModeOf(config).frees_gradients; }

bool CachesWeights(const JobConfig& config) { return config.placement().host_weight_cache(); }

bool FreesWeights(const JobConfig& config) { return PlacementModeOf(config).frees_weights; }

// Invalid combinations, in the order of the checks.
constexpr ValidityRule kValidityRules[] = {
    {"cluster.workers", "cluster.virtual_workers",
     [](const JobConfig& c) { return c.cluster().workers() > c.cluster().virtual_workers(); },
     "every worker carries at least one virtual worker: start fewer workers or set more virtual "
     "workers"},
    {"cluster.virtual_workers", "model.external",
     [](const JobConfig& c) {
       return c.model().external() && c.cluster().virtual_workers() != c.cluster().workers();
     },
     "a program pushes one gradient a step: leave virtual_workers out"},
    {"data.path", "model.external",
     [](const JobConfig& c) { return c.model().external() && !c.data().path().empty(); },
     "programs with a model of their own read their own data: leave data.path out"},
    {"train.init_from", "model.external",
     [](const JobConfig& c) { return c.model().external() && !c.train().init_from().empty(); },
     "programs with a model of their own set its weights: leave train.init_from out"},
    {"data.random.samples", "model.external",
     [](const JobConfig& c) { return c.model().external() && c.data().random().samples() > 0; },
     "programs with a model of their own read their own data: leave data.random out"},
    {"model.external", "compute",
     [](const JobConfig& c) { return Replays(c) && c.model().external(); },
     "either programs declare the blocks, or a profile has them: leave one of the two out"},
    {"data.path", "compute",
     [](const JobConfig& c) { return Replays(c) && !c.data().path().empty(); },
     "a replay reads no data: leave data.path out"},
    {"data.random.samples", "compute",
     [](const JobConfig& c) { return Replays(c) && c.data().random().samples() > 0; },
     "a replay reads no data: leave data.random out"},
    {"train.init_from", "compute",
     [](const JobConfig& c) { return Replays(c) && !c.train().init_from().empty(); },
     "a replay has no model whose weights could be read: leave train.init_from out"},
    {"train.precision", "compute",
     [](const JobConfig& c) { return Replays(c) && c.train().precision() != TrainConfig::FP32; },
     "a replay computes nothing: choose what is sent with comm.push_codec and comm.pull_format"},
    {"train.patience", "compute",
     [](const JobConfig& c) { return Replays(c) && c.train().patience() > 0; },
     "a replay evaluates nothing: leave train.patience out"},
    {"replay.profile", "compute",
     [](const JobConfig& c) { return Replays(c) && c.replay().profile().empty(); },
     "there is nothing to replay: set replay.profile to vgg16, resnet50, gpt2_124m or a file"},
    {"replay.profile", "compute",
     [](const JobConfig& c) { return !Replays(c) && !c.replay().profile().empty(); },
     "only a replay reads it: set compute to REPLAY, or leave replay.profile out"},
    {"data.random.samples", "model.family",
     [](const JobConfig& c) {
       return c.data().random().samples() > 0 && c.model().family() != ModelConfig::ENCODER;
     },
     "random samples are for a classifier: set model.family to ENCODER"},
    {"data.random.samples", "data.random.symbols",
     [](const JobConfig& c) {
       return c.data().random().samples() > 0 && c.data().random().symbols() == 0;
     },
     "random tokens are of 0 .. symbols - 1: set data.random.symbols"},
    {"data.random.samples", "data.path",
     [](const JobConfig& c) { return c.data().random().samples() > 0 && !c.data().path().empty(); },
     "random tokens take the place of text: leave one of the two out"},
    {"data.tokenizer", "data.tokenizer_path",
     [](const JobConfig& c) {
       return c.data().tokenizer() == DataConfig::GPT2_BPE && c.data().tokenizer_path().empty();
     },
     "its pieces are read, not trained: set data.tokenizer_path to a folder with "
     "tokenizer.json, or with vocab.json and merges.txt"},
    {"data.tokenizer_path", "data.tokenizer",
     [](const JobConfig& c) { return !OnPieces(c.data()) && !c.data().tokenizer_path().empty(); },
     "only SENTENCEPIECE and GPT2_BPE are read from files: choose one of them or leave the path "
     "out"},
    {"model.classes", "model.family",
     [](const JobConfig& c) {
       return c.model().classes() > 0 && c.model().family() != ModelConfig::ENCODER;
     },
     "only an ENCODER tells classes apart: leave model.classes out"},
    {"model.width", "model.heads",
     [](const JobConfig& c) { return c.model().width() % c.model().heads() != 0; },
     "each head gets an equal share: choose a width that is a multiple of heads"},
    {"model.context", "model.heads",
     [](const JobConfig& c) {
       const uint64_t context = c.model().context(), row = (context + 63) / 64 * 64;
       return TrainsOwnModel(c) && context * row > (uint64_t{1} << 34) / c.model().heads();
     },
     "a sample has at most 2^34 attention weights: shorten the context or use fewer heads"},
    {"train.global_batch", "cluster.virtual_workers",
     [](const JobConfig& c) {
       return TrainsOwnModel(c) && c.train().global_batch() % c.cluster().virtual_workers() != 0;
     },
     "each virtual worker gets an equal share: choose a batch that is a multiple of virtual "
     "workers"},
    {"train.micro_batch", "train.global_batch",
     [](const JobConfig& c) {
       const uint32_t share = c.train().global_batch() / c.cluster().virtual_workers();
       return TrainsOwnModel(c) && share % c.train().micro_batch() != 0;
     },
     "a micro batch divides global_batch / virtual_workers: choose a divisor, or leave it out"},
    {"train.eval_samples", "cluster.virtual_workers",
     [](const JobConfig& c) {
       return TrainsOwnModel(c) && c.train().eval_samples() > 0 &&
              c.train().eval_samples() < c.cluster().virtual_workers();
     },
     "every virtual worker evaluates a share: read at least as many samples, or 0 for all"},
    {"train.recompute_layers", "model.layers",
     [](const JobConfig& c) { return c.train().recompute_layers() > c.model().layers(); },
     "there are no more layers to compute again: lower it"},
    {"train.patience", "train.eval_interval",
     [](const JobConfig& c) {
       return c.train().patience() > 0 && c.train().eval_interval() == 0 && TrainsOwnModel(c);
     },
     "the only evaluation is at the end, where there is nothing to stop: set an interval"},
    {"train.patience", "data.validation_fraction",
     [](const JobConfig& c) {
       return c.train().patience() > 0 && c.data().validation_fraction() == 0 && TrainsOwnModel(c);
     },
     "without a validation split nothing is evaluated: set a fraction, or leave patience out"},
    {"optimizer.warmup_steps", "train.steps",
     [](const JobConfig& c) { return c.optimizer().warmup_steps() >= c.train().steps(); },
     "warm-up ends before training does: warm up for fewer steps or train for more"},
    {"optimizer.decay_steps", "optimizer.warmup_steps",
     [](const JobConfig& c) {
       return Decays(c.optimizer()) && c.optimizer().decay_steps() <= c.optimizer().warmup_steps();
     },
     "the schedule begins where warm-up ends: decay over more steps or warm up for fewer"},
    {"optimizer.min_learning_rate", "optimizer.learning_rate",
     [](const JobConfig& c) {
       return c.optimizer().schedule() != OptimizerConfig::CONSTANT &&
              c.optimizer().min_learning_rate() > c.optimizer().learning_rate();
     },
     "the rate only falls after warm-up: lower the minimum"},
    {"sync.backups", "cluster.virtual_workers",
     [](const JobConfig& c) {
       return c.sync().policy() == SyncConfig::BACKUP &&
              c.sync().backups() >= c.cluster().virtual_workers();
     },
     "an update needs one push at least: keep fewer backups or set more virtual workers"},
    {"sync.delay_compensation", "sync.policy",
     [](const JobConfig& c) { return c.sync().delay_compensation() > 0 && !UpdatesByPush(c); },
     "there is no delay to compensate: set sync.policy to SSP or ASP, or leave it out"},
    {"sync.delay_compensation", "optimizer.algorithm",
     [](const JobConfig& c) {
       return c.sync().delay_compensation() > 0 &&
              c.optimizer().algorithm() != OptimizerConfig::SGD;
     },
     "it is derived for SGD: set optimizer.algorithm to SGD, or leave it out"},
    {"sync.record", "sync.policy",
     [](const JobConfig& c) { return c.sync().record() == SyncConfig::ORDER && !UpdatesByPush(c); },
     "only the order of SSP and ASP is not known beforehand: leave sync.record out"},
    {"sync.record", "compute",
     [](const JobConfig& c) { return c.sync().record() == SyncConfig::ORDER && Replays(c); },
     "workers that replay compute nothing that could be computed again: leave sync.record out"},
    {"sync.record", "device",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER && c.device() == ClusterConfig::CUDA;
     },
     "a run is computed again on the CPU: choose device CPU or AUTO"},
    {"sync.record", "model.external",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER && c.model().external();
     },
     "a program's gradients cannot be computed again here: leave sync.record out"},
    {"sync.record", "comm.scheduler",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER && c.comm().scheduler() == CommConfig::AUTO;
     },
     "what is logged is of partitions that do not change: choose another scheduler"},
    {"sync.policy", "model.external",
     [](const JobConfig& c) {
       return c.sync().policy() == SyncConfig::BACKUP && c.model().external();
     },
     "a program cannot skip the steps that others have closed without it: choose another policy"},
    {"optimizer.clip", "model.external",
     [](const JobConfig& c) {
       return c.optimizer().clip() != OptimizerConfig::OFF && UpdatesByPush(c) &&
              c.model().external();
     },
     "under SSP and ASP gradients are clipped where they are made: set optimizer.clip to OFF and "
     "let the program clip"},
    {"sync.local_steps", "model.external",
     [](const JobConfig& c) { return c.sync().local_steps() > 1 && c.model().external(); },
     "a program takes its local steps by itself: leave sync.local_steps out"},
    {"sync.local_steps", "sync.policy",
     [](const JobConfig& c) { return c.sync().local_steps() > 1 && UpdatesByPush(c); },
     "sync.outer is for the mean over virtual workers, which there is not where every push is an "
     "update: set sync.policy to BSP or BACKUP, or leave local steps out"},
    {"sync.local_steps", "optimizer.adamw.freeze_v_after",
     [](const JobConfig& c) {
       return c.sync().local_steps() > 1 && c.optimizer().adamw().freeze_v_after() > 0;
     },
     "local steps are of whole gradients, and a virtual worker that moves begins with a v of "
     "zeros: "
     "leave one of the two out"},
    {"straggler.virtual_worker", "cluster.virtual_workers",
     [](const JobConfig& c) {
       return c.straggler().virtual_worker() >= c.cluster().virtual_workers();
     },
     "there is no such virtual worker: they are numbered from 0"},
    {"straggler.slowdown", "model.external",
     [](const JobConfig& c) { return c.model().external() && c.straggler().slowdown() > 1; },
     "a program is as slow as it is: leave straggler out"},
    {"straggler.pause_probability", "model.external",
     [](const JobConfig& c) {
       return c.model().external() && c.straggler().pause_probability() > 0;
     },
     "a program is as slow as it is: leave straggler out"},
    {"sync.replicas", "cluster.servers",
     [](const JobConfig& c) { return c.sync().replicas() > c.cluster().servers(); },
     "copies of a segment lie on distinct servers: run more servers, or keep fewer copies"},
    {"sync.replicas", "sync.policy",
     [](const JobConfig& c) {
       return c.sync().replicas() > 1 && c.sync().policy() == SyncConfig::BACKUP;
     },
     "a job whose workers skip steps does not outlive the loss of a node: leave sync.replicas out"},
    {"sync.replicas", "model.external",
     [](const JobConfig& c) { return c.sync().replicas() > 1 && c.model().external(); },
     "programs with a model of their own do not outlive the loss of a node: leave sync.replicas "
     "out"},
    {"sync.replicas", "sync.record",
     [](const JobConfig& c) {
       return c.sync().replicas() > 1 && c.sync().record() == SyncConfig::ORDER;
     },
     "a log of updates is of lanes that keep their segments: leave one of the two out"},
    {"fault.coordinator_timeout_ms", "fault.failure_timeout_ms",
     [](const JobConfig& c) {
       return c.fault().coordinator_timeout_ms() < c.fault().failure_timeout_ms();
     },
     "nodes wait for a coordinator at least as long as it waits for them: raise it"},
    {"comm.push_codec.error_feedback", nullptr,
     [](const JobConfig& c) {
       return c.comm().push_codec().error_feedback() &&
              c.comm().push_codec().codec_case() == PushCodecConfig::CODEC_NOT_SET;
     },
     "pushes are FP32, which leave nothing out: choose a codec, or leave it out"},
    {"comm.push_codec.error_feedback", nullptr,
     [](const JobConfig& c) {
       return c.comm().push_codec().error_feedback() &&
              IsUnbiased(c.comm().push_codec().codec_case());
     },
     "what qsgd, tern_grad and natural leave out is nothing on average, and fed back it may grow "
     "without bound: leave it out"},
    {"comm.push_codec.auto.candidates", nullptr,
     [](const JobConfig& c) {
       const PushCodecConfig& codec = c.comm().push_codec();
       return codec.has_auto_() && !AreCandidates(CandidateNames(codec.auto_()));
     },
     "candidates are codecs that take error feedback and keep nothing beside it, each once, those "
     "with more bytes first: choose among, in this order, bf16, fp16, int8, int4, one_bit, top_k, "
     "random_k and top_k_int8"},
    {"comm.push_codec.error_feedback", nullptr,
     [](const JobConfig& c) {
       return c.comm().push_codec().has_auto_() && !c.comm().push_codec().error_feedback();
     },
     "auto goes from codec to codec, and what one leaves out the next one makes up for: leave it "
     "out"},
    {"comm.push_codec.qsgd.levels", nullptr,
     [](const JobConfig& c) {
       const PushCodecConfig& codec = c.comm().push_codec();
       const uint64_t n = uint64_t{codec.qsgd().levels()} + 1;
       return codec.has_qsgd() && (n & (n - 1)) != 0;
     },
     "a level is a whole number of bits: choose 1, 3, 7, 15, 31, 63 or 127"},
    {"comm.push_codec.error_feedback", nullptr,
     [](const JobConfig& c) {
       return c.comm().push_codec().has_dgc() && !c.comm().push_codec().error_feedback();
     },
     "the velocities that dgc sends are what it keeps from step to step: leave it out"},
    {"optimizer.algorithm", "comm.push_codec.dgc.momentum",
     [](const JobConfig& c) {
       return c.comm().push_codec().has_dgc() && c.optimizer().algorithm() != OptimizerConfig::SGD;
     },
     "momentum is the workers' with dgc, and servers take steps as they come: choose SGD"},
    {"optimizer.sgd.momentum", "comm.push_codec.dgc.momentum",
     [](const JobConfig& c) {
       return c.comm().push_codec().has_dgc() &&
              c.optimizer().algorithm() == OptimizerConfig::SGD &&
              (c.optimizer().sgd().momentum() > 0 || c.optimizer().sgd().nesterov());
     },
     "momentum is the workers' with dgc, the servers' would come on top: set "
     "optimizer.sgd.momentum to 0 and leave nesterov out"},
    {"sync.local_steps", "comm.push_codec.dgc.momentum",
     [](const JobConfig& c) {
       return c.comm().push_codec().has_dgc() && c.sync().local_steps() > 1;
     },
     "servers have a momentum of their own where workers take local steps: choose another codec, "
     "or leave local_steps out"},
    {"optimizer.adamw.freeze_v_after", "sync.policy",
     [](const JobConfig& c) {
       return c.optimizer().adamw().freeze_v_after() > 0 && MaySendSigns(c.comm().push_codec()) &&
              c.sync().policy() == SyncConfig::ASP;
     },
     "signs come before the last whole gradients where nobody waits, and would go into v: choose "
     "another policy, or optimizer.algorithm SGD"},
    {"sync.record", "comm.push_codec.error_feedback",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER && c.comm().push_codec().error_feedback();
     },
     "what pushes leave out is not recorded: leave one of the two out"},
    {"sync.record", "comm.pull_format",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER && c.comm().pull_format() == CommConfig::INT8;
     },
     "a run is computed again with weights of FP32 or BF16: choose one of them"},
    {"comm.pull_format", "sync.policy",
     [](const JobConfig& c) {
       return c.comm().pull_format() == CommConfig::CHANGES && c.sync().policy() != SyncConfig::BSP;
     },
     "changes are of what all workers hold, and only BSP has them hold the same: choose that "
     "policy, or INT8"},
    {"comm.pull_format", "model.external",
     [](const JobConfig& c) {
       return c.comm().pull_format() == CommConfig::CHANGES && c.model().external();
     },
     "a program may write where changes would be added: choose INT8"},
    {"sync.record", "comm.pull_format",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER &&
              c.comm().pull_format() == CommConfig::PULL_AUTO;
     },
     "which weights came as INT8 is not recorded: choose FP32 or BF16"},
    {"cluster.servers", "exchange",
     [](const JobConfig& c) {
       return AllReduces(c) && c.cluster().servers() != c.cluster().workers();
     },
     "a server beside each worker reduces for it: leave cluster.servers out, or make it as many as "
     "cluster.workers"},
    {"cluster.lanes_per_server", "exchange",
     [](const JobConfig& c) { return AllReduces(c) && c.cluster().lanes_per_server() != 1; },
     "the server beside a worker has all segments in one lane: leave lanes_per_server out"},
    {"cluster.spare_servers", "exchange",
     [](const JobConfig& c) { return AllReduces(c) && c.cluster().spare_servers() > 0; },
     "an all-reduce ends when one of its ranks is lost: leave spare servers out, and resume"},
    {"sync.policy", "exchange",
     [](const JobConfig& c) { return AllReduces(c) && !PlainlySummed(c); },
     "an all-reduce is over when everybody is in: set sync.policy to BSP, or exchange to "
     "PUSH_PULL"},
    {"sync.replicas", "exchange",
     [](const JobConfig& c) { return AllReduces(c) && c.sync().replicas() > 1; },
     "every server has all segments: leave sync.replicas out"},
    {"exchange", nullptr, [](const JobConfig& c) { return AllReduces(c) && HasCodec(c); },
     "pushes go to the server beside the worker, where bytes cost nothing: leave comm.push_codec "
     "out, or set collective.format"},
    {"comm.pull_format", "exchange",
     [](const JobConfig& c) {
       return AllReduces(c) && c.comm().pull_format() != CommConfig::FP32 &&
              c.comm().pull_format() != CommConfig::BF16;
     },
     "weights come from the server beside the worker, where bytes cost nothing: choose FP32 or "
     "BF16"},
    {"comm.impair.loss", "exchange",
     [](const JobConfig& c) { return AllReduces(c) && c.comm().impair().loss() > 0; },
     "nothing of an all-reduce is sent twice: leave comm.impair.loss out"},
    {"placement.kind", "exchange",
     [](const JobConfig& c) {
       return AllReduces(c) && c.placement().kind() != PlacementConfig::SERVERS;
     },
     "every server has all of the state with ALL_REDUCE: leave placement.kind out, or set exchange "
     "to PUSH_PULL"},
    {"cluster.servers", "placement.kind",
     [](const JobConfig& c) {
       return PlacementModeOf(c).beside_workers && c.cluster().servers() != c.cluster().workers();
     },
     "there is a server beside each worker: leave cluster.servers out, or make it as many as "
     "cluster.workers"},
    {"sync.policy", "placement.kind",
     [](const JobConfig& c) { return FreesGradients(c) && !PlainlySummed(c); },
     "a gradient that is let go of cannot be pushed again, and weights pulled twice have to be the "
     "same: set sync.policy to BSP"},
    {"sync.replicas", "placement.kind",
     [](const JobConfig& c) { return FreesGradients(c) && c.sync().replicas() > 1; },
     "a gradient that is let go of cannot be pushed to the next owner: leave sync.replicas out"},
    {"sync.local_steps", "placement.kind",
     [](const JobConfig& c) { return FreesGradients(c) && c.sync().local_steps() > 1; },
     "local steps need all weights and gradients in the worker: choose ZERO1, or leave local steps "
     "out"},
    {"model.external", "placement.kind",
     [](const JobConfig& c) { return FreesGradients(c) && c.model().external(); },
     "memory of a program's weights and gradients is its own: choose SERVERS, ZERO1 or MIXED"},
    {"train.recompute", "placement.kind",
     [](const JobConfig& c) {
       return FreesWeights(c) && c.train().recompute() == TrainConfig::UNIFORM;
     },
     "a backward pass reads the weights of several blocks with UNIFORM: choose FULL or BLOCK"},
    {"comm.pull_format", "placement.kind",
     [](const JobConfig& c) {
       return FreesWeights(c) && (c.comm().pull_format() == CommConfig::CHANGES ||
                                  c.comm().pull_format() == CommConfig::PULL_AUTO);
     },
     "weights are pulled twice, not kept, and have to be the same both times: choose FP32, BF16 or "
     "INT8"},
    {"placement.gradient_blocks", "model.tied_head",
     [](const JobConfig& c) {
       return FreesGradients(c) && TrainsOwnModel(c) && c.model().tied_head() &&
              c.placement().gradient_blocks() < 2;
     },
     "the last block's backward pass writes the embedding's gradient too: keep 2 at least"},
    {"placement.host_weight_cache", "exchange",
     [](const JobConfig& c) { return CachesWeights(c) && AllReduces(c); },
     "the server beside a worker has all weights with ALL_REDUCE: leave it out"},
    {"placement.host_weight_cache", "sync.policy",
     [](const JobConfig& c) { return CachesWeights(c) && !PlainlySummed(c); },
     "what is kept for a host has to be what each of its workers waits for: set sync.policy to "
     "BSP, or leave it out"},
    {"placement.host_weight_cache", "comm.pull_format",
     [](const JobConfig& c) {
       return CachesWeights(c) && (c.comm().pull_format() == CommConfig::CHANGES ||
                                   c.comm().pull_format() == CommConfig::PULL_AUTO);
     },
     "changes follow on what one worker holds, and PULL_AUTO on its own link to the owner: choose "
     "FP32, BF16 or INT8"},
    {"comm.segment_elements", nullptr,
     [](const JobConfig& c) {
       const uint64_t n = c.comm().segment_elements();
       return (n & (n - 1)) != 0;
     },
     "segments are powers of two: choose 65536, 131072, 262144, ..."},
    {"comm.credit_bytes", "comm.partition_bytes",
     [](const JobConfig& c) { return c.comm().credit_bytes() < c.comm().partition_bytes(); },
     "a partition that exceeds the credit is never sent: raise the credit"},
    {"comm.credit_bytes", "comm.segment_elements",
     [](const JobConfig& c) {
       return c.comm().credit_bytes() < kFloatBytes * c.comm().segment_elements();
     },
     "a segment (4 bytes an element) that exceeds the credit is never sent: raise the credit"},
    {"fault.failure_timeout_ms", "fault.heartbeat_ms",
     [](const JobConfig& c) {
       return c.fault().failure_timeout_ms() < 3 * c.fault().heartbeat_ms();
     },
     "a node may miss two heartbeats: wait at least 3 x heartbeat_ms"},
    {"trace.first_step", "train.steps",
     [](const JobConfig& c) {
       return c.trace().steps() > 0 && c.trace().first_step() > c.train().steps();
     },
     "there is no such step to trace: begin with an earlier one (--trace-steps A..B)"},
};

}  // namespace

std::span<const ValidityRule> ValidityRules() { return kValidityRules; }

}  // namespace tug
