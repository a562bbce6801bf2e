/*
 * lsan.c - Criterion's runner leaks a few bytes of its own at exit: not ours to report. Leaks of a
 * test are still seen, in the process that runs it.
 */
const char *__lsan_default_suppressions(void);

__attribute__((weak, visibility("default"))) const char *
__lsan_default_suppressions(void)
{
    return "leak:libcriterion";
}
