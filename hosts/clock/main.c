/* SPDX-License-Identifier: MIT */
/* Command line of forktail-clock, which `forktail clock` runs. It needs no privileges and no code of the
 * recorder or the load generator, so it runs on any host. */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/options.h"
#include "common/text.h"
#include "packet.h"
#include "recording/json_block.h"
#include "recording/recording.h"

/* Receives packets with the kernel's arrival time, independent of when this process runs. */

/* Enables the kernel's timestamps; without them the time of reading is used. */
static void stamp_ask(int fd);

/* Receives one packet without waiting. Returns its length, `size` + 1 for longer packets, or a negative
 * errno. *at_ns is CLOCK_MONOTONIC, not earlier than the arrival. `from` may be NULL. */
static int stamp_receive(int fd, void *packet, size_t size, uint64_t *at_ns, struct sockaddr_storage *from,
			 socklen_t *from_size);

/* UDP sockets for addresses as users write them: "host:7380", "[::1]:7380", "host", ":7380". */

/* Returns a socket that is bound to the address (listen; without a host: all addresses) or connected to it.
 * -1: `error` is one sentence. */
static int udp_socket_open(const char *address, bool listen, char *error, size_t size);

/* A descriptor to read SIGINT and SIGTERM from, which are blocked; -1 on failure. */
static int socket_signals(void);

/* The two sides of a clock comparison. Both run until SIGINT or SIGTERM, print errors on stderr and return
 * the exit status. */

enum { CLOCK_DONE = 0, CLOCK_USAGE = 2, CLOCK_ENVIRONMENT = 3 };

/* Answers requests of all hosts. */
static int clock_serve(const char *listen);

struct probe_options {
	const char *peer;   /* address of the server */
	const char *output; /* the recording */
	uint64_t interval_ns;
	uint64_t duration_ns; /* 0: until a signal */
	uint64_t wait_ns;     /* time limit for the first answer */
	int argc;
	char **argv;
};
/* Sends requests periodically and records the answers. */
static int clock_probe(const struct probe_options *o);

const char *argp_program_version = "forktail-clock " FORKTAIL_VERSION;

#define MS UINT64_C(1000000)
#define DAY (86400000 * MS)

/* `low` and `high` of a row: its limits in ns. */
static error_t read_time(const struct option_row *row, const char *text, struct options *o)
{
	uint64_t *ns = (uint64_t *)((char *)o + row->at);

	return parse_duration(text, TIME_ANY, TIME_S, ns) && *ns >= row->low && *ns <= row->high
		   ? 0
		   : option_refuse("--%s: expected a time such as 100ms or 10s, got \"%s\"", row->name, text);
}

#define IS_LIMITED(member, low_, high_)                                                                      \
	IS_READ_ROW(read_time), .at = offsetof(struct options, member), .low = (low_), .high = (high_)

struct options {
	const char *listen;
	struct probe_options probe;
};

static const struct option_row serve_rows[] = {
    {"listen", 0, "ADDR:PORT", "Answer on this address and port (default: port 7380 on all addresses)",
     IS_TEXT(listen)},
    {0},
};

static const struct option_row probe_rows[] = {
    {"output", 'o', "FILE", "Write the recording to FILE", IS_TEXT(probe.output)},
    {"interval", 0, "TIME", "Send a burst of round trips every TIME (1ms to 60s; default: 100ms)",
     IS_LIMITED(probe.interval_ns, MS, 60000 * MS)},
    {"duration", 0, "TIME", "Stop after TIME (default: run until SIGINT or SIGTERM)",
     IS_LIMITED(probe.duration_ns, MS, 3650 * DAY)},
    {"wait", 0, "TIME", "Wait up to TIME for the first answer (1ms to 1d; default: 10s)",
     IS_LIMITED(probe.wait_ns, MS, DAY)},
    {0},
};

static const char *read_peer(char **words, struct options *o)
{
	o->probe.peer = words[0];
	return words[1] ? "Name one peer" : NULL;
}

