/* SPDX-License-Identifier: MIT */
/* The observer's thread: connect, ask once a second, connect again when that fails; and the way of values and
 * notes into the recording. What is asked of whom stands in observer_redis.c and observer_memcached.c. */
#include "observer.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <search.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include "observer_parts.h"

#define MS_NS 1000000u
#define SECOND_NS 1000000000u
#define PAUSE_FIRST_NS (250 * MS_NS)
#define PAUSE_LONGEST_NS (4ull * SECOND_NS)
#define CONNECT_NS SECOND_NS

enum {
	ADDRESSES = 8,
	SERIES_LIMIT = 4096, /* a server that makes up new names every second ends here */
	OBSERVER_NICE = 5,   /* gives way to load threads on the same core */
};

struct series {
	char name[96];
	uint32_t id;
	double value; /* last written */
	bool written;
};

struct observer {
	pthread_t thread;
	struct observed observed;
	struct link link;
	char *tls_name;
	struct server_socket addresses[ADDRESSES];
	int address_count;
	struct redis_view *redis; /* or */
	struct memcached_view *memcached;
	bool lost_noted;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct series *)a)->name, ((const struct series *)b)->name);
}

static void announce(struct observed *to, const struct series *s)
{
	struct json_block b;

	if (!block_begin(&b))
		return;
	json_count(&b.json, "id", s->id);
	json_text(&b.json, "name", s->name);
	json_text(&b.json, "unit", "");
	json_begin(&b.json, "labels", '{');
	json_end(&b.json, '}');
	block_end(&b, to->writer, FT_BLOCK_SERIES);
}

static struct series *find_series(struct observed *to, const struct series *probe)
{
	struct series **found = tfind(probe, &to->tree, by_name), *s;

	if (found)
		return *found;
	if (to->ids >= SERIES_LIMIT)
		return NULL;
	s = malloc(sizeof(*s));
	if (!s)
		return NULL;
	*s = *probe;
	s->id = to->ids + 1;
	if (!tsearch(s, &to->tree, by_name)) {
		free(s);
		return NULL;
	}
	to->ids++;
	announce(to, s);
	return s;
}

void observed_value(struct observed *to, const char *prefix, const char *name, const char *part, double value,
		    uint64_t t_ns)
{
	struct series probe = {0}, *s;
	int length =
	    snprintf(probe.name, sizeof(probe.name), "%s.%s%s%s", prefix, name, *part ? "." : "", part);

	if (length < 0 || (size_t)length >= sizeof(probe.name))
		return; /* no field of any server has such a name */
	s = find_series(to, &probe);
	if (!s || (s->written && s->value == value))
		return;
	s->value = value;
	s->written = true;
	struct ft_sample sample = {.t_ns = t_ns, .value = value, .series = s->id};
	ft_writer_record(to->writer, FT_BLOCK_SAMPLE, &sample);
}

bool observed_number(const char *text, double *value)
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
		return false; /* a version, a time, a name: "7.0.15" is no number */
	*value = strtod(text, NULL);
	return true;
}

void note_refused(struct observed *to, const char *asked, const char *answer)
{
	struct json_block n;

	if (!note_begin(&n, ft_now_ns(), "observer-refused"))
		return;
	json_text(&n.json, "command", asked);
	json_text(&n.json, "error", answer);
	note_end(&n, to->writer);
}

/* Once for each time it is lost, however often it then can't be reached. */
static void note_lost(struct observer *o, int rc)
{
	struct json_block n;

	if (o->lost_noted || !note_begin(&n, ft_now_ns(), "observer-lost"))
		return;
	o->lost_noted = true;
	json_text(&n.json, "why", *o->link.error ? o->link.error : strerror(-rc));
	note_end(&n, o->observed.writer);
}

static int connect_any(struct observer *o)
{
	int rc = -EHOSTUNREACH;

	for (int i = 0; i < o->address_count; i++) {
		uint64_t deadline_ns = ft_now_ns() + CONNECT_NS;

		*o->link.error = 0;
		rc = link_open(&o->link, &o->addresses[i], 0, deadline_ns);
		if (rc == 0 && o->tls_name)
			rc = link_secure(&o->link, o->tls_name, deadline_ns);
		if (rc)
			link_close(&o->link);
		if (rc == 0 || rc == -ECANCELED)
			break;
	}
	return rc;
}

static int ask_round(struct observer *o)
{
	return o->redis ? redis_view_round(o->redis, &o->link) : memcached_view_round(o->memcached, &o->link);
}

