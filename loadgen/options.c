/* SPDX-License-Identifier: MIT */
/* Command line and environment. Letters that redis-benchmark has keep its meaning here; long names are
 * memtier_benchmark's where it has the same thing. A password never comes from the command line, where
 * every user of the host can read it: -a is refused with the way that works. */
#include "options.h"

#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>

#include "parse.h"

/* -P times the value size: what one connection's batch may need in memory. */
#define BATCH_BYTES_MAX (256u << 20)

enum {
	OPTION_USER = 256,
	OPTION_PASSWORD_FILE,
	OPTION_DATABASE,
	OPTION_THREADS,
	OPTION_RATIO,
	OPTION_DURATION,
	OPTION_RATE,
	OPTION_ARRIVAL,
	OPTION_SEED,
	OPTION_FILL,
	OPTION_JSON,
	OPTION_DRAIN,
	OPTION_LOADING_WAIT,
};

static const struct argp_option table[] = {
    {0, 0, 0, 0, "The server:", 1},
    {"host", 'h', "HOST", 0, "Host name or address, IPv4 or IPv6 (127.0.0.1)", 0},
    {"port", 'p', "PORT", 0, "TCP port (6379)", 0},
    {"socket", 's', "PATH", 0, "Unix socket, in place of host and port", 0},
    {"user", OPTION_USER, "NAME", 0, "ACL user to log in as (the default user)", 0},
    {"password-file", OPTION_PASSWORD_FILE, "FILE", 0,
     "Read the password from FILE's first line; else it is $FORKTAIL_PASSWORD or $REDISCLI_AUTH", 0},
    {"dbnum", OPTION_DATABASE, "N", 0, "Database number (0)", 0},
    {"loading-wait", OPTION_LOADING_WAIT, "TIME", 0,
     "How long to wait for a server that loads its data (60s)", 0},
    {0, 0, 0, 0, "What is sent:", 2},
    {"ratio", OPTION_RATIO, "SETS:GETS", 0, "Mix SET and GET at random in this proportion (1:10)", 0},
    {"tests", 't', "LIST", 0, "Run tests one after the other instead of a mix: set, get", 0},
    {"key-space", 'r', "N", 0, "Random keys key:000000000000 to N-1 (one fixed key)", 0},
    {"data-size", 'd', "BYTES", 0, "Size of a value (3)", 0},
    {"fill", OPTION_FILL, "N", 0, "Set the first N keys in order, each once, and end", 0},
    {"seed", OPTION_SEED, "N", 0, "Repeat a run's keys, operations and arrivals (random)", 0},
    {0, 0, 0, 0, "How it is sent:", 3},
    {"connections", 'c', "N", 0, "Connections over all threads (50)", 0},
    {"threads", OPTION_THREADS, "N", 0, "Load threads (1)", 0},
    {"pipeline", 'P', "N", 0, "Requests on their way per connection (1; 64 for --fill)", 0},
    {"requests", 'n', "N", 0, "Requests in all (100000, or no limit with --duration)", 0},
    {"duration", OPTION_DURATION, "TIME", 0, "How long to send: 60, 500ms, 2m, 1h", 0},
    {"rate", OPTION_RATE, "N", 0, "Open loop: N requests per second fall due, whatever the server does", 0},
    {"arrival", OPTION_ARRIVAL, "KIND", 0, "Of an open loop: constant or poisson (constant)", 0},
    {"drain", OPTION_DRAIN, "TIME", 0, "How long to await answers after the duration (10s)", 0},
    {0, 0, 0, 0, "What is reported:", 4},
    {"output", 'o', "FILE", 0, "Log every request to FILE, a recording for forktail explain", 0},
    {"json", OPTION_JSON, "FILE", 0, "Write the closing figures to FILE as JSON", 0},
    {"quiet", 'q', 0, 0, "No line of progress each second", 0},
    {"password", 'a', "PASSWORD", OPTION_HIDDEN, 0, 0},
    {0},
};

const char *argp_program_version = "forktail-load " FORKTAIL_VERSION;

struct reading {
	struct options *o;
	bool pipeline_given, connections_given;
};

