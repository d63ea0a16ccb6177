// SPDX-License-Identifier: MIT
// The server of metrics, and their text.
//
// evhttp limits the size of a request, but not the number of connections, nor the duration of a slow request.
// So this file holds a reference to each connection's bufferevent, which keeps its descriptor valid and
// allows shutting it down. A bufferevent without callbacks is no longer used by evhttp.
#include "common/metrics.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

namespace forktail::common
{

namespace
{

constexpr ptrdiff_t kVisitors = 32;
constexpr size_t kWithOver = 2 * kVisitors; // including those that are new or being shut down
constexpr int kBacklog = 64;
constexpr int kSilentSeconds = 5, kAllSeconds = 10;
// However many others come, a connection has this long to send its request.
constexpr timeval kGrace = {0, 100'000};
constexpr ev_ssize_t kHeaderBytes = 8192;

void CloseQuietly(int fd)
{
	if (fd >= 0)
		close(fd);
}

} // namespace

struct MetricsServer::State {
	struct Visitor {
		bufferevent *connection;
		timeval since;
		bool shut;
	};
	event_base *base = nullptr;
	evhttp *http = nullptr;
	std::function<std::string(MetricsFormat)> text;
	std::string where, unix_path;
	bool loopback = false;
	event *sweep = nullptr;
	evconnlistener *listener = nullptr; // evhttp's
	std::vector<Visitor> visitors;	    // the oldest first
	// Creating the text is expensive: it is reused for 0.1 s.
	std::string made[2];
	timeval made_at[2] = {};
};

namespace
{

// evhttp notices the shutdown and frees the connection.
void Shut(MetricsServer::State::Visitor *v)
{
	int fd = static_cast<int>(bufferevent_getfd(v->connection));
	if (fd >= 0 && !v->shut)
		shutdown(fd, SHUT_RDWR);
	v->shut = true;
}

bool IsOver(const MetricsServer::State::Visitor &v)
{
	bufferevent_data_cb read_cb, write_cb;
	bufferevent_event_cb event_cb;
	bufferevent_getcb(v.connection, &read_cb, &write_cb, &event_cb, nullptr);
	return !read_cb && !write_cb && !event_cb;
}

// Releases finished connections, and ends those that take too long and the oldest ones above kVisitors.
void Sweep(MetricsServer::State *server)
{
	constexpr timeval all = {kAllSeconds, 0};
	timeval now, age;
	evutil_gettimeofday(&now, nullptr);
	auto over = [](const MetricsServer::State::Visitor &v) {
		bool done = IsOver(v);
		if (done)
			bufferevent_decref(v.connection);
		return done;
	};
	std::erase_if(server->visitors, over);
	auto at_work = std::count_if(server->visitors.begin(), server->visitors.end(),
				     [](const MetricsServer::State::Visitor &v) { return !v.shut; });
	for (MetricsServer::State::Visitor &v : server->visitors) {
		evutil_timersub(&now, &v.since, &age);
		const bool crowded = at_work > kVisitors && evutil_timercmp(&age, &kGrace, >);
		if (v.shut || (age.tv_sec >= 0 && !evutil_timercmp(&age, &all, >) && !crowded))
			continue;
		Shut(&v);
		at_work--;
	}
	if (server->visitors.size() < kWithOver)
		evconnlistener_enable(server->listener);
}

void OnSweep(evutil_socket_t, short, void *arg)
{
	Sweep(static_cast<MetricsServer::State *>(arg));
}

bufferevent *OnConnection(event_base *base, void *arg)
{
	MetricsServer::State *server = static_cast<MetricsServer::State *>(arg);
	Sweep(server);
	MetricsServer::State::Visitor v = {
	    bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE), {}, false};
	if (!v.connection)
		return nullptr;
	bufferevent_incref(v.connection);
	evutil_gettimeofday(&v.since, nullptr);
	server->visitors.push_back(v);
	// Further clients wait until older connections have released their descriptors.
	if (server->visitors.size() >= kWithOver)
		evconnlistener_disable(server->listener);
	return v.connection;
}

const std::string &TextNow(MetricsServer::State *server, MetricsFormat format)
{
	constexpr timeval fresh = {0, 100'000};
	size_t i = format == MetricsFormat::OpenMetrics;
	timeval now, age;
	event_base_gettimeofday_cached(server->base, &now);
	evutil_timersub(&now, &server->made_at[i], &age);
	if (server->made[i].empty() || age.tv_sec < 0 || evutil_timercmp(&age, &fresh, >)) {
		server->made[i] = server->text(format);
		server->made_at[i] = now;
	}
	return server->made[i];
}

// A page in a browser on this host can make a name of its domain lead to a loopback address (DNS rebinding),
// and read what is there. Its requests have that name as their host.
bool IsForThisHost(evhttp_request *request)
{
	const char *header = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
	const evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char *in_uri = uri ? evhttp_uri_get_host(uri) : nullptr;
	const auto good = [](std::string host) {
		if (const size_t colon = host.rfind(':'); colon != std::string::npos && host.back() != ']')
			host.resize(colon);
		return host == "localhost" || host == "127.0.0.1" || host == "[::1]" || host == "::1";
	};
	return (!header || good(header)) && (!in_uri || !*in_uri || good(in_uri));
}

void OnRequest(evhttp_request *request, void *arg)
{
	MetricsServer::State *server = static_cast<MetricsServer::State *>(arg);
	evkeyvalq *headers = evhttp_request_get_output_headers(request);
	const evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char *path = uri ? evhttp_uri_get_path(uri) : nullptr;
	evhttp_add_header(headers, "Connection", "close");
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	if (server->loopback && !IsForThisHost(request)) {
		evhttp_send_error(request, 403, "Forbidden: the Host must be localhost, 127.0.0.1 or [::1]");
		return;
	}
	if (!path || strcmp(path, "/metrics") != 0) {
		evhttp_send_error(request, HTTP_NOTFOUND, "Not Found");
		return;
	}
	MetricsFormat format =
	    FormatByAccept(evhttp_find_header(evhttp_request_get_input_headers(request), "Accept"));
	const std::string &text = TextNow(server, format);
	evhttp_add_header(headers, "Content-Type", ContentTypeOf(format));
	evbuffer *out = evbuffer_new();
	if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD)
		evhttp_add_header(headers, "Content-Length", std::to_string(text.size()).c_str());
	else
		evbuffer_add(out, text.data(), text.size());
	evhttp_send_reply(request, HTTP_OK, "OK", out);
	evbuffer_free(out);
}

// Listens on a Unix socket. Replaces a socket file that no process listens on.
int ListenOnPath(const std::string &path, std::string *error)
{
	sockaddr_un name = {};
	name.sun_family = AF_UNIX;
	if (path.size() >= sizeof name.sun_path) {
		*error = "cannot listen on " + path + ": the path is too long for a socket";
		return -1;
	}
	memcpy(name.sun_path, path.c_str(), path.size() + 1);
	const sockaddr *address = reinterpret_cast<const sockaddr *>(&name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct stat st;
	if (fd >= 0 && lstat(path.c_str(), &st) == 0 && S_ISSOCK(st.st_mode)) {
		int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (probe >= 0 && connect(probe, address, sizeof name) && errno == ECONNREFUSED)
			unlink(path.c_str());
		CloseQuietly(probe);
	}
	mode_t before = umask(0177);
	bool bound = fd >= 0 && bind(fd, address, sizeof name) == 0 && listen(fd, kBacklog) == 0;
	int why = errno;
	umask(before);
	if (bound)
		return fd;
	*error = "cannot listen on " + path + ": " + strerror(why);
	CloseQuietly(fd);
	return -1;
}

// Parses "ADDR:PORT", "[ADDR]:PORT" or "PORT". Port 0 is any free port.
bool ParsePlace(const std::string &text, sockaddr_storage *to, socklen_t *length)
{
	size_t colon = text.rfind(':');
	std::string host = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
	std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
	if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos ||
	    std::stoul(port) > UINT16_MAX)
		return false;
	in_port_t number = htons(static_cast<uint16_t>(std::stoul(port)));
	if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
		sockaddr_in6 in6 = {};
		in6.sin6_family = AF_INET6;
		in6.sin6_port = number;
		*length = sizeof in6;
		memcpy(to, &in6, sizeof in6);
		return inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(),
				 &reinterpret_cast<sockaddr_in6 *>(to)->sin6_addr) == 1;
	}
	sockaddr_in in = {};
	in.sin_family = AF_INET;
	in.sin_port = number;
	*length = sizeof in;
	memcpy(to, &in, sizeof in);
	return inet_pton(AF_INET, host.c_str(), &reinterpret_cast<sockaddr_in *>(to)->sin_addr) == 1;
}

