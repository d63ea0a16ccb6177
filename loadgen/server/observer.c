/* SPDX-License-Identifier: MIT */
/* The observer's thread: connects, asks once per second, and reconnects after a failure. The questions are in
 * observer_redis.c and observer_memcached.c. */
#include "loadgen/observer.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/hash.h"
#include "observer_view.h"
#include "recording/json_block.h"

#define MS_NS 1000000u
#define SECOND_NS 1000000000u
#define PAUSE_FIRST_NS (250 * MS_NS)
#define PAUSE_LONGEST_NS (4ull * SECOND_NS)
/* How long to wait for an answer. Long, because the observer should see the stall that delays it: giving up
 * after a second would add connections to a server that is already stuck. */
#define ANSWER_NS (10ull * SECOND_NS)
/* The same after the stop, which then waits for it. */
#define LAST_ANSWER_NS SECOND_NS

enum {
	ADDRESSES = 8,
	OBSERVER_NICE = 5,	 /* yields to load threads on the same core */
	ANSWER_BYTES = 16 << 20, /* longer answers are not from INFO */
};

struct observer {
	pthread_t thread;
	struct observer_series series;
	struct options options; /* a connection needs only the login and the protocol from these */
	char *host, *socket, *user;
	struct server server;
	struct server_socket addresses[ADDRESSES];
	int address_count;
	struct link rest; /* only used to wait, which a stop ends */
	const struct observer_view *kind;
	void *view;
	bool lost_noted;
};

/* Once per loss, however often reconnecting fails. */
static void note_lost(struct observer *o, const char *why)
{
	json_t *n;

	if (o->lost_noted)
		return;
	o->lost_noted = true;
	n = json_note(ft_now_ns(), "observer-lost");
	json_put_text(n, "why", why);
	write_json_note(o->series.writer, n);
}

static struct link *enter_any(struct observer *o)
{
	struct link *l = NULL;

	for (int i = 0; i < o->address_count && !l; i++) {
		o->server.socket = o->addresses[i];
		o->server.found = true;
		o->server.refused = NULL;
		l = o->kind->enter(o->view, &o->server);
		if (o->server.refused || link_pause(&o->rest, 0))
			break;
	}
	if (l)
		l->answer_bytes = ANSWER_BYTES;
	return l;
}

/* Asks until a question fails or the observer is stopped. */
static int converse(struct observer *o, struct link *l, bool *answered)
{
	uint64_t due_ns = ft_now_ns(), now_ns;
	int rc = 0;

	while (rc == 0 && !ft_writer_error(o->series.writer)) {
		rc = o->kind->round(o->view, l);
		if (rc)
			break;
		*answered = true;
		o->lost_noted = false;
		/* Seconds missed during a slow answer are skipped. */
		now_ns = ft_now_ns();
		due_ns += ((now_ns > due_ns ? now_ns - due_ns : 0) / SECOND_NS + 1) * SECOND_NS;
		while (rc == 0 && o->kind->look && ft_now_ns() + 2 * OBSERVER_LOOK_NS < due_ns) {
			rc = link_pause(l, ft_now_ns() + OBSERVER_LOOK_NS);
			if (rc == 0)
				rc = o->kind->look(o->view, l);
		}
		if (rc == 0)
			rc = link_pause(l, due_ns);
	}
	return rc;
}

/* The questions at the end, to a server that has answered before. The stop ends no wait any more, only the
 * time does. If it interrupted a question, an answer is still due on the connection: another one is opened.
 */
static struct link *ask_last(struct observer *o, struct link *l)
{
	if (!o->kind->last)
		return l;
	o->server.stop_fd = -1;
	o->server.patience_ns = LAST_ANSWER_NS;
	if (l->failed) {
		link_free(l);
		l = enter_any(o);
	}
	if (!l)
		return NULL;
	l->stop_fd = -1;
	l->patience_ns = LAST_ANSWER_NS;
	o->kind->last(o->view, l);
	return l;
}

/* One connection, from opening to end. -ECANCELED and -EACCES are final. */
static int visit(struct observer *o, bool *answered)
{
	struct link *l = enter_any(o);
	int rc;

	if (!l && o->server.refused) {
		note_refusal(&o->series, o->server.refused, o->server.why);
		return -EACCES;
	}
	if (link_pause(&o->rest, 0)) {
		link_free(l);
		return -ECANCELED;
	}
	if (!l) {
		note_lost(o, o->server.why);
		return 0;
	}
	rc = converse(o, l, answered);
	if (rc && rc != -ECANCELED && rc != -EACCES)
		note_lost(o, strerror(-rc));
	if (rc == -ECANCELED && *answered)
		l = ask_last(o, l);
	link_free(l);
	return rc;
}

static void *observe(void *arg)
{
	struct observer *o = arg;
	struct sched_param none = {0};
	uint64_t pause_ns = PAUSE_FIRST_NS;
	int rc = 0;

	/* Neither is essential. */
	pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
	setpriority(PRIO_PROCESS, (id_t)gettid(), OBSERVER_NICE);
	pthread_setname_np(pthread_self(), "observer");
	/* After a write error there is nowhere to report to. */
	while (rc == 0 && !ft_writer_error(o->series.writer)) {
		bool answered = false;

		rc = visit(o, &answered);
		if (rc == -ECANCELED || rc == -EACCES)
			break;
		pause_ns = answered ? PAUSE_FIRST_NS : pause_ns * 2;
		if (pause_ns > PAUSE_LONGEST_NS)
			pause_ns = PAUSE_LONGEST_NS;
		rc = link_pause(&o->rest, ft_now_ns() + pause_ns);
	}
	return NULL;
}