static const struct option_program serve_program = {
    .name = "forktail clock serve",
    .about = "Answer other hosts that compare their clock with this host's clock "
	     "(docs/how-it-works/clocks.md).",
    .rows = serve_rows,
    .no_arguments = "See forktail clock serve --help",
    .examples = "  forktail clock serve --listen 10.0.0.7:7380\n"};
static const struct option_program probe_program = {
    .name = "forktail clock probe",
    .about = "Compare this host's clock with another host's clock and record the result "
	     "(docs/how-it-works/clocks.md).",
    .rows = probe_rows,
    .arguments = "ADDR[:PORT]",
    .read_arguments = read_peer,
    .examples = "  forktail clock probe 10.0.0.7 -o monday/clock.forktail\n"};

static int usage(FILE *to)
{
	fprintf(to, "Usage: forktail clock serve [--listen ADDR:PORT]\n"
		    "       forktail clock probe ADDR[:PORT] -o FILE [--interval TIME] [--duration TIME]\n"
		    "forktail clock serve --help and forktail clock probe --help print the options.\n");
	return to == stdout ? CLOCK_DONE : CLOCK_USAGE;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	struct options o = {
	    .listen = ":" CLOCK_PORT,
	    .probe = {.interval_ns = 100 * MS, .wait_ns = 10000 * MS, .argc = argc, .argv = argv}};

	if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0)
		return usage(stdout);
	if (strcmp(command, "--version") == 0) {
		puts(argp_program_version);
		return CLOCK_DONE;
	}
	argp_err_exit_status = CLOCK_USAGE;
	if (strcmp(command, "serve") == 0)
		return option_parse(&serve_program, argc - 1, argv + 1, &o) ? CLOCK_USAGE
									    : clock_serve(o.listen);
	if (strcmp(command, "probe") == 0) {
		if (option_parse(&probe_program, argc - 1, argv + 1, &o))
			return CLOCK_USAGE;
		if (!o.probe.peer || !o.probe.output) {
			option_refuse("name the peer and the recording: ADDR[:PORT] -o FILE");
			return CLOCK_USAGE;
		}
		return clock_probe(&o.probe);
	}
	if (*command) {
		fprintf(stderr, "forktail clock: unknown command \"%s\". Use serve or probe\n", command);
		return CLOCK_USAGE;
	}
	return usage(stderr);
}

/* Sends bursts of requests to another host's clock and records round trips. Per burst it records two: the one
 * with the tightest upper bound and the one with the tightest lower bound of the clock offset. The analysis
 * estimates the offset from them (docs/how-it-works/clocks.md). */

enum { BURST = 8 };
static const uint64_t answer_ns = 50000000;   /* later answers give loose bounds */
static const uint64_t clocks_ns = 1000000000; /* interval of clock readings and flushes */

struct prober {
	const struct probe_options *o;
	int fd, signals;
	uint64_t cookie, number, end_ns;
	struct clock_packet peer; /* the first answer: identifies the clock */
	struct ft_writer *w;
	bool ended; /* by a signal */
	const char *reason;
	uint64_t asked, answered, foreign, late, other_clock, lowest_ns;
};

/* Waits for an answer, a signal or the time limit. */
static void wait_until(struct prober *p, uint64_t until_ns, bool for_answer)
{
	struct pollfd polled[2] = {{.fd = p->signals, .events = POLLIN}, {.fd = p->fd, .events = POLLIN}};
	uint64_t now_ns = ft_now_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec left = {(time_t)(left_ns / 1000000000), (long)(left_ns % 1000000000)};

	if (ppoll(polled, for_answer ? 2 : 1, &left, NULL) > 0 && polled[0].revents)
		p->ended = true;
}

