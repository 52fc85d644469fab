/* Linked into the fork server that is built with sanitizers: it has neither variables nor an output, so that what they
 * are told, and where they say what they found, is compiled in.
 *
 * No search for leaks: it is made at a proper exit, and fork server and shims have none; the first process inside of
 * a sandbox has, but there the search cannot attach to it, which is not to be looked into, and calls that a failure.
 */

const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0:log_path=" FOUND; }

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "print_stacktrace=1:log_path=" FOUND; }
