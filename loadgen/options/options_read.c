/* SPDX-License-Identifier: MIT */
/* Reads command line and environment. A password on the command line is refused, because every user of the
 * host can read it there; the message names the safe ways. */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/text.h"
#include "loadgen/options.h"
#include "loadgen/protocol.h"
#include "options_table.h"

const char *argp_program_version = "forktail-load " FORKTAIL_VERSION;

/* The first line of a file, without its line end. */
static char *first_line(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t length = f ? getline(&line, &room, f) : -1;

	if (length < 0) {
		option_refuse("cannot read the password from %s: %s", path,
			      errno ? strerror(errno) : "the first line is empty");
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
		free(o->password); /* from FORKTAIL_URI */
		o->password = first_line(o->password_file);
		return o->password ? 0 : EXIT_ENVIRONMENT;
	}
	for (size_t i = 0; i < 2 && !(value && *value) && !o->password; i++)
		value = getenv(names[i]);
	if (value && *value)
		o->password = strdup(value);
	if (o->user && !o->password) {
		option_refuse("--user needs a password. Set FORKTAIL_PASSWORD or use --password-file");
		return EXIT_USAGE;
	}
	return 0;
}

/* Options of redis-benchmark, valkey-benchmark (9.1) and memtier_benchmark (2.4) whose meaning differs here,
 * or that are missing. Names with the same meaning are aliases in options_table.c. */

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
    {"R",
     "use --rate N for wrk2's rate, and omit memtier_benchmark's random data. Values are random text unless "
     "--compressible is given"},
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

/* Options of these programs and of YCSB that have a name of ours and another meaning, which their value
 * shows. The first row whose pattern (fnmatch(3), extended) matches applies. */
#define YCSB_FILE "YCSB's -P FILE is --ycsb LETTER here, such as --ycsb A"
#define YCSB_VALUE                                                                                           \
	"YCSB's -p NAME=VALUE: recordcount is -r, operationcount -n, threadcount -c, target --rate, "        \
	"redis.host -h and redis.port -p"

static const struct {
	const char *option, *pattern, *sentence;
} foreign_values[] = {
    {"socket", "*/*", NULL}, /* a path */
    {"socket", "@(localhost|*.*)",
     "-s is a Unix socket here, and no file has this name. memtier_benchmark's -s HOST is -h HOST"},
    {"pipeline", "@(redis|resp2|resp3|memcache_*)", "memtier_benchmark's -P NAME is --protocol NAME"},
    {"pipeline", "*@(workload|/|.)*[a-z]*", YCSB_FILE},
    {"tests", "+([0-9])", "memtier_benchmark's -t N is --threads N"},
    {"port", "*=*", YCSB_VALUE},
    {"requests", "allkeys", "memtier_benchmark's allkeys is --fill N, which sets N keys, each once"},
    {"key-pattern", "[RSGPZ]:[RSGPZ]",
     "memtier_benchmark's letters for SET and GET are one name here: R is uniform, S sequential, P "
     "sequential with "
     "--key-split, G gaussian, Z zipf"},
    {"ycsb", "workload?", "the letter alone names the workload, such as --ycsb A"},
};

static const char *foreign_value(const struct option_row *row, const char *text)
{
	for (size_t i = 0; i < sizeof(foreign_values) / sizeof(*foreign_values); i++)
		if (strcmp(foreign_values[i].option, row->name) == 0 &&
		    fnmatch(foreign_values[i].pattern, text, FNM_EXTMATCH) == 0)
			return row->letter == 's' && access(text, F_OK) == 0 ? NULL
									     : foreign_values[i].sentence;
	return NULL;
}

