/*
 * peer_allreduce.c - OpenMPI's side of compare_peers.py, which compiles it: the sum of one buffer over all processes.
 *
 *   mpirun -np 2 peer_allreduce BYTES SECONDS
 *
 * Prints one JSON object: allreduces a second, and whether the last sum is right. One thread a process.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Of n allreduces; the same in all processes. */
static double
seconds_of(const float *in, float *out, int elements, long n)
{
    double begin, seconds;

    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (long i = 0; i < n; i++)
        MPI_Allreduce(in, out, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    seconds = MPI_Wtime() - begin;
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return seconds;
}

/* How many take about so long: as many as are worth measuring, twice as many each time. */
static long
count_for(const float *in, float *out, int elements, double seconds)
{
    long n = 1;
    double took = seconds_of(in, out, elements, n); /* connections, pages */

    for (; (took = seconds_of(in, out, elements, n)) < seconds / 8; n *= 2)
        ;
    return (long)(seconds / took * (double)n) + 1;
}

int
main(int argc, char **argv)
{
    int rank, size, elements = argc > 2 ? (int)(atol(argv[1]) / (long)sizeof(float)) : 0;
    int right = elements > 0;
    float *in = malloc((size_t)elements * sizeof(*in));
    float *out = calloc((size_t)elements, sizeof(*out));
    double seconds;
    long n;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!right || !in || !out)
        MPI_Abort(MPI_COMM_WORLD, 64);
    for (int i = 0; i < elements; i++)
        in[i] = (float)(rank + 1 + i % 7);
    n = count_for(in, out, elements, atof(argv[2]));
    seconds = seconds_of(in, out, elements, n);
    for (int i = 0; i < elements; i++)
        right &= out[i] == (float)(size * (size + 1) / 2 + size * (i % 7));
    if (rank == 0)
        printf("{\"allreduce\": %.6g, \"right\": %s}\n", (double)n / seconds,
               right ? "true" : "false");
    free(in);
    free(out);
    MPI_Finalize();
    return !right;
}