static void free_observer(struct observer *o)
{
	if (o->rest.stop_fd >= 0)
		close(o->rest.stop_fd);
	if (o->view)
		o->kind->free(o->view);
	observer_series_free(&o->series);
	server_free(&o->server);
	if (o->options.password)
		explicit_bzero(o->options.password, strlen(o->options.password));
	free(o->options.password);
	free(o->user);
	free(o->host);
	free(o->socket);
	free(o);
}

/* False: out of memory. */
static bool copy(const char *text, char **to)
{
	*to = text ? strdup(text) : NULL;
	return !text || *to;
}

/* Which server to ask, with which login. Returns 0 or a negative errno. */
static int describe_server(struct observer *o, const struct observer_server *s)
{
	struct server_address address = {.port = s->port, .tls = s->tls_name != NULL};
	char why[160];

	if (!copy(s->socket, &o->socket) || !copy(s->socket ? NULL : s->host, &o->host) ||
	    !copy(s->user, &o->user) || !copy(s->password, &o->options.password))
		return -ENOMEM;
	o->options.user = o->user;
	o->options.protocol = product_protocol(s->memcached ? &memcached_product : &redis_product);
	address.host = o->host;
	address.socket = o->socket;
	server_init(&o->server, &o->options, &address, false);
	o->server.accepts_loading = true;
	o->server.patience_ns = ANSWER_NS;
	o->server.stop_fd = o->rest.stop_fd;
	o->address_count =
	    socket_resolve(o->host, s->port, o->socket, o->addresses, ADDRESSES, why, sizeof(why));
	return o->address_count < 0 ? o->address_count : 0;
}

int observer_start(struct observer **out, const struct observer_server *s, struct ft_writer *w)
{
	struct observer *o = calloc(1, sizeof(*o));
	int rc;

	*out = NULL;
	if (!o)
		return -ENOMEM;
	o->series.writer = w;
	o->series.hide_keys = s->hide_keys;
	o->rest = LINK_CLOSED;
	o->rest.stop_fd = eventfd(0, EFD_CLOEXEC);
	rc = o->rest.stop_fd < 0 ? -errno : describe_server(o, s);
	if (rc == 0) {
		o->kind = s->memcached ? &memcached_view : &redis_view;
		o->view = o->kind->create(&o->series);
		rc = o->view ? -pthread_create(&o->thread, NULL, observe, o) : -ENOMEM;
	}
	if (rc) {
		free_observer(o);
		return rc;
	}
	*out = o;
	return 0;
}

void observer_stop(struct observer *o)
{
	uint64_t one = 1;

	if (!o)
		return;
	while (write(o->rest.stop_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
	}
	pthread_join(o->thread, NULL);
	free_observer(o);
}

/* A series is announced once, and a value written only when it has changed, because most statistics rarely
 * change. Names are in a table of limited size, in case a server invents names. */

enum { SERIES_LIMIT = 4096 }; /* limit for a server that invents new names every second */

struct series {
	char name[96];
	uint32_t id;
	double value; /* last written */
	bool written;
	UT_hash_handle hh;
};

static void announce(struct observer_series *to, const struct series *s)
{
	json_t *b = json_object();

	json_put_count(b, "id", s->id);
	json_put_text(b, "name", s->name);
	json_put_text(b, "unit", "");
	json_put_object(b, "labels");
	write_json_block(to->writer, FT_BLOCK_SERIES, b);
}

static struct series *find_series(struct observer_series *to, const struct series *probe)
{
	struct series *s;

	HASH_FIND_STR(to->by_name, probe->name, s);
	if (s)
		return s;
	if (to->ids >= SERIES_LIMIT)
		return NULL;
	s = malloc(sizeof(*s));
	if (!s)
		return NULL;
	*s = *probe;
	s->id = to->ids + 1;
	HASH_ADD_STR(to->by_name, name, s);
	if (!hash_added(s)) {
		free(s);
		return NULL;
	}
	to->ids++;
	announce(to, s);
	return s;
}

void observer_series_value(struct observer_series *to, const char *prefix, const char *name, const char *part,
			   double value, uint64_t t_ns)
{
	struct series probe = {0}, *s;
	int length =
	    snprintf(probe.name, sizeof(probe.name), "%s.%s%s%s", prefix, name, *part ? "." : "", part);

	if (length < 0 || (size_t)length >= sizeof(probe.name))
		return; /* longer than any field name of a server */
	s = find_series(to, &probe);
	if (!s || (s->written && s->value == value))
		return;
	s->value = value;
	s->written = true;
	struct ft_sample sample = {.t_ns = t_ns, .value = value, .series = s->id};
	ft_writer_record(to->writer, FT_BLOCK_SAMPLE, &sample);
}

bool observer_series_number(const char *text, double *value)
{
	const char *digits = text + (*text == '-'), *at = digits;

	while (isdigit((unsigned char)*at))
		at++;
	if (at == digits)
		return false;
	if (*at == '.')
		do
			at++;
		while (isdigit((unsigned char)*at));
	if (*at)
		return false; /* a version, time or name: "7.0.15" is not a number */
	*value = strtod(text, NULL);
	return true;
}

bool observer_series_part(char **list, char **name, double *value)
{
	while ((*name = strsep(list, ","))) {
		char *number = strchr(*name, '=');

		if (!number)
			continue;
		*number++ = 0;
		if (observer_series_number(number, value))
			return true;
	}
	return false;
}

void note_refusal(struct observer_series *to, const char *asked, const char *answer)
{
	json_t *n = json_note(ft_now_ns(), "observer-refused");

	json_put_text(n, "command", asked);
	json_put_text(n, "error", answer);
	write_json_note(to->writer, n);
}

void observer_series_free(struct observer_series *to)
{
	hash_free_all(struct series, to->by_name);
}