/* redis-benchmark takes a command behind its options, YCSB begins with run or load. */
static const char *read_words(char **words, struct options *o)
{
	static char sentence[600];
	size_t length = 0;

	(void)o;
	if (strcmp(words[0], "run") == 0 || strcmp(words[0], "load") == 0)
		return strcmp(words[0], "load") == 0 ? "YCSB's load is --ycsb load here"
						     : "YCSB's run is --ycsb LETTER here, such as --ycsb A";
	length = (size_t)snprintf(sentence, sizeof(sentence), "Send a command with --command '");
	for (; *words && length < sizeof(sentence) - 3; words++)
		length += (size_t)snprintf(sentence + length, sizeof(sentence) - length, "%s%s", *words,
					   words[1] ? " " : "'");
	return sentence;
}

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
			return option_refuse("%s%s: %s", is_letter(f) ? "-" : "--", f->name, f->sentence);
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

/* Options with addresses: -h, --server, -u and --sentinel accept the same forms, and a URI contains more than
 * an address. A password in a URI is refused on the command line, where every user of the host can read it.
 * $FORKTAIL_URI may contain one. */

/* Two addresses, or an address and an option, that contradict each other. */
static error_t take_login(const struct address *a, const char *what, struct options *o)
{
	if (a->user && o->user && strcmp(a->user, o->user) != 0)
		return option_refuse("%s names user %s and another option names %s. A run has one user", what,
				     a->user, o->user);
	if (a->has_database && o->database && a->database != o->database)
		return option_refuse(
		    "%s names database %u and another option names %u. A run has one database", what,
		    a->database, o->database);
	if (a->user)
		o->user = a->user;
	if (a->has_database)
		o->database = a->database;
	return 0;
}

/* Parses `text` and applies its parts besides the address. *a: the caller keeps it when 0 is returned. */
static error_t take(const char *text, const char *what, struct options *o, bool secret, struct address *a)
{
	char error[512];
	error_t result = 0;

	if (!address_parse(a, text, error, sizeof(error)))
		result = option_refuse("%s: %s", what, error);
	else if (a->password && !secret)
		result = option_refuse(
		    "every user of this host can read a password on the command line. Remove it from the URI "
		    "and set FORKTAIL_PASSWORD, put the whole URI into FORKTAIL_URI, or use --password-file");
	else if (a->password && !(o->password = strdup(a->password)))
		result = option_refuse("not enough memory for a password");
	else
		result = take_login(a, what, o);
	if (result) {
		address_free(a);
		return result;
	}
	if (a->password)
		explicit_bzero((char *)a->password, strlen(a->password));
	o->given.says_redis |= a->scheme == ADDRESS_REDIS;
	o->given.says_memcached |= a->scheme == ADDRESS_MEMCACHED;
	return 0;
}

static error_t read_server(const char *text, const char *what, struct options *o, bool secret)
{
	struct address a;
	error_t result;

	if (o->server_count == SERVERS_MAX)
		return option_refuse("more than %d --server", SERVERS_MAX);
	result = take(text, what, o, secret, &a);
	if (result)
		return result;
	o->server_memory[o->server_count] = a.memory;
	o->servers[o->server_count++] = a.server;
	return 0;
}

error_t options_read_server(const struct option_row *row, const char *text, struct options *o)
{
	return read_server(text, row->letter ? "-u" : "--server", o, false);
}

error_t options_read_host(const char *text, struct options *o)
{
	if (strstr(text, "://"))
		return read_server(text, "-h", o, false);
	o->given.host = text;
	return 0;
}

error_t options_read_sentinel(const char *text, struct options *o)
{
	struct address a;
	error_t result;

	if (o->sentinel_count == SENTINELS_MAX)
		return option_refuse("more than %d --sentinel", SENTINELS_MAX);
	result = take(text, "--sentinel", o, false, &a);
	if (result)
		return result;
	if (!a.server.port)
		a.server.port = SENTINEL_PORT;
	if (a.server.tls)
		o->tls.on = true; /* the same for all servers of a deployment */
	o->sentinel_memory[o->sentinel_count] = a.memory;
	o->sentinels[o->sentinel_count++] = a.server;
	return 0;
}