bool CheckPlace(const std::string &text, sockaddr_storage *to, socklen_t *length, std::string *error)
{
	if (ParsePlace(text, to, length))
		return true;
	*error = "'" + text +
		 "' is not an address for metrics: use ADDR:PORT with a numeric address, PORT, or /PATH of a "
		 "Unix socket";
	return false;
}

int ListenOnPort(const std::string &text, std::string *where, std::string *error)
{
	sockaddr_storage to = {};
	socklen_t length = 0;
	int on = 1;
	if (!CheckPlace(text, &to, &length, error))
		return -1;
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
	    bind(fd, reinterpret_cast<sockaddr *>(&to), length) || listen(fd, kBacklog)) {
		*error = "cannot listen on " + text + ": " + strerror(errno);
		CloseQuietly(fd);
		return -1;
	}
	socklen_t got = sizeof to;
	char address[INET6_ADDRSTRLEN] = "";
	getsockname(fd, reinterpret_cast<sockaddr *>(&to), &got);
	if (to.ss_family == AF_INET6) {
		const sockaddr_in6 *in6 = reinterpret_cast<const sockaddr_in6 *>(&to);
		inet_ntop(AF_INET6, &in6->sin6_addr, address, sizeof address);
		*where = std::string("[") + address + "]:" + std::to_string(ntohs(in6->sin6_port));
	} else {
		const sockaddr_in *in = reinterpret_cast<const sockaddr_in *>(&to);
		inet_ntop(AF_INET, &in->sin_addr, address, sizeof address);
		*where = std::string(address) + ":" + std::to_string(ntohs(in->sin_port));
	}
	return fd;
}

} // namespace

