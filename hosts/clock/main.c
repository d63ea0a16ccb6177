/* SPDX-License-Identifier: MIT */
/* Command line of forktail-clock, which `forktail clock` runs. It needs no privileges and no code of the
 * recorder or the load generator, so it runs on any host. */
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
    {"listen", OPTION_LISTEN, "ADDR:PORT", 0,
     "Answer on this address and port (default: port 7380 on all addresses)", 1},
    {0},
};

static const struct argp_option probe_table[] = {
    {"output", 'o', "FILE", 0, "Write the recording to FILE", 1},
    {"interval", OPTION_INTERVAL, "TIME", 0,
     "Send a burst of round trips every TIME (1ms to 60s; default: 100ms)", 1},
    {"duration", OPTION_DURATION, "TIME", 0, "Stop after TIME (default: run until SIGINT or SIGTERM)", 1},
    {"wait", OPTION_WAIT, "TIME", 0, "Wait up to TIME for the first answer (1ms to 1d; default: 10s)", 1},
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
		argp_error(state, "'%s' is not a valid time for this option", text);
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
			argp_error(state, "more than one peer given: name one");
		o->peer = text;
		break;
	case ARGP_KEY_END:
		if (!o->peer || !o->output)
			argp_error(state, "name the peer and the recording: ADDR[:PORT] -o FILE");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp serve_argp = {
    .options = serve_options,
    .parser = parse_serve,
    .doc = "Answer other hosts that compare their clock with this host's clock "
	   "(docs/how-it-works/clocks.md)."};
static const struct argp probe_argp = {
    .options = probe_table,
    .parser = parse_probe,
    .args_doc = "ADDR[:PORT]",
    .doc = "Compare this host's clock with another host's clock and record the result "
	   "(docs/how-it-works/clocks.md)."};

static int usage(FILE *to)
{
	fprintf(to, "Usage: forktail clock serve [--listen ADDR:PORT]\n"
		    "       forktail clock probe ADDR[:PORT] -o FILE [--interval TIME] [--duration TIME]\n"
		    "forktail clock serve --help and forktail clock probe --help print the options.\n");
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