/* An entry of --behind: "server0=127.0.0.1:6380", or without the name. */
static error_t read_one_behind(char *text, struct options *o)
{
	size_t name = strcspn(text, "=/:[");
	struct address a;
	char error[512];

	if (o->behind_count == BEHIND_MAX)
		return option_refuse("--behind: more than %d servers", BEHIND_MAX);
	name = text[name] == '=' ? name + 1 : 0;
	if (name == 1)
		return option_refuse("--behind: \"%s\" has no name before its =", text);
	if (!address_parse(&a, text + name, error, sizeof(error))) {
		address_free(&a);
		return option_refuse("--behind: %s", error);
	}
	if (strstr(text + name, "://")) {
		address_free(&a);
		return option_refuse(
		    "--behind: expected HOST:PORT or /PATH as in the proxy's list of servers, got a URI");
	}
	o->behind_names[o->behind_count] = name ? strndup(text, name - 1) : NULL;
	o->behind_memory[o->behind_count] = a.memory;
	o->behind[o->behind_count++] = a.server;
	return 0;
}

error_t options_read_behind(const char *text, struct options *o)
{
	char *list = strdup(text), *rest = list, *one;
	error_t result = list ? 0 : option_refuse("not enough memory for --behind");

	while (!result && (one = strsep(&rest, ",")))
		result = read_one_behind(one, o);
	free(list);
	return result;
}

void options_check_schemes(struct options *o, char *error, size_t size)
{
	const struct given_options *g = &o->given;
	const struct product *product = protocol_of(o->protocol)->product;

	if (g->says_redis && (g->says_memcached || product != &redis_product))
		snprintf(error, size, "memcached does not use a redis:// address. Choose one");
	else if (g->says_memcached && product != &memcached_product)
		o->protocol = product_protocol(&memcached_product);
}

/* The servers of the load: addresses, kind of deployment, and options that can't be combined with several
 * servers. */

