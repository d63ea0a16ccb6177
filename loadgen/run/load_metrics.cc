// SPDX-License-Identifier: MIT
// Counters only grow, also over several tests of a run. docs/reference/load.md lists the metrics.
#include "load_metrics.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <event2/event.h>
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <string>
#include <thread>

#include "common/metrics.h"
#include "common/statistics.h"

struct load_metrics {
	struct Operation {
		uint64_t status[STATUSES] = {};
		uint64_t bytes = 0;
		forktail::common::ServiceTimes latency;
	};
	std::mutex mutex; // of all that follow, up to the event base
	std::map<std::string, Operation> operations;
	uint64_t late_sum_ns = 0, sent = 0, broken = 0;
	double rate = 0;

	event_base *base = nullptr;
	std::unique_ptr<forktail::common::MetricsServer> server;
	std::atomic<bool> stop = false;
	std::thread thread;

	std::string Text(forktail::common::MetricsFormat format);
};

namespace
{

using forktail::common::MetricsFormat;
using forktail::common::MetricsServer;
using forktail::common::MetricsWriter;

// Values of a slot are counted at its upper end, at most 0.1 % too high.
void AddLatencies(const ft_histogram &from, forktail::common::ServiceTimes *to)
{
	for (unsigned i = 0; i < FT_HIST_SLOTS; i++)
		if (from.slots[i])
			to->Add(ft_histogram_slot_value(i), from.slots[i]);
}

} // namespace

std::string load_metrics::Text(MetricsFormat format)
{
	const std::lock_guard lock(mutex);
	MetricsWriter w(format);
	w.Info("forktail_load", "Version of the load generator.");
	w.Count({{"version", FORKTAIL_VERSION}}, 1);
	w.Counter("forktail_load_requests", "", "Requests that ended, by operation and result.");
	for (const auto &[name, o] : operations)
		for (unsigned status = 0; status < STATUSES; status++)
			if (o.status[status] || status == FT_STATUS_OK)
				w.Count({{"operation", name}, {"result", status_names[status]}},
					o.status[status]);
	w.Counter("forktail_load_bytes", "bytes", "Bytes sent and received, by operation.");
	for (const auto &[name, o] : operations)
		w.Count({{"operation", name}}, o.bytes);
	w.Histogram("forktail_load_latency_seconds", "seconds",
		    "Time from when a request was due (closed loop: sent) to its answer.");
	for (const auto &[name, o] : operations)
		w.Buckets({{"operation", name}}, o.latency);
	w.Counter("forktail_load_sent_late_seconds", "seconds",
		  "Time from when requests were due to when they were sent.");
	w.Seconds({}, late_sum_ns);
	w.Counter("forktail_load_sent", "", "Requests of an open loop that were sent.");
	w.Count({}, sent);
	w.Counter("forktail_load_connections_broken", "", "Connections that broke.");
	w.Count({}, broken);
	w.Gauge("forktail_load_due_per_second", "",
		"Requests due per second; 0 in a closed loop, or if the rate changes.");
	w.Sample({}, rate);
	return w.Finish();
}

int load_metrics_check(const char *address, char *error, size_t size)
{
	std::string why;
	if (forktail::common::CheckMetricsAddress(address, &why))
		return 0;
	snprintf(error, size, "--metrics: %s", why.c_str());
	return -EINVAL;
}

int load_metrics_open(load_metrics **m, const char *address, char *error, size_t size)
{
	auto made = std::make_unique<load_metrics>();
	std::string why = "not enough memory for an event loop";
	made->base = event_base_new();
	if (made->base)
		made->server = MetricsServer::Open(
		    made->base, address, [state = made.get()](MetricsFormat f) { return state->Text(f); },
		    &why);
	if (!made->server) {
		snprintf(error, size, "--metrics: %s", why.c_str());
		if (made->base)
			event_base_free(made->base);
		return -1;
	}
	fprintf(stderr, "forktail load: metrics at %s/metrics\n", made->server->where().c_str());
	// Signals are for the main thread.
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	made->thread = std::thread([state = made.get()] {
		// The server's own timer, five times a second, ends each turn.
		while (!state->stop)
			event_base_loop(state->base, EVLOOP_ONCE);
	});
	pthread_sigmask(SIG_SETMASK, &before, nullptr);
	*m = made.release();
	return 0;
}

void load_metrics_add(load_metrics *m, const workload *w, const stats *second, double rate)
{
	if (!m)
		return;
	const std::lock_guard lock(m->mutex);
	for (uint32_t i = 0; i < w->operation_count; i++) {
		const operation_stats *s = second->operations[i];
		if (!s)
			continue;
		load_metrics::Operation &o = m->operations[w->operations[i].name];
		for (unsigned k = 0; k < STATUSES; k++)
			o.status[k] += s->status[k];
		o.bytes += s->bytes;
		AddLatencies(s->latency, &o.latency);
	}
	m->late_sum_ns += second->late_sum_ns;
	m->sent += second->sent;
	m->broken += second->broken;
	m->rate = rate;
}

void load_metrics_close(load_metrics *m)
{
	if (!m)
		return;
	m->stop = true;
	m->thread.join();
	m->server.reset();
	event_base_loop(m->base, EVLOOP_NONBLOCK); // frees the connections
	event_base_free(m->base);
	delete m;
}
