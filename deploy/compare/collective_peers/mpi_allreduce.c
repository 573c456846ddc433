/* SPDX-License-Identifier: Apache-2.0 */
// Times MPI_Allreduce, FP32 sums in place. Prints "BYTES SECONDS" for each size: the mean over as
// many calls as fit into SECONDS. deploy/compare/collectives runs it under mpirun.
//   mpi_allreduce SECONDS BYTES...
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int kMaxCalls = 10000;

static double TimeCalls(float* buffer, int count, int calls) {
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) {
    MPI_Allreduce(MPI_IN_PLACE, buffer, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - begin) / calls;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double seconds = atof(argv[1]);
  for (int a = 2; a < argc; ++a) {
    const size_t bytes = strtoull(argv[a], NULL, 10);
    const int count = (int)(bytes / sizeof(float));
    float* const buffer = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    memset(buffer, 0, bytes);
    TimeCalls(buffer, count, 1);
    const double wanted = seconds / TimeCalls(buffer, count, 2);
    int calls = wanted < 1 ? 1 : wanted > kMaxCalls ? kMaxCalls : (int)wanted;
    MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
    double mean = TimeCalls(buffer, count, calls);
    double slowest = 0;
    MPI_Reduce(&mean, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%zu %.9g\n", bytes, slowest);
    free(buffer);
  }
  MPI_Finalize();
  return 0;
}