/* The addresses of --server, or the one of -h, -p and -s. */
static void settle_servers(struct options *o, char *error, size_t size)
{
	const struct given_options *g = &o->given;
	uint32_t port = g->port ? g->port : protocol_of(o->protocol)->product->port;

	if (g->socket && strlen(g->socket) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		snprintf(error, size, "-s: longer than the path of a Unix socket can be (%zu bytes)",
			 sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
		return;
	}
	if (o->server_count && (g->host || g->socket)) {
		snprintf(error, size, "-h and -s are mutually exclusive with --server");
		return;
	}
	if (o->sentinel_count && (o->server_count || g->host || g->socket || g->port)) {
		snprintf(error, size, "--sentinel finds the server. Remove --server, -h, -p and -s");
		return;
	}
	if (!o->server_count)
		o->servers[o->server_count++] =
		    (struct server_address){.host = g->host ? g->host : "127.0.0.1", .socket = g->socket};
	for (uint32_t i = 0; i < o->server_count; i++)
		if (!o->servers[i].port)
			o->servers[i].port = port;
}

static void settle_deployment(struct options *o, char *error, size_t size)
{
	const struct given_options *g = &o->given;
	const struct product *product = protocol_of(o->protocol)->product;

	o->deployment = g->cluster		       ? DEPLOYMENT_CLUSTER
			: o->sentinel_count	       ? DEPLOYMENT_PRIMARY
			: o->server_count > 1	       ? DEPLOYMENT_RING
			: o->read_from != READ_PRIMARY ? DEPLOYMENT_PRIMARY
						       : DEPLOYMENT_SINGLE;
	if (!product->replicas &&
	    (g->cluster || o->sentinel_count || o->read_from != READ_PRIMARY || o->wait_replicas))
		snprintf(error, size,
			 "--cluster, --sentinel, --read-from and --wait need Redis; %s has no replicas",
			 product->name);
	else if (g->cluster && o->sentinel_count)
		snprintf(
		    error, size,
		    "--cluster and --sentinel are mutually exclusive: a cluster fails over without Sentinel");
	else if (g->master && !o->sentinel_count)
		snprintf(error, size, "--master needs --sentinel");
	else if (o->deployment == DEPLOYMENT_RING && o->read_from != READ_PRIMARY)
		snprintf(error, size,
			 "--read-from needs --cluster, --sentinel or one --server: several --server are not "
			 "replicas of each other");
	else if (g->cluster && o->database)
		snprintf(error, size, "a cluster has database 0 only. Remove --dbnum");
}

/* Options that concern one connection or one server. */
static void check_several(const struct options *o, char *error, size_t size)
{
	const struct given_options *g = &o->given;
	const struct {
		bool given;
		const char *name;
	} all[] = {
	    {o->blocking, o->no_wait ? "--no-wait" : "--blocking"},
	    {o->think_ns > 0, "--think"},
	    {o->reconnect_after > 0, "--reconnect and -k 0"},
	    {o->split, "--key-split"},
	    {o->has_connections_profile, "a profile of connections"},
	    {g->batch, "--batch"},
	    {o->idle > 0, "--idle"},
	    {o->ycsb == 'E', "--ycsb E, whose scans read keys of all servers,"},
	    {o->mode == MODE_INTRINSIC, "--intrinsic"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all) && !*error; i++)
		if (all[i].given)
			snprintf(error, size, "%s does not work with several servers yet", all[i].name);
}

static void check_behind(struct options *o, char *error, size_t size)
{
	char text[300], other[300];

	for (uint32_t i = 0; i < o->behind_count; i++) {
		if (!o->behind[i].port)
			o->behind[i].port = protocol_of(o->protocol)->product->port;
		address_text(&o->behind[i], text, sizeof(text));
		for (uint32_t k = 0; k < i && !*error; k++) {
			address_text(&o->behind[k], other, sizeof(other));
			if (strcmp(text, other) == 0)
				snprintf(error, size, "--behind names %.200s twice", text);
		}
	}
	if (*error || !o->behind_count)
		return;
	if ((o->deployment != DEPLOYMENT_SINGLE && o->deployment != DEPLOYMENT_RING) || o->wait_replicas)
		snprintf(error, size,
			 "--behind lists the servers of a proxy. Remove --cluster, --sentinel, --read-from "
			 "and --wait");
	else if (o->replay_path || o->delivery != DELIVERY_NONE || o->mode != MODE_LOAD)
		snprintf(error, size,
			 "--behind needs a workload whose keys it knows. Remove --replay, --pubsub, "
			 "--handoff and probes");
	else if (!o->log_path)
		snprintf(error, size, "--behind is written to the log. Name the log with -o");
}

void options_check_servers(struct options *o, char *error, size_t size)
{
	const struct given_options *g = &o->given;
	settle_servers(o, error, size);
	if (!*error)
		settle_deployment(o, error, size);
	if (!*error)
		check_behind(o, error, size);
	if (!*error && o->wait_replicas && o->ycsb)
		snprintf(error, size, "--wait does not work with --ycsb. Remove one");
	if (o->deployment == DEPLOYMENT_SINGLE || *error)
		return;
	check_several(o, error, size);
	/* Connections are reopened to a node that returns, or to its successor. */
	if (!g->on_error)
		o->on_error = ON_ERROR_RECONNECT;
}

/* TLS may be enabled for all servers (--tls) or by the address of one, so related options are checked when
 * all addresses are known. */

bool options_tls(const struct options *o)
{
	for (uint32_t i = 0; i < o->server_count; i++)
		if (o->servers[i].tls)
			return true;
	return o->tls.on;
}

const char *options_tls_word(const struct options *o)
{
	return !options_tls(o) || o->mode == MODE_INTRINSIC ? "none"
	       : o->tls.insecure			    ? "not verified"
							    : "verified";
}

void options_check_tls(struct options *o, char *error, size_t size)
{
	struct tls_options *t = &o->tls;
	bool any;

	for (uint32_t i = 0; i < o->server_count; i++)
		o->servers[i].tls |= t->on;
	any = options_tls(o);
	/* Servers that a server names use the same TLS setting. */
	if (any && o->server_count == 1)
		t->on = true;
	if (!any && (t->cacert || t->cacertdir || t->cert || t->key || t->sni || t->insecure))
		snprintf(error, size,
			 "--cacert, --cacertdir, --cert, --key, --sni and --insecure need --tls");
	else if (any && o->delivery != DELIVERY_NONE)
		snprintf(error, size, "--pubsub and --handoff do not support TLS. Remove --tls");
	else if (!t->cert != !t->key)
		snprintf(error, size, "--cert and --key need each other: a certificate and its private key");
	else if (t->insecure && (t->cacert || t->cacertdir))
		snprintf(error, size,
			 "--insecure and --cacert are mutually exclusive: --insecure verifies nothing");
	for (uint32_t i = 0; any && i < o->server_count && !*error; i++)
		if (o->servers[i].socket && o->servers[i].tls && !t->sni && !t->insecure)
			snprintf(error, size,
				 "a Unix socket has no host name to verify. Name the one in the certificate "
				 "with --sni");
}

/* The file of --commands: a command per line, with what belongs to it in front.
 *
 *   # a comment
 *   data products.csv
 *   9 key-pattern=zipf:1.1 key-space=100000 HGETALL __key__
 *   1 FT.SEARCH products "@name:__field:name__"
 *
 * A number is the command's weight (1 without). `data` names a data set, relative to the file. */

enum { FILE_BYTES_MAX = 1 << 20 };

/* The next word of a line, ended with a 0; *line moves behind it. */
static char *take_word(char **line)
{
	char *word = *line + strspn(*line, " \t");
	size_t length = strcspn(word, " \t");

	*line = word + length;
	if (**line)
		*(*line)++ = 0;
	*line += strspn(*line, " \t");
	return word;
}

static bool is_number(const char *word)
{
	size_t digits = strspn(word, "0123456789");

	return digits > 0 && (word[digits] == ' ' || word[digits] == '\t' || !word[digits]);
}

/* What is in front of a command: a weight, key-pattern=, key-space=. */
static bool take_front(char **line, struct custom_command *c, char *why, size_t size)
{
	uint64_t weight;
	char *word;

	*c = (struct custom_command){.weight = 1};
	if (is_number(*line)) {
		word = take_word(line);
		if (!parse_amount(word, 1, 1000000, &weight)) {
			snprintf(why, size, "expected a weight from 1 to 1000000, got \"%s\"", word);
			return false;
		}
		c->weight = (uint32_t)weight;
	}
	for (;;) {
		if (strncmp(*line, "key-pattern=", 12) == 0) {
			word = take_word(line) + 12;
			c->has_distribution = true;
			if (!key_distribution_parse(word, &c->distribution, why, size))
				return false;
		} else if (strncmp(*line, "key-space=", 10) == 0) {
			word = take_word(line) + 10;
			if (!parse_amount(word, 1, KEY_SPACE_MAX, &c->keys)) {
				snprintf(why, size, "key-space: expected a number of keys, got \"%s\"", word);
				return false;
			}
		} else {
			break;
		}
	}
	if (!**line)
		snprintf(why, size, "there is no command in this line");
	else
		c->text = *line;
	return **line != 0;
}

/* `name`, relative to the folder of `beside`. NULL: no memory. */
static char *path_beside(const char *beside, const char *name)
{
	const char *slash = *name == '/' ? NULL : strrchr(beside, '/');
	size_t folder = slash ? (size_t)(slash - beside) + 1 : 0, size = folder + strlen(name) + 1;
	char *path = malloc(size);

	if (path)
		snprintf(path, size, "%.*s%s", (int)folder, beside, name);
	return path;
}

static bool take_line(char *line, const char *path, struct options *o, char *why, size_t size)
{
	char *end = line + strlen(line);
	struct command parsed;

	while (end > line && isspace((unsigned char)end[-1]))
		*--end = 0;
	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return true;
	if (strncmp(line, "data ", 5) == 0) {
		take_word(&line);
		if (o->data_path)
			snprintf(why, size, "there are two data sets");
		else if (!(o->data_path = path_beside(path, line)))
			snprintf(why, size, "not enough memory");
		return !*why;
	}
	if (o->command_count == COMMANDS_MAX) {
		snprintf(why, size, "there are more than %d commands", COMMANDS_MAX);
		return false;
	}
	if (!take_front(&line, &o->commands[o->command_count++], why, size) ||
	    !command_parse(&parsed, line, why, size))
		return false;
	command_free(&parsed);
	return true;
}

error_t options_read_commands(const char *path, struct options *o)
{
	char why[256] = "", *rest, *line;
	uint32_t before = o->command_count, number = 0;
	struct bytes text = {0};
	int rc;

	if (o->commands_text)
		return option_refuse("--commands: only one file can be given");
	rc = bytes_add_file(&text, path, FILE_BYTES_MAX);
	if (rc == 0)
		rc = bytes_reserve(&text, 1) ? 0 : -ENOMEM;
	o->commands_text = rest = text.at;
	if (rc)
		return option_refuse("--commands: cannot read %s: %s", path, strerror(-rc));
	text.at[text.length] = 0;
	while ((line = strsep(&rest, "\n"))) {
		number++;
		if (!take_line(line, path, o, why, sizeof(why)))
			return option_refuse("%s:%u: %s", path, number, why);
	}
	return o->command_count > before ? 0 : option_refuse("%s has no commands", path);
}

/* The command line and the environment. */

/* $FORKTAIL_URI, which applies when no option names a server. */
static error_t read_environment(struct options *o)
{
	const struct given_options *g = &o->given;
	const char *uri = getenv("FORKTAIL_URI");

	if (!uri || !*uri || o->server_count || o->sentinel_count || g->host || g->socket || g->port)
		return 0;
	return read_server(uri, "FORKTAIL_URI", o, true);
}

int options_read(struct options *o, int argc, char **argv)
{
	static const char about[] =
	    "Put load on a Redis or memcached server, measure every request and log it.\vIn an open loop "
	    "(--rate), latency counts from the time a request was due, so a stalled server is charged for "
	    "every request that had to wait. Exit status: 0 done, 1 a --fail-if limit was exceeded, 2 wrong "
	    "usage, 3 the server, the disk or this host stopped the run.";
	const struct option_program program = {
	    .name = "forktail load",
	    .about = about,
	    .rows = options_rows,
	    .others = options_foreign(),
	    .read_arguments = read_words,
	    .foreign_value = foreign_value,
	    .examples =
		"  forktail load -p 6379 --rate 10000 --duration 60 -r 1M -d 100 -o monday/load.forktail\n"
		"  forktail load -p 6379 -t set,get -n 100k -q\n"
		"  forktail load -p 6379 -r 100k --find 'p99 < 2ms'\n"};
	char error[512] = "";
	int status;

	*o = (struct options){
	    .pipeline = 1, .replay_speed = 1, .replay_share = 1, .progress = isatty(STDERR_FILENO)};
	if (getrandom(&o->seed, sizeof(o->seed), GRND_NONBLOCK) < 0)
		o->seed = 1;
	o->seed >>= 11; /* a number that every JSON reader represents exactly */
	argp_err_exit_status = EXIT_USAGE;
	if (option_parse(&program, argc, argv, o) || read_environment(o))
		return EXIT_USAGE;
	options_check(o, error, sizeof(error));
	if (*error) {
		option_refuse("%s", error);
		return EXIT_USAGE;
	}
	status = read_password(o);
	return status == 0 && o->replay_path ? options_read_replay(o) : status;
}

void options_free(struct options *o)
{
	if (o->password)
		explicit_bzero(o->password, strlen(o->password));
	free(o->password);
	o->password = NULL;
	free(o->commands_text);
	free(o->data_path);
	replay_free(o->replay);
	o->replay = NULL;
	for (uint32_t i = 0; i < o->server_count; i++)
		free(o->server_memory[i]);
	for (uint32_t i = 0; i < o->sentinel_count; i++)
		free(o->sentinel_memory[i]);
	for (uint32_t i = 0; i < o->behind_count; i++) {
		free(o->behind_names[i]);
		free(o->behind_memory[i]);
	}
	o->server_count = o->behind_count = 0;
}
