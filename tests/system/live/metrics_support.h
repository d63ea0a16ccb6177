// SPDX-License-Identifier: MIT
// Metrics of a real recording, served by a thread of the test as forktail-guard serves them.
#pragma once
#include <atomic>
#include <event2/event.h>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include "common/metrics.h"
#include "live/guard/metrics.h"

namespace forktail::test
{

class ServedMetrics
{
public:
	ServedMetrics(const std::string &recording, const std::string &address)
	    : follower_(recording, {}), base_(event_base_new())
	{
		std::string error;
		server_ = forktail::common::MetricsServer::Open(
		    base_, address,
		    [this](forktail::live::metrics::MetricsFormat format) {
			    Poll(); // the values are current
			    return metrics_.Text(follower_, format);
		    },
		    &error);
		if (!server_)
			throw std::runtime_error(error);
		poll_ = event_new(base_, -1, EV_PERSIST, OnPoll, this);
		timeval often = {0, 250'000};
		event_add(poll_, &often);
		thread_ = std::thread([this] {
			while (!stop_)
				event_base_loop(base_, EVLOOP_ONCE);
		});
	}
	~ServedMetrics()
	{
		stop_ = true;
		thread_.join();
		event_free(poll_);
		server_.reset();
		event_base_loop(base_, EVLOOP_NONBLOCK);
		event_base_free(base_);
	}
	ServedMetrics(const ServedMetrics &) = delete;
	ServedMetrics &operator=(const ServedMetrics &) = delete;

	const std::string &where() const { return server_->where(); }
	unsigned polls() const { return polls_; }

private:
	static void OnPoll(evutil_socket_t, short, void *arg) { static_cast<ServedMetrics *>(arg)->Poll(); }
	void Poll()
	{
		forktail::live::Batch batch;
		std::string error;
		do {
			follower_.Poll(&batch, &error);
			metrics_.Take(follower_, batch);
		} while (batch.more);
		polls_++;
	}

	forktail::live::Follower follower_;
	forktail::live::metrics::Metrics metrics_;
	event_base *base_;
	std::unique_ptr<forktail::common::MetricsServer> server_;
	event *poll_ = nullptr;
	std::atomic<bool> stop_ = false;
	std::atomic<unsigned> polls_ = 0;
	std::thread thread_;
};

} // namespace forktail::test