/* One connection, from its opening until it fails or the observer is stopped. */
static int converse(struct observer *o, bool *answered)
{
	uint64_t due_ns, now_ns;
	int rc = connect_any(o);

	if (rc == 0 && o->redis)
		rc = redis_view_greet(o->redis, &o->link);
	else if (rc == 0)
		memcached_view_greet(o->memcached);
	due_ns = ft_now_ns();
	while (rc == 0 && !ft_writer_error(o->observed.writer)) {
		rc = ask_round(o);
		if (rc)
			break;
		*answered = true;
		o->lost_noted = false;
		/* Seconds that a slow answer took are left out, not caught up with. */
		now_ns = ft_now_ns();
		due_ns += ((now_ns > due_ns ? now_ns - due_ns : 0) / SECOND_NS + 1) * SECOND_NS;
		rc = link_pause(&o->link, due_ns);
	}
	link_close(&o->link);
	return rc;
}

static void *observe(void *arg)
{
	struct observer *o = arg;
	struct sched_param none = {0};
	uint64_t pause_ns = PAUSE_FIRST_NS;
	int rc = 0;

	/* None is vital. */
	pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
	setpriority(PRIO_PROCESS, (id_t)gettid(), OBSERVER_NICE);
	pthread_setname_np(pthread_self(), "observer");
	/* Once the recording takes nothing any more there is nobody to tell. */
	while (rc == 0 && !ft_writer_error(o->observed.writer)) {
		bool answered = false;

		rc = converse(o, &answered);
		if (rc == -ECANCELED || rc == -EACCES)
			break;
		if (rc)
			note_lost(o, rc);
		pause_ns = answered ? PAUSE_FIRST_NS : pause_ns * 2;
		if (pause_ns > PAUSE_LONGEST_NS)
			pause_ns = PAUSE_LONGEST_NS;
		rc = link_pause(&o->link, ft_now_ns() + pause_ns);
	}
	return NULL;
}

static void free_observer(struct observer *o)
{
	if (o->link.stop_fd >= 0)
		close(o->link.stop_fd);
	if (o->redis)
		redis_view_free(o->redis);
	if (o->memcached)
		memcached_view_free(o->memcached);
	tdestroy(o->observed.tree, free);
	free(o->tls_name);
	free(o);
}

/* -EHOSTUNREACH, -ENAMETOOLONG; else how many of `out` were filled, 1 at least. */
static int resolve(const struct observer_server *s, struct server_socket *out, int limit)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	char port[16];
	int count = 0;

	if (s->socket) {
		struct sockaddr_un local = {.sun_family = AF_UNIX};

		if (strlen(s->socket) >= sizeof(local.sun_path))
			return -ENAMETOOLONG;
		strcpy(local.sun_path, s->socket);
		memcpy(&out->address, &local, sizeof(local));
		out->length = sizeof(local);
		return 1;
	}
	snprintf(port, sizeof(port), "%u", s->port);
	if (getaddrinfo(s->host, port, &hints, &found))
		return -EHOSTUNREACH;
	for (struct addrinfo *a = found; a && count < limit; a = a->ai_next, count++) {
		memcpy(&out[count].address, a->ai_addr, a->ai_addrlen);
		out[count].length = a->ai_addrlen;
	}
	freeaddrinfo(found);
	return count > 0 ? count : -EHOSTUNREACH;
}

/* Signals are the main thread's business. */
static int start_thread(struct observer *o)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&o->thread, NULL, observe, o);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int observer_start(struct observer **out, const struct observer_server *s, struct ft_writer *w)
{
	struct observer *o = calloc(1, sizeof(*o));
	int rc;

	*out = NULL;
	if (!o)
		return -ENOMEM;
	o->observed.writer = w;
	o->link = LINK_CLOSED;
	o->link.stop_fd = eventfd(0, EFD_CLOEXEC);
	rc = o->link.stop_fd < 0 ? -errno : resolve(s, o->addresses, ADDRESSES);
	if (rc > 0) {
		o->address_count = rc;
		o->tls_name = s->tls_name ? strdup(s->tls_name) : NULL;
		if (s->memcached)
			o->memcached = memcached_view_create(&o->observed);
		else
			o->redis = redis_view_create(s->user, s->password, &o->observed);
		rc = (o->memcached || o->redis) && !o->tls_name == !s->tls_name ? start_thread(o) : -ENOMEM;
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
	while (write(o->link.stop_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
	}
	pthread_join(o->thread, NULL);
	free_observer(o);
}