/* One sentence on stderr; the value for argp_parse to return. */
__attribute__((format(printf, 1, 2))) static error_t refuse(const char *format, ...)
{
	va_list args;

	fputs("forktail-load: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return EINVAL;
}

static error_t read_count(const char *text, const char *what, uint64_t low, uint64_t high, uint64_t *out)
{
	if (parse_count(text, low, high, out))
		return 0;
	return refuse("%s is a whole number from %llu to %llu, not \"%s\"", what, (unsigned long long)low,
		      (unsigned long long)high, text);
}

static error_t read_count32(const char *text, const char *what, uint32_t low, uint32_t high, uint32_t *out)
{
	uint64_t value = 0;
	error_t result = read_count(text, what, low, high, &value);

	*out = (uint32_t)value;
	return result;
}

static error_t read_time(const char *text, const char *what, bool zero, uint64_t *ns)
{
	if (parse_duration(text, zero, ns))
		return 0;
	return refuse("%s is a time%s such as 10, 2.5s, 500ms, 3m or 1h, not \"%s\"", what,
		      zero ? "" : " above 0", text);
}

static error_t read_tests(const char *text, struct options *o)
{
	size_t length;

	memset(o->tests, 0, sizeof(o->tests));
	for (;; text += length + 1) {
		bool known = false;

		length = strcspn(text, ",");
		for (int i = 0; i < OPERATIONS; i++) {
			if (strncasecmp(text, operation_names[i], length) != 0 ||
			    strlen(operation_names[i]) != length)
				continue;
			known = o->tests[i] = true;
		}
		if (!known)
			return refuse("there is no test \"%.*s\"; -t takes set and get, separated by commas",
				      (int)length, text);
		if (text[length] == 0)
			return 0;
	}
}

static error_t read_arrival(const char *text, struct options *o)
{
	if (strcmp(text, "constant") == 0)
		o->arrival = ARRIVAL_CONSTANT;
	else if (strcmp(text, "poisson") == 0)
		o->arrival = ARRIVAL_POISSON;
	else
		return refuse("--arrival is constant or poisson, not \"%s\"", text);
	return 0;
}

static error_t check(struct reading *r);

static error_t read_option(int key, char *arg, struct argp_state *state)
{
	struct reading *r = state->input;
	struct options *o = r->o;

	switch (key) {
	case 'h':
		o->host = arg;
		return 0;
	case 'p':
		return read_count32(arg, "-p", 1, 65535, &o->port);
	case 's':
		o->socket = arg;
		return 0;
	case 'a':
		return refuse("a password on the command line can be read by every user of this host; set "
			      "FORKTAIL_PASSWORD in the environment or use --password-file");
	case 'c':
		r->connections_given = true;
		return read_count32(arg, "-c", 1, 1000000, &o->connections);
	case 'n':
		return read_count(arg, "-n", 1, UINT64_MAX / 2, &o->requests);
	case 'd':
		return read_count32(arg, "-d", 1, 64u << 20, &o->value_bytes);
	case 'r':
		return read_count(arg, "-r", 1, KEY_SPACE_MAX, &o->keys);
	case 'P':
		r->pipeline_given = true;
		return read_count32(arg, "-P", 1, 100000, &o->pipeline);
	case 't':
		return read_tests(arg, o);
	case 'q':
		o->quiet = true;
		return 0;
	case 'o':
		o->log_path = arg;
		return 0;
	case OPTION_USER:
		o->user = arg;
		return 0;
	case OPTION_PASSWORD_FILE:
		o->password_file = arg;
		return 0;
	case OPTION_DATABASE:
		return read_count32(arg, "--dbnum", 0, 1000000, &o->database);
	case OPTION_THREADS:
		return read_count32(arg, "--threads", 1, 1024, &o->threads);
	case OPTION_RATIO:
		o->mixed = true;
		return parse_ratio(arg, &o->sets, &o->gets)
			   ? 0
			   : refuse("--ratio is SETS:GETS such as 1:10, not \"%s\"", arg);
	case OPTION_DURATION:
		return read_time(arg, "--duration", false, &o->duration_ns);
	case OPTION_RATE:
		return parse_positive(arg, 1e9, &o->rate)
			   ? 0
			   : refuse("--rate is a number of requests per second above 0, not \"%s\"", arg);
	case OPTION_ARRIVAL:
		return read_arrival(arg, o);
	case OPTION_SEED:
		return read_count(arg, "--seed", 0, UINT64_MAX, &o->seed);
	case OPTION_FILL:
		return read_count(arg, "--fill", 1, KEY_SPACE_MAX, &o->fill);
	case OPTION_JSON:
		o->json_path = arg;
		return 0;
	case OPTION_DRAIN:
		return read_time(arg, "--drain", true, &o->drain_ns);
	case OPTION_LOADING_WAIT:
		return read_time(arg, "--loading-wait", true, &o->loading_ns);
	case ARGP_KEY_ARG:
		return refuse("what is \"%s\"? Everything is said with options; see --help", arg);
	case ARGP_KEY_END:
		return check(r);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* What only shows when all options are known. */
static error_t check(struct reading *r)
{
	struct options *o = r->o;
	bool tests = false;

	for (int i = 0; i < OPERATIONS; i++)
		tests |= o->tests[i];
	if (o->socket && strlen(o->socket) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return refuse("-s is longer than a Unix socket's path may be (%zu bytes)",
			      sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	if (o->fill && (tests || o->mixed || o->requests || o->duration_ns || o->rate > 0 || o->keys))
		return refuse(
		    "--fill sets N keys and ends; -t, --ratio, -n, -r, --duration and --rate don't go "
		    "with it");
	if (tests && o->mixed)
		return refuse("-t runs one test after the other and --ratio mixes them; choose one");
	if (o->rate <= 0 && o->arrival != ARRIVAL_CONSTANT)
		return refuse("--arrival belongs to an open loop; set its --rate");
	if (!o->mixed && !tests && !o->fill) {
		o->mixed = true;
		o->sets = 1;
		o->gets = 10;
	}
	if (!r->connections_given && o->connections < o->threads)
		o->connections = o->threads;
	if (o->connections < o->threads)
		return refuse("%u threads need at least as many connections; -c is %u", o->threads,
			      o->connections);
	if (o->fill && !r->pipeline_given)
		o->pipeline = 64;
	if (o->fill)
		o->requests = o->fill;
	if (!o->requests && !o->duration_ns)
		o->requests = 100000;
	if ((uint64_t)o->pipeline * (o->value_bytes + 64u) > BATCH_BYTES_MAX)
		return refuse("%u requests of %u bytes per batch are more than %u MB; lower -P or -d",
			      o->pipeline, o->value_bytes, BATCH_BYTES_MAX >> 20);
	return 0;
}

/* The first line of a file, without its end. */
static char *first_line(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t length = f ? getline(&line, &room, f) : -1;

	if (length < 0) {
		refuse("can't read the password from %s: %s", path, errno ? strerror(errno) : "it is empty");
		free(line);
		line = NULL;
	} else {
		line[strcspn(line, "\r\n")] = 0;
	}
	if (f)
		fclose(f);
	return line;
}

static int read_password(struct options *o)
{
	static const char *const names[] = {"FORKTAIL_PASSWORD", "REDISCLI_AUTH"};
	const char *value = NULL;

	errno = 0;
	if (o->password_file) {
		o->password = first_line(o->password_file);
		return o->password ? 0 : EXIT_ENVIRONMENT;
	}
	for (size_t i = 0; i < 2 && !(value && *value); i++)
		value = getenv(names[i]);
	if (value && *value)
		o->password = strdup(value);
	if (o->user && !o->password) {
		refuse("--user needs a password: set FORKTAIL_PASSWORD or use --password-file");
		return EXIT_USAGE;
	}
	return 0;
}

int options_read(struct options *o, int argc, char **argv)
{
	static const char about[] =
	    "Puts load on a Redis server, times every request and logs it.\v"
	    "Latency of an open loop (--rate) counts from when a request was due, so a server that stalls is "
	    "charged for every request that had to wait. Exit status: 0 done, 2 wrong usage, 3 the server, "
	    "the "
	    "disk or this host didn't let it finish.";
	const struct argp argp = {table, read_option, 0, about, 0, 0, 0};
	struct reading r = {.o = o};

	*o = (struct options){
	    .host = "127.0.0.1",
	    .port = 6379,
	    .connections = 50,
	    .threads = 1,
	    .pipeline = 1,
	    .value_bytes = 3,
	    .drain_ns = 10000000000u,
	    .loading_ns = 60000000000u,
	};
	if (getrandom(&o->seed, sizeof(o->seed), GRND_NONBLOCK) < 0)
		o->seed = 1;
	o->seed >>= 11; /* a number that every JSON reader keeps */
	argp_err_exit_status = EXIT_USAGE;
	if (argp_parse(&argp, argc, argv, 0, NULL, &r) != 0)
		return EXIT_USAGE;
	return read_password(o);
}

void options_free(struct options *o)
{
	if (o->password)
		explicit_bzero(o->password, strlen(o->password));
	free(o->password);
	o->password = NULL;
}
