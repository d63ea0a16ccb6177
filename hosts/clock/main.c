/* SPDX-License-Identifier: MIT */
/* forktail-clock's command line, for users of `forktail clock`, who end up here. It needs no privileges and
 * links nothing of the recorder or the load generator, so that it runs on any host of a test. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "common/text/parse.h"
#include "packet.h"

const char *argp_program_version = "forktail-clock " FORKTAIL_VERSION;

enum { OPTION_INTERVAL = 256, OPTION_DURATION, OPTION_WAIT, OPTION_LISTEN };

static const struct argp_option serve_options[] = {
    {"listen", OPTION_LISTEN, "ADDR:PORT", 0, "Listen on this address (default: port 7380 of all addresses)",
     1},
    {0},
};

static const struct argp_option probe_table[] = {
    {"output", 'o', "FILE", 0, "Write the recording to FILE", 1},
    {"interval", OPTION_INTERVAL, "TIME", 0,
     "Send a burst of round trips every TIME (default 100ms; 1ms to 60s)", 1},
    {"duration", OPTION_DURATION, "TIME", 0, "Stop after TIME (default: at SIGINT or SIGTERM)", 1},
    {"wait", OPTION_WAIT, "TIME", 0, "Wait at most TIME for the first answer (default 10s)", 1},
    {0},
};

static error_t parse_serve(int key, char *text, struct argp_state *state)
{
	const char **listen = state->input;

	if (key != OPTION_LISTEN)
		return ARGP_ERR_UNKNOWN;
	*listen = text;
	return 0;
}

static void take_time(struct argp_state *state, const char *text, uint64_t low_ns, uint64_t high_ns,
		      uint64_t *ns)
{
	if (!parse_duration(text, TIME_ANY, 0, ns) || *ns < low_ns || *ns > high_ns)
		argp_error(state, "'%s' is not a time in the option's range", text);
}

static error_t parse_probe(int key, char *text, struct argp_state *state)
{
	static const uint64_t ms = 1000000, day = 86400 * UINT64_C(1000000000);
	struct probe_options *o = state->input;

	switch (key) {
	case 'o':
		o->output = text;
		break;
	case OPTION_INTERVAL:
		take_time(state, text, ms, 60000 * ms, &o->interval_ns);
		break;
	case OPTION_DURATION:
		take_time(state, text, ms, 3650 * day, &o->duration_ns);
		break;
	case OPTION_WAIT:
		take_time(state, text, ms, day, &o->wait_ns);
		break;
	case ARGP_KEY_ARG:
		if (o->peer)
			argp_error(state, "more than one peer. Name one");
		o->peer = text;
		break;
	case ARGP_KEY_END:
		if (!o->peer || !o->output)
			argp_error(state,
				   "peer or output missing. Usage: forktail clock probe ADDR:PORT -o FILE");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp serve_argp = {
    .options = serve_options,
    .parser = parse_serve,
    .doc = "Answer other hosts' clock requests (docs/how-it-works/clocks.md)."};
static const struct argp probe_argp = {
    .options = probe_table,
    .parser = parse_probe,
    .args_doc = "ADDR[:PORT]",
    .doc = "Record how this host's clock compares with another host's (docs/how-it-works/clocks.md)."};

static int usage(FILE *to)
{
	fprintf(to, "Usage: forktail clock serve [--listen ADDR:PORT]\n       forktail clock probe "
		    "ADDR[:PORT] -o FILE [--interval TIME] [--duration TIME]\nFor the options: forktail "
		    "clock serve --help, forktail clock probe --help\n");
	return to == stdout ? CLOCK_DONE : CLOCK_USAGE;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "", *listen = ":" CLOCK_PORT;
	struct probe_options o = {
	    .interval_ns = 100000000, .wait_ns = UINT64_C(10000000000), .argc = argc, .argv = argv};
	static char name[64];

	if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0)
		return usage(stdout);
	if (strcmp(command, "--version") == 0) {
		puts(argp_program_version);
		return CLOCK_DONE;
	}
	argp_err_exit_status = CLOCK_USAGE;
	snprintf(name, sizeof(name), "forktail clock %s", command);
	if (argc > 1)
		argv[1] = name;
	if (strcmp(command, "serve") == 0) {
		argp_parse(&serve_argp, argc - 1, argv + 1, 0, NULL, &listen);
		return clock_serve(listen);
	}
	if (strcmp(command, "probe") == 0) {
		argp_parse(&probe_argp, argc - 1, argv + 1, 0, NULL, &o);
		return clock_probe(&o);
	}
	return usage(stderr);
}