bool CheckMetricsAddress(const std::string &address, std::string *error)
{
	sockaddr_storage to = {};
	socklen_t length = 0;
	return address[0] == '/' || CheckPlace(address, &to, &length, error);
}

MetricsServer::MetricsServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

MetricsServer::~MetricsServer()
{
	if (state_->sweep)
		event_free(state_->sweep);
	if (state_->http)
		evhttp_free(state_->http);
	for (const MetricsServer::State::Visitor &v : state_->visitors)
		bufferevent_decref(v.connection);
	if (!state_->unix_path.empty())
		unlink(state_->unix_path.c_str());
}

const std::string &MetricsServer::where() const
{
	return state_->where;
}

std::unique_ptr<MetricsServer> MetricsServer::Open(event_base *base, const std::string &address,
						   std::function<std::string(MetricsFormat)> text,
						   std::string *error)
{
	auto state = std::make_unique<State>();
	state->base = base;
	state->text = std::move(text);
	bool path = address[0] == '/';
	// A client that disconnects during its answer would kill the process: evhttp uses writev.
	signal(SIGPIPE, SIG_IGN);
	int fd = path ? ListenOnPath(address, error) : ListenOnPort(address, &state->where, error);
	if (fd < 0)
		return nullptr;
	if (path)
		state->where = state->unix_path = address;
	state->loopback = state->where.starts_with("127.") || state->where.starts_with("[::1]");
	state->http = evhttp_new(base);
	evhttp_bound_socket *bound =
	    state->http ? evhttp_accept_socket_with_handle(state->http, fd) : nullptr;
	if (!bound) {
		*error = "cannot listen on " + address + ": out of memory";
		CloseQuietly(fd);
		return nullptr;
	}
	state->listener = evhttp_bound_socket_get_listener(bound);
	evhttp_set_allowed_methods(state->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(state->http, kHeaderBytes);
	evhttp_set_max_body_size(state->http, 0);
	evhttp_set_timeout(state->http, kSilentSeconds);
	constexpr timeval often = {0, 200'000};
	state->sweep = event_new(base, -1, EV_PERSIST, OnSweep, state.get());
	if (state->sweep)
		event_add(state->sweep, &often);
	evhttp_set_bevcb(state->http, OnConnection, state.get());
	evhttp_set_gencb(state->http, OnRequest, state.get());
	return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(state)));
}

// Lines of both formats.

