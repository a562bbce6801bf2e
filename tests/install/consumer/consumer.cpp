/* consumer.cpp - one worker in C++ that pushes ones to a variable with `add`: consumer ENDPOINT */
#include <cstdio>
#include <vector>

#include <dtworker.h>

static void
zeros(void *, unsigned, float *values, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        values[i] = 0;
}

static dtw_status
work(dtw_client *client, std::vector<float> &w, dtw_error *err)
{
    const uint64_t shape[] = {w.size()};
    std::vector<float> ones(w.size(), 1.0f);
    const float *gradients[] = {ones.data()};
    float *values[] = {w.data()};
    dtw_variable v = dtw_variable();
    dtw_handle *pull = nullptr;
    uint64_t step = 0;

    v.name = "w", v.n_dims = 1, v.shape = shape, v.optimizer = "add", v.lr = -1;
    dtw_status s = dtw_declare(client, &v, nullptr, err);
    if (s == DTW_OK)
        s = dtw_init(client, zeros, nullptr, &step, err);
    if (s == DTW_OK)
        s = dtw_pull(client, values, step, &pull, err);
    if (s == DTW_OK)
        s = dtw_wait(pull, -1, nullptr, err);
    for (int i = 0; i < 3 && s == DTW_OK; i++)
        s = dtw_step(client, gradients, values, 1, 1, nullptr, err);
    return s == DTW_OK ? dtw_leave(client, 5000, err) : s;
}

int
main(int argc, char **argv)
{
    const char *ps[] = {argc > 1 ? argv[1] : "tcp://127.0.0.1:2222"};
    std::vector<float> w(5);
    dtw_client *client = nullptr;
    dtw_options o;
    dtw_error err = dtw_error();

    dtw_options_init(&o);
    o.ps = ps, o.n_ps = 1, o.job = "consumer", o.workers = 1;
    dtw_status s = dtw_open(&o, &client, &err);
    if (s == DTW_OK)
        s = work(client, w, &err);
    dtw_close(client);
    if (s != DTW_OK)
        std::fprintf(stderr, "consumer: %s: %s\n", dtw_strerror(s), err.text);
    else
        std::printf("w = %g %g\n", w.front(), w.back());
    return s != DTW_OK;
}
