/*
 * text.c - what the library says: error texts, log lines, the last words of a failed client. Lock held
 * but for client_error.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "worker/lib/handle.h"

enum dtw_status
client_error(struct dtw_error *err, enum dtw_status code, const char *fmt, ...)
{
    char text[sizeof(err->text)]; /* an argument may be err->text itself */
    va_list ap;

    if (!err)
        return code;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    err->code = code;
    memcpy(err->text, text, sizeof(text));
    return code;
}

void
client_log(struct dtw_client *client, enum dtw_log_level level, const char *fmt, ...)
{
    char line[1024];
    va_list ap;

    if (!client->log)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    client->log(client->log_arg, level, line);
}

void
client_fatal(struct dtw_client *client, enum dtw_status code, const char *fmt, ...)
{
    va_list ap;

    if (client->fatal.code != DTW_OK)
        return;
    client->fatal.code = code;
    va_start(ap, fmt);
    vsnprintf(client->fatal.text, sizeof(client->fatal.text), fmt, ap);
    va_end(ap);
    handle_finish_all(client, code, client->fatal.text);
    driver_news(&client->driver);
}