/* True if the packet answers the current request; others are counted. */
static bool is_answer(struct prober *p, const struct clock_packet *a, int length, uint64_t sent_ns,
		      uint64_t at_ns)
{
	if (length != sizeof(*a) || a->magic != CLOCK_MAGIC || a->version != CLOCK_VERSION ||
	    a->kind != CLOCK_ANSWERS || a->cookie != p->cookie) {
		p->foreign++;
		return false;
	}
	if (a->number != p->number) { /* or a copy */
		p->late++;
		return false;
	}
	if (at_ns < sent_ns || a->sent_ns < a->received_ns || a->sent_ns >> 62) {
		p->foreign++;
		return false;
	}
	if (p->peer.magic && memcmp(a->clock_id, p->peer.clock_id, sizeof(a->clock_id)) != 0) {
		p->other_clock++;
		return false;
	}
	return true;
}

/* One round trip. False: no answer came in time. */
static bool ask(struct prober *p, struct ft_probe *probe, struct clock_packet *answer)
{
	struct clock_packet question = {.magic = CLOCK_MAGIC,
					.version = CLOCK_VERSION,
					.kind = CLOCK_ASKS,
					.cookie = p->cookie,
					.number = ++p->number};
	uint64_t at_ns = 0;

	p->asked++;
	probe->sent_ns = ft_now_ns();
	/* The peer may be unreachable for a while. */
	if (send(p->fd, &question, sizeof(question), MSG_DONTWAIT) < 0)
		return false;
	while (!p->ended && ft_now_ns() < probe->sent_ns + answer_ns) {
		int n = stamp_receive(p->fd, answer, sizeof(*answer), &at_ns, NULL, NULL);

		if (n == -EAGAIN)
			wait_until(p, probe->sent_ns + answer_ns, true);
		else if (n < 0)
			return false; /* refused, unreachable */
		else if (is_answer(p, answer, n, probe->sent_ns, at_ns)) {
			probe->peer_received_ns = answer->received_ns;
			probe->peer_sent_ns = answer->sent_ns;
			probe->received_ns = at_ns;
			p->number++; /* a duplicate is late */
			p->answered++;
			return true;
		}
	}
	return false;
}

static int64_t at_most_ns(const struct ft_probe *p)
{
	return (int64_t)(p->peer_received_ns - p->sent_ns);
}

static int64_t at_least_ns(const struct ft_probe *p)
{
	return (int64_t)(p->peer_sent_ns - p->received_ns);
}

static void note_lowest(struct prober *p, const struct ft_probe *probe)
{
	uint64_t trip_ns =
	    probe->received_ns - probe->sent_ns - (probe->peer_sent_ns - probe->peer_received_ns);

	if (trip_ns < p->lowest_ns)
		p->lowest_ns = trip_ns;
}

static void burst(struct prober *p)
{
	struct ft_probe most, least, probe = {0};
	struct clock_packet answer;
	uint16_t tried = 0, answered = 0;

	for (; tried < BURST && !p->ended; tried++) {
		if (!ask(p, &probe, &answer))
			continue;
		note_lowest(p, &probe);
		if (!answered || at_most_ns(&probe) < at_most_ns(&most))
			most = probe;
		if (!answered || at_least_ns(&probe) > at_least_ns(&least))
			least = probe;
		answered++;
	}
	if (!answered)
		return;
	most.tried = least.tried = tried;
	most.answered = least.answered = answered;
	ft_writer_record(p->w, FT_BLOCK_PROBE, &most);
	if (least.sent_ns != most.sent_ns)
		ft_writer_record(p->w, FT_BLOCK_PROBE, &least);
}

/* Waits for the first answer, which identifies the clock. */
static bool meet(struct prober *p)
{
	uint64_t end_ns = ft_now_ns() + p->o->wait_ns;
	struct clock_packet answer;
	struct ft_probe probe;

	while (!p->ended && ft_now_ns() < end_ns) {
		if (ask(p, &probe, &answer)) {
			answer.clock_id[sizeof(answer.clock_id) - 1] = 0;
			answer.host[sizeof(answer.host) - 1] = 0;
			p->peer = answer;
			return true;
		}
		wait_until(p, ft_now_ns() + answer_ns, false);
	}
	fprintf(stderr,
		"forktail-clock: %s does not answer: run 'forktail clock serve' there and allow UDP\n",
		p->o->peer);
	return false;
}

