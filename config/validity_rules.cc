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
     "each worker needs a virtual worker; lower cluster.workers or raise cluster.virtual_workers"},
    {"cluster.virtual_workers", "model.external",
     [](const JobConfig& c) {
       return c.model().external() && c.cluster().virtual_workers() != c.cluster().workers();
     },
     "an external worker pushes one gradient per step; remove cluster.virtual_workers"},
    {"data.path", "model.external",
     [](const JobConfig& c) { return c.model().external() && !c.data().path().empty(); },
     "external workers read their own data; remove data.path"},
    {"train.init_from", "model.external",
     [](const JobConfig& c) { return c.model().external() && !c.train().init_from().empty(); },
     "external models declare their own initial weights; remove train.init_from"},
    {"data.random.samples", "model.external",
     [](const JobConfig& c) { return c.model().external() && c.data().random().samples() > 0; },
     "external workers read their own data; remove data.random"},
    {"model.external", "compute",
     [](const JobConfig& c) { return Replays(c) && c.model().external(); },
     "a replay takes its blocks from a profile; remove model.external, or set compute to CPU"},
    {"data.path", "compute",
     [](const JobConfig& c) { return Replays(c) && !c.data().path().empty(); },
     "a replay reads no data; remove data.path"},
    {"data.random.samples", "compute",
     [](const JobConfig& c) { return Replays(c) && c.data().random().samples() > 0; },
     "a replay reads no data; remove data.random"},
    {"train.init_from", "compute",
     [](const JobConfig& c) { return Replays(c) && !c.train().init_from().empty(); },
     "a replay has no weights to initialize; remove train.init_from"},
    {"train.precision", "compute",
     [](const JobConfig& c) { return Replays(c) && c.train().precision() != TrainConfig::FP32; },
     "a replay computes nothing; set comm.push_codec and comm.pull_format, not train.precision"},
    {"train.patience", "compute",
     [](const JobConfig& c) { return Replays(c) && c.train().patience() > 0; },
     "a replay has no evaluations; remove train.patience"},
    {"replay.profile", "compute",
     [](const JobConfig& c) { return Replays(c) && c.replay().profile().empty(); },
     "a replay needs a profile; set replay.profile to vgg16, resnet50, gpt2_124m or a file"},
    {"replay.profile", "compute",
     [](const JobConfig& c) { return !Replays(c) && !c.replay().profile().empty(); },
     "only a replay uses a profile; set compute to REPLAY, or remove replay.profile"},
    {"data.random.samples", "model.family",
     [](const JobConfig& c) {
       return c.data().random().samples() > 0 && c.model().family() != ModelConfig::ENCODER;
     },
     "random samples need a classifier; set model.family to ENCODER"},
    {"data.random.samples", "data.random.symbols",
     [](const JobConfig& c) {
       return c.data().random().samples() > 0 && c.data().random().symbols() == 0;
     },
     "random tokens are drawn from 0 to data.random.symbols - 1; set data.random.symbols"},
    {"data.random.samples", "data.path",
     [](const JobConfig& c) { return c.data().random().samples() > 0 && !c.data().path().empty(); },
     "random tokens replace the text; remove data.path or data.random"},
    {"data.tokenizer", "data.tokenizer_path",
     [](const JobConfig& c) {
       return c.data().tokenizer() == DataConfig::GPT2_BPE && c.data().tokenizer_path().empty();
     },
     "GPT2_BPE is read from files; set data.tokenizer_path to a folder with tokenizer.json, or "
     "with vocab.json and merges.txt"},
    {"data.tokenizer_path", "data.tokenizer",
     [](const JobConfig& c) { return !OnPieces(c.data()) && !c.data().tokenizer_path().empty(); },
     "only SENTENCEPIECE and GPT2_BPE are read from files; set data.tokenizer to one of them, or "
     "remove data.tokenizer_path"},
    {"model.classes", "model.family",
     [](const JobConfig& c) {
       return c.model().classes() > 0 && c.model().family() != ModelConfig::ENCODER;
     },
     "only an ENCODER is a classifier; remove model.classes"},
    {"model.width", "model.heads",
     [](const JobConfig& c) { return c.model().width() % c.model().heads() != 0; },
     "model.width must be a multiple of model.heads"},
    {"model.context", "model.heads",
     [](const JobConfig& c) {
       const uint64_t context = c.model().context(), row = (context + 63) / 64 * 64;
       return TrainsOwnModel(c) && context * row > (uint64_t{1} << 34) / c.model().heads();
     },
     "a sample may have at most 2^34 attention weights; lower model.context or model.heads"},
    {"train.global_batch", "cluster.virtual_workers",
     [](const JobConfig& c) {
       return TrainsOwnModel(c) && c.train().global_batch() % c.cluster().virtual_workers() != 0;
     },
     "train.global_batch must be a multiple of cluster.virtual_workers"},
    {"train.micro_batch", "train.global_batch",
     [](const JobConfig& c) {
       const uint32_t share = c.train().global_batch() / c.cluster().virtual_workers();
       return TrainsOwnModel(c) && share % c.train().micro_batch() != 0;
     },
     "train.micro_batch must divide train.global_batch / cluster.virtual_workers; set a divisor of "
     "it, or remove train.micro_batch"},
    {"train.eval_samples", "cluster.virtual_workers",
     [](const JobConfig& c) {
       return TrainsOwnModel(c) && c.train().eval_samples() > 0 &&
              c.train().eval_samples() < c.cluster().virtual_workers();
     },
     "each virtual worker needs a sample; raise train.eval_samples, or set 0 for the whole split"},
    {"train.recompute_layers", "model.layers",
     [](const JobConfig& c) { return c.train().recompute_layers() > c.model().layers(); },
     "the model has fewer layers; lower train.recompute_layers"},
    {"train.patience", "train.eval_interval",
     [](const JobConfig& c) {
       return c.train().patience() > 0 && c.train().eval_interval() == 0 && TrainsOwnModel(c);
     },
     "the only evaluation is at the end; set train.eval_interval, or remove train.patience"},
    {"train.patience", "data.validation_fraction",
     [](const JobConfig& c) {
       return c.train().patience() > 0 && c.data().validation_fraction() == 0 && TrainsOwnModel(c);
     },
     "there are no evaluations; set data.validation_fraction, or remove train.patience"},
    {"optimizer.warmup_steps", "train.steps",
     [](const JobConfig& c) { return c.optimizer().warmup_steps() >= c.train().steps(); },
     "warm-up must end before training does; lower optimizer.warmup_steps or raise train.steps"},
    {"optimizer.decay_steps", "optimizer.warmup_steps",
     [](const JobConfig& c) {
       return Decays(c.optimizer()) && c.optimizer().decay_steps() <= c.optimizer().warmup_steps();
     },
     "decay begins after warm-up; raise optimizer.decay_steps or lower optimizer.warmup_steps"},
    {"optimizer.min_learning_rate", "optimizer.learning_rate",
     [](const JobConfig& c) {
       return c.optimizer().schedule() != OptimizerConfig::CONSTANT &&
              c.optimizer().min_learning_rate() > c.optimizer().learning_rate();
     },
     "the learning rate never rises after warm-up; lower optimizer.min_learning_rate"},
    {"sync.backups", "cluster.virtual_workers",
     [](const JobConfig& c) {
       return c.sync().policy() == SyncConfig::BACKUP &&
              c.sync().backups() >= c.cluster().virtual_workers();
     },
     "an update needs at least one push; lower sync.backups or raise cluster.virtual_workers"},
    {"sync.delay_compensation", "sync.policy",
     [](const JobConfig& c) { return c.sync().delay_compensation() > 0 && !UpdatesByPush(c); },
     "only SSP and ASP have delays; set sync.policy to one, or remove sync.delay_compensation"},
    {"sync.delay_compensation", "optimizer.algorithm",
     [](const JobConfig& c) {
       return c.sync().delay_compensation() > 0 &&
              c.optimizer().algorithm() != OptimizerConfig::SGD;
     },
     "it is derived for SGD; set optimizer.algorithm to SGD, or remove sync.delay_compensation"},
    {"sync.record", "sync.policy",
     [](const JobConfig& c) { return c.sync().record() == SyncConfig::ORDER && !UpdatesByPush(c); },
     "only SSP and ASP runs can be recorded (BSP needs no record); remove sync.record"},
    {"sync.record", "compute",
     [](const JobConfig& c) { return c.sync().record() == SyncConfig::ORDER && Replays(c); },
     "a replay computes nothing that could be recomputed; remove sync.record"},
    {"sync.record", "device",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER && c.device() == ClusterConfig::CUDA;
     },
     "recorded runs are recomputed on the CPU; set device to CPU or AUTO"},
    {"sync.record", "model.external",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER && c.model().external();
     },
     "tug cannot recompute the gradients of external models; remove sync.record"},
    {"sync.record", "comm.scheduler",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER && c.comm().scheduler() == CommConfig::AUTO;
     },
     "a record needs fixed partitions, which AUTO tunes; set another comm.scheduler"},
    {"sync.policy", "model.external",
     [](const JobConfig& c) {
       return c.sync().policy() == SyncConfig::BACKUP && c.model().external();
     },
     "external workers cannot skip steps completed without them; set another sync.policy"},
    {"optimizer.clip", "model.external",
     [](const JobConfig& c) {
       return c.optimizer().clip() != OptimizerConfig::OFF && UpdatesByPush(c) &&
              c.model().external();
     },
     "under SSP and ASP workers clip gradients; set optimizer.clip to OFF and clip in the program"},
    {"sync.local_steps", "model.external",
     [](const JobConfig& c) { return c.sync().local_steps() > 1 && c.model().external(); },
     "external workers take local steps themselves; remove sync.local_steps"},
    {"sync.local_steps", "sync.policy",
     [](const JobConfig& c) { return c.sync().local_steps() > 1 && UpdatesByPush(c); },
     "local steps need one update per step of all virtual workers; set sync.policy to BSP or "
     "BACKUP, or remove sync.local_steps"},
    {"sync.local_steps", "optimizer.adamw.freeze_v_after",
     [](const JobConfig& c) {
       return c.sync().local_steps() > 1 && c.optimizer().adamw().freeze_v_after() > 0;
     },
     "local steps use unencoded gradients, and a virtual worker that moves restarts with v = 0, "
     "which would stay frozen; remove one of the two settings"},
    {"straggler.virtual_worker", "cluster.virtual_workers",
     [](const JobConfig& c) {
       return c.straggler().virtual_worker() >= c.cluster().virtual_workers();
     },
     "virtual workers are numbered from 0; lower straggler.virtual_worker"},
    {"straggler.slowdown", "model.external",
     [](const JobConfig& c) { return c.model().external() && c.straggler().slowdown() > 1; },
     "the straggler settings do not apply to external models; remove them"},
    {"straggler.pause_probability", "model.external",
     [](const JobConfig& c) {
       return c.model().external() && c.straggler().pause_probability() > 0;
     },
     "the straggler settings do not apply to external models; remove them"},
    {"sync.replicas", "cluster.servers",
     [](const JobConfig& c) { return c.sync().replicas() > c.cluster().servers(); },
     "each copy of a segment needs its own server; raise cluster.servers or lower sync.replicas"},
    {"sync.replicas", "sync.policy",
     [](const JobConfig& c) {
       return c.sync().replicas() > 1 && c.sync().policy() == SyncConfig::BACKUP;
     },
     "a job with BACKUP fails when a node is lost, even with replicas; remove sync.replicas"},
    {"sync.replicas", "model.external",
     [](const JobConfig& c) { return c.sync().replicas() > 1 && c.model().external(); },
     "a job with external workers fails when a node is lost; remove sync.replicas"},
    {"sync.replicas", "sync.record",
     [](const JobConfig& c) {
       return c.sync().replicas() > 1 && c.sync().record() == SyncConfig::ORDER;
     },
     "a record needs servers that keep their segments; remove sync.replicas or sync.record"},
    {"fault.coordinator_timeout_ms", "fault.failure_timeout_ms",
     [](const JobConfig& c) {
       return c.fault().coordinator_timeout_ms() < c.fault().failure_timeout_ms();
     },
     "nodes must wait for a coordinator at least as long as it waits for them; raise "
     "fault.coordinator_timeout_ms"},
    {"comm.push_codec.error_feedback", nullptr,
     [](const JobConfig& c) {
       return c.comm().push_codec().error_feedback() &&
              c.comm().push_codec().codec_case() == PushCodecConfig::CODEC_NOT_SET;
     },
     "FP32 pushes have no residual; choose a codec, or remove error_feedback"},
    {"comm.push_codec.error_feedback", nullptr,
     [](const JobConfig& c) {
       return c.comm().push_codec().error_feedback() &&
              IsUnbiased(c.comm().push_codec().codec_case());
     },
     "the residuals of qsgd, tern_grad and natural are zero on average, and with error feedback "
     "they may grow without bound; remove error_feedback"},
    {"comm.push_codec.auto.candidates", nullptr,
     [](const JobConfig& c) {
       const PushCodecConfig& codec = c.comm().push_codec();
       return codec.has_auto_() && !AreCandidates(CandidateNames(codec.auto_()));
     },
     "list some of these codecs, each once and in this order (most bytes first): bf16, fp16, int8, "
     "int4, one_bit, top_k, random_k, top_k_int8"},
    {"comm.push_codec.error_feedback", nullptr,
     [](const JobConfig& c) {
       return c.comm().push_codec().has_auto_() && !c.comm().push_codec().error_feedback();
     },
     "auto switches codecs and needs error feedback for their residuals; remove error_feedback"},
    {"comm.push_codec.qsgd.levels", nullptr,
     [](const JobConfig& c) {
       const PushCodecConfig& codec = c.comm().push_codec();
       const uint64_t n = uint64_t{codec.qsgd().levels()} + 1;
       return codec.has_qsgd() && (n & (n - 1)) != 0;
     },
     "levels must be one less than a power of two; set 1, 3, 7, 15, 31, 63 or 127"},
    {"comm.push_codec.error_feedback", nullptr,
     [](const JobConfig& c) {
       return c.comm().push_codec().has_dgc() && !c.comm().push_codec().error_feedback();
     },
     "dgc keeps its velocities as error feedback; remove error_feedback"},
    {"optimizer.algorithm", "comm.push_codec.dgc.momentum",
     [](const JobConfig& c) {
       return c.comm().push_codec().has_dgc() && c.optimizer().algorithm() != OptimizerConfig::SGD;
     },
     "with dgc workers apply the momentum, and servers must not rescale steps; set "
     "optimizer.algorithm to SGD"},
    {"optimizer.sgd.momentum", "comm.push_codec.dgc.momentum",
     [](const JobConfig& c) {
       return c.comm().push_codec().has_dgc() &&
              c.optimizer().algorithm() == OptimizerConfig::SGD &&
              (c.optimizer().sgd().momentum() > 0 || c.optimizer().sgd().nesterov());
     },
     "with dgc workers apply the momentum, and servers would apply theirs in addition; set "
     "optimizer.sgd.momentum to 0 and remove optimizer.sgd.nesterov"},
    {"sync.local_steps", "comm.push_codec.dgc.momentum",
     [](const JobConfig& c) {
       return c.comm().push_codec().has_dgc() && c.sync().local_steps() > 1;
     },
     "with local steps servers apply their own momentum (sync.outer) in addition to that of dgc; "
     "choose another codec, or remove sync.local_steps"},
    {"optimizer.adamw.freeze_v_after", "sync.policy",
     [](const JobConfig& c) {
       return c.optimizer().adamw().freeze_v_after() > 0 && MaySendSigns(c.comm().push_codec()) &&
              c.sync().policy() == SyncConfig::ASP;
     },
     "under ASP, signs may arrive before the last unencoded gradients and distort v; set another "
     "sync.policy, or optimizer.algorithm to SGD"},
    {"sync.record", "comm.push_codec.error_feedback",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER && c.comm().push_codec().error_feedback();
     },
     "residuals are not recorded; remove sync.record, or set error_feedback to false"},
    {"sync.record", "comm.pull_format",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER && c.comm().pull_format() == CommConfig::INT8;
     },
     "recorded runs are recomputed with FP32 or BF16 weights; set comm.pull_format to one of them"},
    {"comm.pull_format", "sync.policy",
     [](const JobConfig& c) {
       return c.comm().pull_format() == CommConfig::CHANGES && c.sync().policy() != SyncConfig::BSP;
     },
     "CHANGES needs all workers to hold the same weights, as only BSP ensures; set sync.policy to "
     "BSP, or comm.pull_format to INT8"},
    {"comm.pull_format", "model.external",
     [](const JobConfig& c) {
       return c.comm().pull_format() == CommConfig::CHANGES && c.model().external();
     },
     "an external program may overwrite the weights that changes are added to; set "
     "comm.pull_format to INT8"},
    {"sync.record", "comm.pull_format",
     [](const JobConfig& c) {
       return c.sync().record() == SyncConfig::ORDER &&
              c.comm().pull_format() == CommConfig::PULL_AUTO;
     },
     "a record does not show which weights were pulled as INT8; set comm.pull_format to FP32 or "
     "BF16"},
    {"cluster.servers", "exchange",
     [](const JobConfig& c) {
       return AllReduces(c) && c.cluster().servers() != c.cluster().workers();
     },
     "each worker needs a server next to it; remove cluster.servers, or set it to cluster.workers"},
    {"cluster.lanes_per_server", "exchange",
     [](const JobConfig& c) { return AllReduces(c) && c.cluster().lanes_per_server() != 1; },
     "the server next to a worker has all segments in one lane; remove cluster.lanes_per_server"},
    {"cluster.spare_servers", "exchange",
     [](const JobConfig& c) { return AllReduces(c) && c.cluster().spare_servers() > 0; },
     "an all-reduce job ends when a rank is lost (then resume it); remove cluster.spare_servers"},
    {"sync.policy", "exchange",
     [](const JobConfig& c) { return AllReduces(c) && !PlainlySummed(c); },
     "all-reduce waits for all workers; set sync.policy to BSP, or exchange to PUSH_PULL"},
    {"sync.replicas", "exchange",
     [](const JobConfig& c) { return AllReduces(c) && c.sync().replicas() > 1; },
     "with ALL_REDUCE every server has all segments; remove sync.replicas"},
    {"exchange", nullptr, [](const JobConfig& c) { return AllReduces(c) && HasCodec(c); },
     "a worker pushes to the server next to it, without network traffic to save; remove "
     "comm.push_codec, or set collective.format"},
    {"comm.pull_format", "exchange",
     [](const JobConfig& c) {
       return AllReduces(c) && c.comm().pull_format() != CommConfig::FP32 &&
              c.comm().pull_format() != CommConfig::BF16;
     },
     "a worker pulls from the server next to it, without network traffic to save; set "
     "comm.pull_format to FP32 or BF16"},
    {"comm.impair.loss", "exchange",
     [](const JobConfig& c) { return AllReduces(c) && c.comm().impair().loss() > 0; },
     "lost messages of an all-reduce are not resent; remove comm.impair.loss"},
    {"placement.kind", "exchange",
     [](const JobConfig& c) {
       return AllReduces(c) && c.placement().kind() != PlacementConfig::SERVERS;
     },
     "with ALL_REDUCE every server has the whole state; remove placement.kind, or set exchange to "
     "PUSH_PULL"},
    {"cluster.servers", "placement.kind",
     [](const JobConfig& c) {
       return PlacementModeOf(c).beside_workers && c.cluster().servers() != c.cluster().workers();
     },
     "each worker needs a server next to it; remove cluster.servers, or set it to cluster.workers"},
    {"sync.policy", "placement.kind",
     [](const JobConfig& c) { return FreesGradients(c) && !PlainlySummed(c); },
     "ZERO2 and ZERO3 free gradients once received and may pull weights twice, which needs BSP; "
     "set sync.policy to BSP"},
    {"sync.replicas", "placement.kind",
     [](const JobConfig& c) { return FreesGradients(c) && c.sync().replicas() > 1; },
     "ZERO2 and ZERO3 free gradients and cannot push them to a new owner; remove sync.replicas"},
    {"sync.local_steps", "placement.kind",
     [](const JobConfig& c) { return FreesGradients(c) && c.sync().local_steps() > 1; },
     "local steps need all weights and gradients in the worker; set placement.kind to ZERO1, or "
     "remove sync.local_steps"},
    {"model.external", "placement.kind",
     [](const JobConfig& c) { return FreesGradients(c) && c.model().external(); },
     "tug cannot free the weights and gradients of an external program; set placement.kind to "
     "SERVERS, ZERO1 or MIXED"},
    {"train.recompute", "placement.kind",
     [](const JobConfig& c) {
       return FreesWeights(c) && c.train().recompute() == TrainConfig::UNIFORM;
     },
     "UNIFORM recomputes several blocks together, which needs all their weights; set "
     "train.recompute to FULL or BLOCK"},
    {"comm.pull_format", "placement.kind",
     [](const JobConfig& c) {
       return FreesWeights(c) && (c.comm().pull_format() == CommConfig::CHANGES ||
                                  c.comm().pull_format() == CommConfig::PULL_AUTO);
     },
     "ZERO3 pulls the same weights twice, instead of keeping them; set comm.pull_format to FP32, "
     "BF16 or INT8"},
    {"placement.gradient_blocks", "model.tied_head",
     [](const JobConfig& c) {
       return FreesGradients(c) && TrainsOwnModel(c) && c.model().tied_head() &&
              c.placement().gradient_blocks() < 2;
     },
     "the backward pass of the last block also writes the embedding's gradient; set "
     "placement.gradient_blocks to at least 2"},
    {"placement.host_weight_cache", "exchange",
     [](const JobConfig& c) { return CachesWeights(c) && AllReduces(c); },
     "with ALL_REDUCE a worker's server has all weights; remove placement.host_weight_cache"},
    {"placement.host_weight_cache", "sync.policy",
     [](const JobConfig& c) { return CachesWeights(c) && !PlainlySummed(c); },
     "all workers of a host must wait for the same weights; set sync.policy to BSP, or remove "
     "placement.host_weight_cache"},
    {"placement.host_weight_cache", "comm.pull_format",
     [](const JobConfig& c) {
       return CachesWeights(c) && (c.comm().pull_format() == CommConfig::CHANGES ||
                                   c.comm().pull_format() == CommConfig::PULL_AUTO);
     },
     "CHANGES and PULL_AUTO encode weights per worker; set comm.pull_format to FP32, BF16 or INT8"},
    {"comm.segment_elements", nullptr,
     [](const JobConfig& c) {
       const uint64_t n = c.comm().segment_elements();
       return (n & (n - 1)) != 0;
     },
     "it must be a power of two; set 65536, 131072, 262144, ..."},
    {"comm.credit_bytes", "comm.partition_bytes",
     [](const JobConfig& c) { return c.comm().credit_bytes() < c.comm().partition_bytes(); },
     "a partition larger than the credit is never sent; raise comm.credit_bytes or lower "
     "comm.partition_bytes"},
    {"comm.credit_bytes", "comm.segment_elements",
     [](const JobConfig& c) {
       return c.comm().credit_bytes() < kFloatBytes * c.comm().segment_elements();
     },
     "a segment (4 bytes per element) larger than the credit is never sent; raise "
     "comm.credit_bytes or lower comm.segment_elements"},
    {"fault.failure_timeout_ms", "fault.heartbeat_ms",
     [](const JobConfig& c) {
       return c.fault().failure_timeout_ms() < 3 * c.fault().heartbeat_ms();
     },
     "a node may miss two heartbeats; raise fault.failure_timeout_ms to at least 3 x "
     "fault.heartbeat_ms"},
    {"trace.first_step", "train.steps",
     [](const JobConfig& c) {
       return c.trace().steps() > 0 && c.trace().first_step() > c.train().steps();
     },
     "the job ends before that step; lower trace.first_step (--trace-steps A..B)"},
};

}  // namespace

std::span<const ValidityRule> ValidityRules() { return kValidityRules; }

}  // namespace tug