namespace
{

void AppendEscaped(std::string *to, std::string_view text)
{
	for (char c : text) {
		if (c == '\\' || c == '"')
			*to += '\\';
		if (c == '\n')
			*to += "\\n";
		else
			*to += c;
	}
}

constexpr uint64_t kSecondNs = 1'000'000'000;

// All digits, so a counter that runs for a year keeps nanoseconds.
void SecondsText(uint64_t ns, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu64 ".%09" PRIu64, ns / kSecondNs, ns % kSecondNs);
}

} // namespace

MetricsFormat FormatByAccept(const char *accept)
{
	const char *open = accept ? strcasestr(accept, "application/openmetrics-text") : nullptr;
	if (!open)
		return MetricsFormat::Text;
	// A quality of 0 excludes the format.
	std::string entry(open, strcspn(open, ","));
	size_t q = entry.find("q=");
	return q != std::string::npos && strtod(entry.c_str() + q + 2, nullptr) <= 0
		   ? MetricsFormat::Text
		   : MetricsFormat::OpenMetrics;
}

const char *ContentTypeOf(MetricsFormat format)
{
	return format == MetricsFormat::Text ? "text/plain; version=0.0.4; charset=utf-8"
					     : "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

void MetricsWriter::Begin(const char *name, const char *suffix, const char *type, const char *unit,
			  const char *help)
{
	name_ = name;
	suffix_ = suffix;
	bool open = format_ == MetricsFormat::OpenMetrics;
	std::string family = open ? name_ : name_ + suffix_;
	text_ += "# HELP " + family + " " + help + "\n";
	text_ += "# TYPE " + family + " " + type + "\n";
	if (open && *unit)
		text_ += "# UNIT " + family + " " + unit + "\n";
}

void MetricsWriter::Counter(const char *name, const char *unit, const char *help)
{
	Begin(name, "_total", "counter", unit, help);
}

void MetricsWriter::Gauge(const char *name, const char *unit, const char *help)
{
	Begin(name, "", "gauge", unit, help);
}

void MetricsWriter::Histogram(const char *name, const char *unit, const char *help)
{
	Begin(name, "", "histogram", unit, help);
}

void MetricsWriter::Info(const char *name, const char *help)
{
	Begin(name, "_info", format_ == MetricsFormat::OpenMetrics ? "info" : "gauge", "", help);
}

void MetricsWriter::Line(const char *suffix, Labels labels, const char *le, const char *value)
{
	text_ += name_;
	text_ += suffix_;
	text_ += suffix;
	char before = '{';
	for (const auto &[label, of] : labels) {
		text_ += before;
		text_ += label;
		text_ += "=\"";
		AppendEscaped(&text_, of);
		text_ += '"';
		before = ',';
	}
	if (*le) {
		text_ += before;
		text_ += "le=\"";
		text_ += le;
		text_ += '"';
		before = ',';
	}
	text_ += before == ',' ? "} " : " ";
	text_ += value;
	text_ += '\n';
}

void MetricsWriter::Sample(Labels labels, double value)
{
	char text[64];
	snprintf(text, sizeof text, "%.15g", value);
	Line("", labels, "", text);
}

void MetricsWriter::Count(Labels labels, uint64_t value)
{
	char text[32];
	snprintf(text, sizeof text, "%" PRIu64, value);
	Line("", labels, "", text);
}

void MetricsWriter::Seconds(Labels labels, uint64_t ns)
{
	char text[48];
	SecondsText(ns, text, sizeof text);
	Line("", labels, "", text);
}

void MetricsWriter::Bucket(Labels labels, uint64_t bound_ns, uint64_t count)
{
	char text[32], le[32] = "+Inf";
	snprintf(text, sizeof text, "%" PRIu64, count);
	if (bound_ns != UINT64_MAX)
		snprintf(le, sizeof le, "%.9g", static_cast<double>(bound_ns) / 1e9);
	Line("_bucket", labels, le, text);
}

void MetricsWriter::SumAndCount(Labels labels, uint64_t sum_ns, uint64_t count)
{
	char text[48];
	SecondsText(sum_ns, text, sizeof text);
	Line("_sum", labels, "", text);
	snprintf(text, sizeof text, "%" PRIu64, count);
	Line("_count", labels, "", text);
}

std::string MetricsWriter::Finish()
{
	if (format_ == MetricsFormat::OpenMetrics)
		text_ += "# EOF\n";
	return std::move(text_);
}

} // namespace forktail::common
