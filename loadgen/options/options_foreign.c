/* SPDX-License-Identifier: MIT */
/* Options of redis-benchmark, valkey-benchmark (9.1) and memtier_benchmark (2.4) whose meaning differs here,
 * or that are missing. Names with the same meaning are aliases in options_table.c. */
#include "options_foreign.h"

#include <string.h>

#include "options_values.h"

#define NO_SECOND_TRY                                                                                        \
	"errors are counted, not repeated. --retry TIME is for several servers, where a request was not "    \
	"executed"
#define DATA_SET "use --commands FILE with a line \"data DATASET\""
#define EACH_SECOND "use --series FILE, which has the figures of each second"
#define FEWER_FIRST "use --profile connections:steps:10x5s,20x5s"
#define NO_FUNCTIONS "no test calls functions. Use --command 'FCALL NAME 1 __key__'"
#define NOT_RANDOM "commands are never random. Use --command, --commands or --replay"
#define ONLY_TCP "connections use TCP (-h) or a Unix socket (-s)"
#define OPEN_ALL                                                                                             \
	"all connections open before the load begins. Add them during the load with --profile "              \
	"connections:ramp:"
#define SEE_ADDRESS "use -h with an address of this family"
#define SEE_LOG "use -o FILE, which logs each request with its connection"
#define SEED "omit it. The seed is random without --seed, and connections share no sequence of keys"
#define STATSD "use --statsd HOST:PORT,PREFIX"
#define TEXT "omit it. Values are random text unless --compressible is given"
#define TLS_CIPHERS "--tls uses the ciphers of the system's OpenSSL configuration"

