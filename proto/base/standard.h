/*
 * standard.h - standard input, output and error are open, whatever the parent did. Called first in main.
 */
#ifndef DT_BASE_STANDARD_H
#define DT_BASE_STANDARD_H

/* A closed one is opened such that its use fails: no file or socket that is opened later gets its
 * number, and with it what is printed. */
void dt_standard_files_open(void);

#endif