static char *manifest(const struct prober *p)
{
	json_t *j = json_object(), *list, *peer;
	char boot[40], clock[FT_CLOCK_ID_BYTES];
	struct utsname u;

	ft_boot_id(boot);
	ft_clock_id(clock);
	json_put_text(j, "program", "forktail-clock");
	json_put_text(j, "version", FORKTAIL_VERSION);
	if (uname(&u) == 0) {
		json_put_text(j, "host", u.nodename);
		json_put_text(j, "kernel", u.release);
	}
	json_put_text(j, "boot_id", boot);
	json_put_text(j, "clock_id", clock);
	list = json_put_array(j, "argv");
	for (int i = 0; i < p->o->argc; i++)
		json_put_text(list, NULL, p->o->argv[i]);
	json_put_count(j, "start_ns", ft_now_ns());
	json_put_count(j, "interval_ns", p->o->interval_ns);
	peer = json_put_object(j, "peer");
	json_put_text(peer, "address", p->o->peer);
	json_put_text(peer, "host", p->peer.host);
	json_put_text(peer, "clock_id", p->peer.clock_id);
	return json_line(j);
}

static char *summary(const struct prober *p)
{
	json_t *j = json_object();

	json_put_text(j, "reason", p->reason);
	json_put_count(j, "end_ns", ft_now_ns());
	json_put_count(j, "asked", p->asked);
	json_put_count(j, "answered", p->answered);
	json_put_count(j, "foreign", p->foreign);
	json_put_count(j, "late", p->late);
	json_put_count(j, "other_clock", p->other_clock);
	return json_line(j);
}

static void probe_on(struct prober *p)
{
	uint64_t next_ns = ft_now_ns(), clock_ns = 0;

	while (!p->ended && next_ns < p->end_ns && !ft_writer_error(p->w)) {
		burst(p);
		if (ft_now_ns() >= clock_ns) {
			struct ft_clock reading;

			ft_clock_read(&reading);
			ft_writer_record(p->w, FT_BLOCK_CLOCK, &reading);
			ft_writer_flush(p->w);
			clock_ns = ft_now_ns() + clocks_ns;
		}
		next_ns += p->o->interval_ns;
		if (next_ns < ft_now_ns())
			next_ns = ft_now_ns();
		wait_until(p, next_ns < p->end_ns ? next_ns : p->end_ns, false);
	}
	p->reason = p->ended ? "signal" : ft_writer_error(p->w) ? "error" : "duration";
}

static int record(struct prober *p)
{
	char *text = manifest(p);
	int rc = text ? ft_writer_open(&p->w, p->o->output, text) : -ENOMEM;

	free(text);
	if (rc) {
		fprintf(stderr, "forktail-clock: cannot write %s: %s\n", p->o->output, ft_writer_why(rc));
		return CLOCK_ENVIRONMENT;
	}
	if (ft_writer_moved(p->w))
		fprintf(stderr, "forktail-clock: the earlier recording is now %s.old\n", p->o->output);
	fprintf(stderr, "forktail-clock: comparing clocks with %s (%s)\n", p->peer.host, p->o->peer);
	p->end_ns = p->o->duration_ns ? ft_now_ns() + p->o->duration_ns : UINT64_MAX;
	probe_on(p);
	text = summary(p);
	rc = ft_writer_close(p->w, text);
	free(text);
	if (rc) {
		fprintf(stderr, "forktail-clock: cannot write %s: %s\n", p->o->output, ft_writer_why(rc));
		return CLOCK_ENVIRONMENT;
	}
	fprintf(stderr,
		"forktail-clock: %" PRIu64 " of %" PRIu64 " round trips answered, lowest delay %.1f us\n",
		p->answered, p->asked, p->lowest_ns == UINT64_MAX ? 0 : (double)p->lowest_ns / 1e3);
	return CLOCK_DONE;
}

