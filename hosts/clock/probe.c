/* SPDX-License-Identifier: MIT */
/* Sends bursts of requests to another host's clock and records round trips. Per burst it records two: the one
 * with the tightest upper bound and the one with the tightest lower bound of the clock offset. The analysis
 * estimates the offset from them (docs/how-it-works/clocks.md). */
#include "clock.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "packet.h"
#include "recording/json/json_block.h"
#include "socket.h"
#include "stamp.h"

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

int clock_probe(const struct probe_options *o)
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
