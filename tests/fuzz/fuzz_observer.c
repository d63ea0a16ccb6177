/* SPDX-License-Identifier: MIT */
/* The reading of a server's own reports (INFO, SLOWLOG, LATENCY, stats) under libFuzzer. The input's first
 * byte selects the kind of server ('m': memcached, else Redis). The rest is its answers to all rounds of
 * questions, through a link like the observer's, into a recording. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loadgen/server/observer_view.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/scratch.h"

/* As many as a socket buffers unread. */
enum { ANSWERS_MAX = 100000 };

/* Memory for a long array that was only announced is not a finding. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void failed(const char *what)
{
	perror(what);
	exit(3);
}

static void converse(const struct observer_view *view, struct ft_writer *writer, const uint8_t *answers,
		     size_t size)
{
	struct link *l = malloc(sizeof(*l));
	struct observer_series to = {.writer = writer};
	void *state = view->create(&to);
	int ends[2];

	if (!l || !state || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
		failed("no link");
	*l = LINK_CLOSED;
	l->fd = ends[0];
	l->patience_ns = 1;
	if (size && send(ends[1], answers, size, 0) != (ssize_t)size)
		failed("no room for the answers");
	shutdown(ends[1], SHUT_WR);
	while (view->round(state, l) == 0) {
	}
	view->free(state);
	observer_series_free(&to);
	link_free(l);
	close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ft_writer *writer;
	char path[SCRATCH_PATH];

	if (size == 0 || size > ANSWERS_MAX)
		return 0;
	scratch_path(path, "observed");
	if (ft_writer_open(&writer, path, "{}"))
		failed(path);
	converse(data[0] == 'm' ? &memcached_view : &redis_view, writer, data + 1, size - 1);
	ft_writer_close(writer, NULL);
	return 0;
}