static int clock_probe(const struct probe_options *o)
{
	struct prober p = {.o = o, .lowest_ns = UINT64_MAX};
	char error[512];
	int status = CLOCK_ENVIRONMENT;

	if (getrandom(&p.cookie, sizeof(p.cookie), 0) != sizeof(p.cookie))
		p.cookie = ft_now_ns();
	p.signals = socket_signals();
	p.fd = udp_socket_open(o->peer, false, error, sizeof(error));
	if (p.fd < 0 || p.signals < 0)
		fprintf(stderr, "forktail-clock: %s\n", p.fd < 0 ? error : strerror(errno));
	else if (meet(&p))
		status = record(&p);
	if (p.fd >= 0)
		close(p.fd);
	if (p.signals >= 0)
		close(p.signals);
	return status;
}

/* Answers with this host's clock. Invalid packets are dropped silently. The server keeps no state per client,
 * and an answer is as long as its request. */

struct server {
	int fd;
	struct clock_packet answer; /* the fields common to all answers */
	uint64_t answered, dropped;
};

static void answer_one(struct server *s, const struct clock_packet *question, uint64_t at_ns,
		       const struct sockaddr_storage *from, socklen_t from_size)
{
	struct clock_packet answer = s->answer;

	answer.cookie = question->cookie;
	answer.number = question->number;
	answer.received_ns = at_ns;
	answer.sent_ns = ft_now_ns();
	if (sendto(s->fd, &answer, sizeof(answer), MSG_DONTWAIT, (const struct sockaddr *)from, from_size) ==
	    sizeof(answer))
		s->answered++;
}

static void answer_all(struct server *s)
{
	struct clock_packet question;
	struct sockaddr_storage from;
	socklen_t from_size;
	uint64_t at_ns;
	int n;

	while ((n = stamp_receive(s->fd, &question, sizeof(question), &at_ns, &from, &from_size)) >= 0 ||
	       n == -ECONNREFUSED || n == -EINTR) {
		if (n == sizeof(question) && question.magic == CLOCK_MAGIC &&
		    question.version == CLOCK_VERSION && question.kind == CLOCK_ASKS)
			answer_one(s, &question, at_ns, &from, from_size);
		else
			s->dropped++;
	}
}

static int clock_serve(const char *listen)
{
	struct server s = {
	    .answer = {.magic = CLOCK_MAGIC, .version = CLOCK_VERSION, .kind = CLOCK_ANSWERS},
	};
	char error[512];
	int signals = socket_signals();
	struct pollfd polled[2];

	s.fd = udp_socket_open(listen, true, error, sizeof(error));
	if (s.fd < 0 || signals < 0) {
		fprintf(stderr, "forktail-clock: %s\n", s.fd < 0 ? error : strerror(errno));
		return CLOCK_ENVIRONMENT;
	}
	ft_clock_id(s.answer.clock_id);
	gethostname(s.answer.host, sizeof(s.answer.host) - 1);
	fprintf(stderr, "forktail-clock: answering on %s\n", listen);
	polled[0] = (struct pollfd){.fd = s.fd, .events = POLLIN};
	polled[1] = (struct pollfd){.fd = signals, .events = POLLIN};
	while (poll(polled, 2, -1) >= 0 || errno == EINTR) {
		if (polled[1].revents)
			break;
		answer_all(&s);
	}
	fprintf(stderr, "forktail-clock: %llu requests answered, %llu other packets dropped\n",
		(unsigned long long)s.answered, (unsigned long long)s.dropped);
	close(s.fd);
	close(signals);
	return CLOCK_DONE;
}

/* The kernel delivers only the peer's packets to a connected socket. */

