/* affinity.c - lists of processors, how workers divide them, and which threads are bound. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "worker/cli/affinity.h"

TestSuite(affinity, .timeout = 60);

static int
first_of(const cpu_set_t *set)
{
    int cpu = 0;

    while (!CPU_ISSET(cpu, set))
        cpu++;
    return cpu;
}

static enum dt_status
parse(char *text, cpu_set_t *out, struct dt_error *err)
{
    return affinity_parse((char *[]){text, NULL}, out, err);
}

Test(affinity, lists_name_processors_that_may_be_used)
{
    cpu_set_t allowed = affinity_allowed(), set;
    struct dt_error err = {DT_OK, ""};
    int first = first_of(&allowed);
    char one[16], range[40];

    snprintf(one, sizeof(one), "%d", first);
    snprintf(range, sizeof(range), "%d-%d", first, first);
    cr_assert_eq(parse(one, &set, &err), DT_OK, "%s", err.text);
    cr_assert(CPU_COUNT(&set) == 1 && CPU_ISSET(first, &set));
    cr_assert_eq(parse(range, &set, &err), DT_OK, "%s", err.text);
    cr_assert(CPU_COUNT(&set) == 1 && CPU_ISSET(first, &set));
    cr_assert_eq(affinity_parse((char *[]){one, range, NULL}, &set, &err), DT_OK);
    cr_assert_eq(CPU_COUNT(&set), 1);
    cr_assert_eq(affinity_parse(NULL, &set, &err), DT_OK);
    cr_assert_eq(CPU_COUNT(&set), 0);
}

Test(affinity, other_lists_are_refused_in_one_line)
{
    char *const bad[] = {
        "", "x", "-1", "0-", "-", "1-0", "0x1", "0 ", "000000000000000000000000000"};
    struct dt_error err;
    cpu_set_t set;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_eq(parse(bad[i], &set, &err), DT_E_USAGE, "'%s'", bad[i]);
        cr_expect(strstr(err.text, "is no processor"), "%s", err.text);
    }
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(parse(i ? "1023" : "18446744073709551615", &set, &err), DT_E_USAGE);
        cr_expect(strstr(err.text, i ? "may not use processor 1023" : "may not use processor 1844"),
                  "%s", err.text);
    }
}

static void
expect_share(const cpu_set_t *allowed, unsigned workers, unsigned each, const char *const *expected)
{
    char text[64];

    for (unsigned rank = 0; rank < workers; rank++) {
        bool bound = affinity_share(allowed, rank, workers, each, text, sizeof(text));

        cr_expect_eq(bound, expected != NULL, "%u of %u, %u each", rank, workers, each);
        if (expected)
            cr_expect_str_eq(text, expected[rank]);
    }
}

Test(affinity, workers_divide_the_processors_where_they_are_as_many)
{
    cpu_set_t odd, one;
    char text[64], small[4];

    CPU_ZERO(&odd);
    CPU_ZERO(&one);
    CPU_SET(5, &one);
    for (int cpu = 1; cpu < 8; cpu += 2)
        CPU_SET(cpu, &odd);
    expect_share(&odd, 4, 1, (const char *[]){"1", "3", "5", "7"});
    expect_share(&odd, 8, 1, NULL); /* two on one, and both may be busy while two others are not */
    expect_share(&odd, 2, 2, (const char *[]){"1,3", "5,7"});
    expect_share(&odd, 1, 4, NULL); /* all are its own anyhow */
    expect_share(&odd, 2, 1, NULL); /* two are left over: another run may want to be there */
    expect_share(&odd, 3, 1, NULL);
    expect_share(&odd, 6, 1, NULL); /* two of them would have to share */
    expect_share(&odd, 2, 3, NULL);
    expect_share(&odd, 1, 8, NULL);
    expect_share(&one, 2, 1, NULL);
    cr_expect_not(affinity_share(&odd, 0, 2, 2, small, 3));
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        CPU_SET(cpu, &odd);
    cr_expect(affinity_share(&odd, 1, 2, CPU_SETSIZE / 2, text, sizeof(text)));
    cr_expect_str_eq(text, "512-1023");
    CPU_CLR(3, &odd);
    CPU_CLR(5, &odd);
    cr_expect(affinity_text(&odd, text, sizeof(text)));
    cr_expect_str_eq(text, "0-2,4,6-1023");
    CPU_ZERO(&odd);
    cr_expect(affinity_text(&odd, text, sizeof(text)));
    cr_expect_str_eq(text, "");
}

struct thread {
    sem_t look;
    cpu_set_t set;
    pthread_t id;
};

static void *
tell(void *arg)
{
    struct thread *t = arg;

    sem_wait(&t->look);
    t->set = affinity_allowed();
    return NULL;
}

static void
start(struct thread *t)
{
    sem_init(&t->look, 0, 0);
    cr_assert_eq(pthread_create(&t->id, NULL, tell, t), 0);
}

static void
finish(struct thread *t)
{
    sem_post(&t->look);
    pthread_join(t->id, NULL);
    sem_destroy(&t->look);
}

Test(affinity, others_are_bound_then_the_caller_and_whom_it_makes)
{
    cpu_set_t allowed = affinity_allowed(), set, self;
    struct thread before, between, after;

    CPU_ZERO(&set);
    affinity_bind_others(&set); /* the empty one binds nobody */
    affinity_bind(&set);
    CPU_SET(first_of(&allowed), &set);
    start(&before);
    affinity_bind_others(&set);
    self = affinity_allowed();
    cr_assert(CPU_EQUAL(&self, &allowed));
    start(&between);
    affinity_bind(&set);
    self = affinity_allowed();
    cr_assert(CPU_EQUAL(&self, &set));
    start(&after);
    finish(&before);
    finish(&between);
    finish(&after);
    cr_assert(CPU_EQUAL(&before.set, &set));
    cr_assert(CPU_EQUAL(&between.set, &allowed));
    cr_assert(CPU_EQUAL(&after.set, &set));
}
