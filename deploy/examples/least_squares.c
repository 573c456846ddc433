/* SPDX-License-Identifier: Apache-2.0 */
/* Least squares by a Tugboat job, as an example of tug.h: every worker makes samples y =
 * w.x + b + noise of its own, computes the gradient of half the squared error in plain loops, and
 * lets the servers do the rest.
 *
 *   least_squares HOST:PORT [FEATURES]
 *
 * Ends with 0 if the weights are found. docs/c_api.md shows how to start it. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tug.h>

enum { SAMPLES = 512, BLOCKS = 2 };

/* The model: `features` weights and one bias, as two blocks. */
typedef struct {
  uint32_t block;
  uint32_t elements;
  float* values;     /* pulled */
  float* gradient;   /* pushed, from the library's memory */
  tug_ticket pulled; /* of the step that comes */
  tug_ticket pushed; /* of the step before */
} part;

static float true_weight(uint32_t feature) { return 0.5f * ((float)(feature % 7) - 3.0f); }
static const float true_bias = 0.75f;

/* Uniform in [-1, 1). */
static float random_number(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (float)(*state >> 40) / 8388608.0f - 1.0f;
}

static void make_samples(uint32_t worker, uint32_t features, float* x, float* y) {
  uint64_t state = 1000u + worker;
  for (uint32_t s = 0; s < SAMPLES; ++s) {
    y[s] = true_bias + 0.05f * random_number(&state);
    for (uint32_t f = 0; f < features; ++f) {
      x[s * features + f] = random_number(&state);
      y[s] += true_weight(f) * x[s * features + f];
    }
  }
}

/* Writes the sum of the gradients over all samples, and returns the sum of the losses. */
static double add_up(uint32_t features, const float* x, const float* y, part* weights, part* bias) {
  double loss = 0;
  for (uint32_t f = 0; f < features; ++f) weights->gradient[f] = 0;
  bias->gradient[0] = 0;
  for (uint32_t s = 0; s < SAMPLES; ++s) {
    float error = bias->values[0] - y[s];
    for (uint32_t f = 0; f < features; ++f) error += weights->values[f] * x[s * features + f];
    for (uint32_t f = 0; f < features; ++f) weights->gradient[f] += error * x[s * features + f];
    bias->gradient[0] += error;
    loss += 0.5 * (double)error * (double)error;
  }
  return loss;
}

/* One line, and the end. */
static void must(tug_context* tug, tug_status status, const char* what) {
  if (status == TUG_OK) return;
  fprintf(stderr, "least_squares: error: %s: %s\n", what, tug_last_error(tug));
  tug_free(tug);
  exit(1);
}

/* Until there is no further step; the weights of the last one are here then. */
static void train(tug_context* tug, uint32_t features, const float* x, const float* y,
                  part parts[BLOCKS]) {
  uint32_t worker = 0;
  uint64_t step = 0;
  tug_status status = TUG_OK;
  must(tug, tug_worker_index(tug, &worker), "tug_worker_index");
  for (int p = 0; p < BLOCKS; ++p) {
    must(tug, tug_pull(tug, parts[p].block, parts[p].values, &parts[p].pulled), "tug_pull");
  }
  while ((status = tug_begin_step(tug, &step)) == TUG_OK) {
    for (int p = 0; p < BLOCKS; ++p) {
      must(tug, tug_wait(tug, parts[p].pulled), "tug_wait");
      if (parts[p].pushed != 0) must(tug, tug_wait(tug, parts[p].pushed), "tug_wait");
    }
    const double loss = add_up(features, x, y, &parts[0], &parts[1]);
    must(tug, tug_report_loss(tug, loss, SAMPLES), "tug_report_loss");
    if (worker == 0 && step % 50 == 0) {
      printf("step %3u  loss %.6f\n", (unsigned)step, loss / SAMPLES);
      fflush(stdout);
    }
    for (int p = BLOCKS - 1; p >= 0; --p) {
      part* it = &parts[p];
      must(tug, tug_push(tug, it->block, it->gradient, SAMPLES, &it->pushed), "tug_push");
      must(tug, tug_pull(tug, it->block, it->values, &it->pulled), "tug_pull");
    }
  }
  if (status != TUG_FINISHED) must(tug, status, "tug_begin_step");
  for (int p = 0; p < BLOCKS; ++p) must(tug, tug_wait(tug, parts[p].pulled), "tug_wait");
}

static float largest_error(const part parts[BLOCKS]) {
  float largest = fabsf(parts[1].values[0] - true_bias);
  for (uint32_t f = 0; f < parts[0].elements; ++f) {
    largest = fmaxf(largest, fabsf(parts[0].values[f] - true_weight(f)));
  }
  return largest;
}

int main(int argc, char** argv) {
  const uint32_t features = argc > 2 ? (uint32_t)atoi(argv[2]) : 32;
  if (argc < 2 || features == 0 || features > 100000) {
    fprintf(stderr, "usage: least_squares HOST:PORT [FEATURES]\n");
    return 2;
  }
  tug_context* tug = NULL;
  part parts[BLOCKS] = {{0, features, NULL, NULL, 0, 0}, {0, 1, NULL, NULL, 0, 0}};
  const char* const names[BLOCKS] = {"weights", "bias"};
  must(tug, tug_init(argv[1], &tug), "tug_init");
  for (int p = 0; p < BLOCKS; ++p) {
    must(tug, tug_declare(tug, names[p], parts[p].elements, 0.0f, 0.0f, 0, &parts[p].block),
         "tug_declare");
  }
  must(tug, tug_start(tug), "tug_start");

  uint32_t worker = 0;
  must(tug, tug_worker_index(tug, &worker), "tug_worker_index");
  float* x = malloc(sizeof(float) * SAMPLES * features);
  float* y = malloc(sizeof(float) * SAMPLES);
  for (int p = 0; p < BLOCKS; ++p) {
    void* memory = NULL;
    must(tug, tug_buffer(tug, sizeof(float) * parts[p].elements, &memory), "tug_buffer");
    parts[p].gradient = memory;
    parts[p].values = malloc(sizeof(float) * parts[p].elements);
    if (parts[p].values == NULL) abort();
  }
  if (x == NULL || y == NULL) abort();

  make_samples(worker, features, x, y);
  train(tug, features, x, y, parts);
  const float error = largest_error(parts);
  printf("worker %u: largest error of a weight %.4f\n", (unsigned)worker, (double)error);

  must(tug, tug_shutdown(tug), "tug_shutdown");
  tug_free(tug);
  for (int p = 0; p < BLOCKS; ++p) free(parts[p].values);
  free(x);
  free(y);
  return error < 0.05f ? 0 : 1;
}