/* Splits "host:port". Defaults: host "", port 7380. */
static bool split(const char *address, char host[256], char port[8])
{
	const char *close = address[0] == '[' ? strchr(address, ']') : NULL;
	const char *colon = strrchr(close ? close : address, ':');
	size_t length;

	if (address[0] == '[' && (!close || (close[1] && close[1] != ':')))
		return false;
	if (!close && colon && strchr(address, ':') != colon)
		colon = NULL; /* an IPv6 address without brackets */
	length = close ? (size_t)(close - address - 1) : colon ? (size_t)(colon - address) : strlen(address);
	if (length >= 256 || (colon && (strlen(colon + 1) > 5 || !colon[1])))
		return false;
	memcpy(host, address + (close != NULL), length);
	host[length] = 0;
	snprintf(port, 8, "%s", colon ? colon + 1 : CLOCK_PORT);
	return true;
}

static int open_one(const struct addrinfo *a, bool listen)
{
	int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), off = 0;

	if (fd < 0)
		return -1;
	if (a->ai_family == AF_INET6 && listen)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if ((listen ? bind(fd, a->ai_addr, a->ai_addrlen) : connect(fd, a->ai_addr, a->ai_addrlen)) == 0) {
		stamp_ask(fd);
		return fd;
	}
	listen = errno; /* close may change it */
	close(fd);
	errno = listen;
	return -1;
}

static int udp_socket_open(const char *address, bool listen, char *error, size_t size)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = listen ? AI_PASSIVE : 0}, *all;
	char host[256], port[8];
	int fd = -1, rc;

	if (!split(address, host, port)) {
		snprintf(error, size, "'%s' is not an address: use HOST:PORT", address);
		return -1;
	}
	/* One socket for IPv4 and IPv6, if the host has IPv6. */
	if (listen && !host[0])
		hints.ai_family = AF_INET6;
	rc = getaddrinfo(host[0] ? host : NULL, port, &hints, &all);
	for (struct addrinfo *a = rc ? NULL : all; a && fd < 0; a = a->ai_next)
		fd = open_one(a, listen);
	if (fd < 0)
		snprintf(error, size, "cannot %s %s: %s", listen ? "listen on" : "reach", address,
			 rc ? gai_strerror(rc) : strerror(errno));
	if (rc == 0)
		freeaddrinfo(all);
	if (fd < 0 && listen && !host[0]) {
		char any[32];

		snprintf(any, sizeof(any), "0.0.0.0:%s", port);
		return udp_socket_open(any, true, error, size);
	}
	return fd;
}

static int socket_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* The kernel's timestamps use CLOCK_REALTIME. They are converted by reading both clocks at once.
 * CLOCK_MONOTONIC is read last, because a time that is too late only widens the bound, while one that is too
 * early makes it wrong. */

/* A larger difference means that the clock was set in between. */
enum { LONGEST_NS = 1000000000 };

static void stamp_ask(int fd)
{
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
}

static uint64_t when(struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		struct timespec stamp, real;
		uint64_t now_ns;
		int64_t ago_ns;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&stamp, CMSG_DATA(c), sizeof(stamp));
		clock_gettime(CLOCK_REALTIME, &real);
		now_ns = ft_now_ns();
		ago_ns = (real.tv_sec - stamp.tv_sec) * INT64_C(1000000000) + real.tv_nsec - stamp.tv_nsec;
		return ago_ns < 0 || ago_ns > LONGEST_NS ? now_ns : now_ns - (uint64_t)ago_ns;
	}
	return ft_now_ns();
}

static int stamp_receive(int fd, void *packet, size_t size, uint64_t *at_ns, struct sockaddr_storage *from,
			 socklen_t *from_size)
{
	_Alignas(struct cmsghdr) char control[256];
	struct iovec data = {packet, size};
	struct msghdr message = {
	    .msg_name = from,
	    .msg_namelen = from ? sizeof(*from) : 0,
	    .msg_iov = &data,
	    .msg_iovlen = 1,
	    .msg_control = control,
	    .msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	*at_ns = when(&message);
	if (from_size)
		*from_size = message.msg_namelen;
	return message.msg_flags & MSG_TRUNC ? (int)size + 1 : (int)n;
}