const struct foreign_option foreign_options[] = {
    /* redis-benchmark and valkey-benchmark */
    {"x", "use --repeat N for memtier_benchmark's runs, --command for valkey-benchmark's standard input"},
    {"I", "use --idle N for idle connections"},
    {"e", "use --on-error stop. Errors are always counted and printed"},
    {"precision", "times have three decimals in ms. Use --json FILE for ns"},
    {"enable-tracking", "use -3 --tracking, because servers push invalidations in RESP3 only"},
    {"rfr", "use --cluster --read-from with primary (no), replica (yes) or any (all)"},
    {"num-functions", NO_FUNCTIONS},
    {"num-keys-in-fcall", NO_FUNCTIONS},
    {"dataset", DATA_SET},
    {"maxdocs", "the data set of --commands is read completely. Shorten the file"},
    {"mptcp", ONLY_TCP},
    {"rdma", ONLY_TCP},
    {"tls-ciphers", TLS_CIPHERS},
    {"tls-ciphersuites", TLS_CIPHERS},
    {"fuzz", NOT_RANDOM},
    {"fuzz-mode", NOT_RANDOM},
    {"fuzz-loglevel", NOT_RANDOM},
    /* memtier_benchmark: server */
    {"S", "use -s PATH for a Unix socket"},
    {"4", SEE_ADDRESS},
    {"6", SEE_ADDRESS},
    {"ipv4", SEE_ADDRESS},
    {"ipv6", SEE_ADDRESS},
    {"tls-protocols", "--tls uses TLS 1.2 or later"},
    {"read-preference", "use --read-from with primary, replica, any or nearest"},
    {"read-preference-fallback", "--read-from replica uses the primary of a shard without replicas"},
    {"read-server", "--read-from finds the replicas itself"},
    /* requests */
    {"data-offset", "use --command 'SETRANGE __key__ OFFSET __data__'"},
    {"R", TEXT},
    {"random-data", TEXT},
    {"data-size-pattern", "sizes are drawn at random from -d LOW-HIGH"},
    {"data-import", DATA_SET},
    {"generate-keys", "use -r N, and __key__ in the file of --commands"},
    {"no-expiry", "omit it. Keys expire only with --expiry"},
    {"data-verify", "use --verify, which checks each value when it is read"},
    {"verify-only", "use --verify --ratio 0:1"},
    {"key-minimum", "keys are 0 to N-1. Use -r N"},
    {"key-maximum", "keys are 0 to N-1. Use -r N"},
    {"key-stddev", "use --key-pattern gaussian:SD, where SD is a share of the key space"},
    {"key-median", "--key-pattern gaussian is centred on the middle of the key space"},
    {"key-zipf-exp", "use --key-pattern zipf:S"},
    {"multi-key-get", "use --command 'MGET __key__ __other_key__'"},
    {"wait-ratio", "use --wait N, which waits after each write"},
    {"num-slaves", "use --wait N"},
    {"wait-timeout", "use --wait N,TIME"},
    {"command-key-pattern", "use --commands FILE with key-pattern=NAME before the command"},
    {"monitor-input", "use --replay FILE"},
    {"monitor-pattern", "--replay keeps the recorded order"},
    {"scan-incremental-iteration", "use --command 'SCAN __cursor__'"},
    {"scan-incremental-max-iterations", "--command 'SCAN __cursor__' follows the cursor to its end"},
    {"transaction", "a request is one command. Use --command 'EVAL ...' instead of MULTI and EXEC"},
    {"randomize", SEED},
    {"distinct-client-seed", SEED},
    /* connections, rate and time */
    {"clients", "memtier_benchmark counts this per thread. Use -c N, the total over all threads"},
    {"rate-limiting",
     "memtier_benchmark counts this per connection. Use --rate N, the total over all connections"},
    {"clients-start", FEWER_FIRST},
    {"clients-step", FEWER_FIRST},
    {"step-duration", FEWER_FIRST},
    {"thread-conn-start-min-jitter-micros", OPEN_ALL},
    {"thread-conn-start-max-jitter-micros", OPEN_ALL},
    {"connection-timeout", "connecting takes at most 5 s. Use --timeout TIME to limit each request"},
    {"reconnect-on-error", "use --on-error reconnect"},
    {"reconnect-backoff-factor", "use --backoff TIME for the first pause, which doubles up to 5 s"},
    {"max-reconnect-attempts", "use --max-errors N, because each failed attempt is an error"},
    {"max-retries", NO_SECOND_TRY},
    {"max-retry-queue", NO_SECOND_TRY},
    {"retry-on", NO_SECOND_TRY},
    {"retry-on-error", NO_SECOND_TRY},
    {"retry-backoff-ms", NO_SECOND_TRY},
    {"retry-backoff-factor", NO_SECOND_TRY},
    {"failed-keys-file", SEE_LOG},
    /* output */
    {"out-file", "redirect standard output. -o FILE logs the requests"},
    {"hdr-file-prefix", "use --hlog FILE, which has all operations in one file"},
    {"client-stats", SEE_LOG},
    {"D", SEE_LOG},
    {"debug", SEE_LOG},
    {"show-config", "use -o FILE, whose manifest has the command line"},
    {"hide-histogram", "omit it. The distribution is printed only with --distribution"},
    {"print-all-runs", "omit it. --repeat prints every run"},
    {"command-stats-breakdown", "omit it. Each --command has its own figures"},
    {"realtime-latencies", EACH_SECOND},
    {"latency-window", EACH_SECOND},
    {"statsd-host", STATSD},
    {"statsd-port", STATSD},
    {"statsd-prefix", STATSD},
    {"statsd-run-label", STATSD},
    {"graphite-port", EACH_SECOND},
    {0},
};

enum {
	FOREIGN_OPTIONS = sizeof(foreign_options) / sizeof(*foreign_options) - 1,
	FIRST_KEY = 256, /* above the letters; argp separates our keys from those of options_table.c */
};

static bool is_letter(const struct foreign_option *f)
{
	return !f->name[1];
}

static error_t refuse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	(void)state;
	for (int i = 0; i < FOREIGN_OPTIONS; i++) {
		const struct foreign_option *f = &foreign_options[i];

		if (key == (is_letter(f) ? f->name[0] : FIRST_KEY + i))
			return options_refuse("%s%s: %s", is_letter(f) ? "-" : "--", f->name, f->sentence);
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp_child *options_foreign(void)
{
	static struct argp_option table[FOREIGN_OPTIONS + 1];
	static const struct argp argp = {table, refuse, 0, 0, 0, 0, 0};
	static const struct argp_child children[] = {{&argp, 0, 0, 0}, {0}};

	for (int i = 0; i < FOREIGN_OPTIONS; i++) {
		const struct foreign_option *f = &foreign_options[i];

		/* An optional value, because a value in a separate word would be refused as an argument. */
		table[i] = (struct argp_option){
		    .name = is_letter(f) ? NULL : f->name,
		    .key = is_letter(f) ? f->name[0] : FIRST_KEY + i,
		    .arg = "VALUE",
		    .flags = OPTION_HIDDEN | OPTION_ARG_OPTIONAL,
		};
	}
	return children;
}
