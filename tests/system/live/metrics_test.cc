// SPDX-License-Identifier: MIT
// Metrics of a real server with known stalls: the HTTP answers, Debian's Prometheus as their reader, and
// hostile clients.
#include <dirent.h>
#include <fcntl.h>
#include <iostream>
#include <sys/stat.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/server.h"
#include "tests/system/live/http.h"
#include "tests/system/live/metrics_support.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

size_t Descriptors()
{
	size_t count = 0;
	if (DIR *dir = opendir("/proc/self/fd")) {
		while (readdir(dir))
			count++;
		closedir(dir);
	}
	return count;
}

class Prometheus
{
public:
	explicit Prometheus(const std::string &target) : port_(free_port())
	{
		write_file(dir_.file("prometheus.yml"),
			   "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: forktail\n"
			   "    static_configs:\n      - targets: ['" +
			       target + "']\n");
		process_ = std::make_unique<Process>(
		    std::vector<std::string>{"prometheus", "--config.file=" + dir_.file("prometheus.yml"),
					     "--storage.tsdb.path=" + dir_.file("data"),
					     "--web.listen-address=127.0.0.1:" + std::to_string(port_)});
	}
	bool ready()
	{
		return eventually(
		    [&] { return Status(Get(where(), "/-/ready")).find(" 200 ") != std::string::npos; },
		    Seconds(30));
	}
	// The label values that `by` names, joined with "/", and the value.
	std::map<std::string, double> query(const std::string &expression, const std::vector<std::string> &by)
	{
		std::string escaped;
		for (unsigned char c : expression) {
			char hex[4];
			snprintf(hex, sizeof hex, "%%%02X", c);
			escaped += hex;
		}
		std::string answer = Http(where(), "GET /api/v1/query?query=" + escaped +
						       " HTTP/1.0\r\nHost: localhost\r\n\r\n");
		std::map<std::string, double> values;
		const auto parsed = nlohmann::json::parse(Body(answer));
		for (const auto &result : parsed.at("data").at("result")) {
			std::string key;
			for (const std::string &label : by)
				key += (key.empty() ? "" : "/") + result.at("metric").value(label, "");
			values[key] = std::stod(result.at("value").at(1).get<std::string>());
		}
		return values;
	}

private:
	std::string where() const { return "127.0.0.1:" + std::to_string(port_); }
	TempDir dir_;
	int port_;
	std::unique_ptr<Process> process_;
};

} // namespace

TEST_CASE("a Prometheus scrapes what a server's threads did, and rates sum to one")
{
	if (!root()) {
		std::cout << "SKIPPED: needs root to record\n";
		return;
	}
	RedisOptions options;
	options.tcp = true;
	options.config = {"--enable-debug-command", "yes"};
	Redis redis(options);
	REQUIRE(redis.command({"DEBUG", "POPULATE", "300000", "key", "100"}) == "OK");
	Recorder recorder(redis.pid());
	ServedMetrics served(recorder.path(), "127.0.0.1:0");
	Prometheus prometheus(served.where());
	REQUIRE(prometheus.ready());

	Process load({"redis-benchmark", "-p", std::to_string(redis.port()), "-t", "set", "-r", "300000",
		      "-n", "100000000", "-c", "4", "-q"});
	redis.command({"BGSAVE"});
	sleep_for(Seconds(1));
	REQUIRE(redis.command({"DEBUG", "SLEEP", "0.06"}) == "OK");
	kill(redis.pid(), SIGSTOP);
	sleep_for(Seconds(0.2));
	kill(redis.pid(), SIGCONT);
	sleep_for(Seconds(11));

	const std::string server = "redis-server:" + std::to_string(redis.port());
	const auto rates = prometheus.query(
	    "sum by (server, thread) (rate(forktail_thread_seconds_total[10s]))", {"server", "thread"});
	CAPTURE(server);
	REQUIRE(rates.count(server + "/redis-server"));
	CHECK(rates.size() >= 4); // its helpers too
	for (const auto &[thread, rate] : rates) {
		CAPTURE(thread);
		if (thread == server + "/snapshot child" || thread == server + "/child") // it has ended
			continue;
		CHECK(rate == Approx(1).margin(0.02)); // it is counted in slots of 50 ms
	}
	const auto own = prometheus.query(
	    "rate(forktail_thread_seconds_total{thread=\"redis-server\",cause=\"own-code\"}[10s])",
	    {"server"});
	REQUIRE(own.count(server));
	CHECK(own.at(server) > 0.01);

	const std::string text = Body(Get(served.where()));
	const std::string of_server = "{server=\"" + server + "\"";
	CHECK(Value(text, "forktail_stalls_total" + of_server + ",cause=\"stopped\"}") >= 1);
	const double stopped =
	    Value(text, "forktail_stall_duration_seconds_sum" + of_server + ",cause=\"stopped\"}");
	CHECK(stopped == Approx(0.2).margin(0.15));
	CHECK(Value(text, "forktail_stall_duration_seconds_sum" + of_server + ",cause=\"sleep\"}") >= 0.06);
	const std::string iterations = "forktail_event_loop_turn_seconds";
	CHECK(Value(text, iterations + "_count" + of_server + "}") -
		  Value(text, iterations + "_bucket" + of_server + ",le=\"0.016384\"}") >=
	      1);
	double episodes = 0;
	for (const char *cause : {"sleep", "stopped", "run-queue", "own-code", "fork"})
		episodes += Value(text, "forktail_episodes_total" + of_server + ",cause=\"" + cause + "\"}");
	CHECK(episodes >= 1);
	CHECK(Value(text, "forktail_fork_duration_seconds_count" + of_server + "}") == 1);
	// Redis' own figure includes the fork's wait for a CPU.
	const double fork_s = Value(text, "forktail_fork_duration_seconds_sum" + of_server + "}");
	CHECK(fork_s > 0);
	CHECK(fork_s <= std::stod(redis.info("latest_fork_usec")) * 1.05e-6 + 1e-4);
	CHECK(Value(text, "forktail_server_up" + of_server + "}") == 1);
	CHECK(Value(text, "forktail_recording") == 1);
	CHECK(Value(text, "forktail_buffer_bytes") > 0);
	load.signal(SIGTERM);
}

TEST_CASE("the answers follow the format specifications")
{
	if (!root()) {
		std::cout << "SKIPPED: needs root to record\n";
		return;
	}
	Redis redis;
	Recorder recorder(redis.pid());
	TempDir dir;
	const std::string path = dir.file("metrics.sock");
	ServedMetrics served(recorder.path(), path);
	struct stat st;
	REQUIRE(stat(path.c_str(), &st) == 0);
	CHECK((st.st_mode & 0777) == 0600);
	const std::string line =
	    "forktail_thread_seconds_total{server=\"redis-server:" + redis.socket() + "\"";
	CHECK(eventually([&] { return Get(path).find(line) != std::string::npos; }, Seconds(15)));

	const std::string plain = Get(path);
	CHECK(Status(plain) == "HTTP/1.1 200 OK");
	CHECK(plain.find("text/plain; version=0.0.4") != std::string::npos);
	const Result checked = run({"promtool", "check", "metrics"}, Seconds(30), {{}, "", Body(plain)});
	CHECK(checked.status == 0);
	CHECK(checked.out + checked.err == "");

	const std::string open =
	    Get(path, "/metrics", "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n");
	CHECK(open.find("application/openmetrics-text; version=1.0.0") != std::string::npos);
	CHECK(open.find("# TYPE forktail_thread_seconds counter\n") != std::string::npos);
	CHECK(open.substr(open.size() - 6) == "# EOF\n");
	CHECK(Get(path, "/metrics", "Accept: application/openmetrics-text;q=0\r\n").find("0.0.4") !=
	      std::string::npos);

	const std::string head = Http(path, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
	CHECK(Status(head) == "HTTP/1.1 200 OK");
	CHECK(Body(head).empty());
	CHECK(Status(Get(path, "/")) == "HTTP/1.1 404 Not Found");
	CHECK(Status(Get(path, "/metrics/../../etc/passwd")) == "HTTP/1.1 404 Not Found");
	for (const char *method : {"POST", "PUT", "DELETE", "TRACE", "NONSENSE"}) {
		const std::string no =
		    Http(path, method + std::string(" /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"));
		CAPTURE(method, no);
		CHECK(no.find("forktail_") == std::string::npos);
		CHECK(no.find(" 200 ") == std::string::npos);
	}
}

TEST_CASE("hostile clients change nothing")
{
	TempDir dir;
	// The answer does not wait for a recording to exist.
	ServedMetrics served(dir.file("none.forktail"), "127.0.0.1:0");
	const std::string where = served.where();
	const unsigned polls_before = served.polls();
	// A thousand that connect and send nothing, or a byte now and then, in a separate process.
	Process crowd({"python3", "-c",
		       "import socket, sys, time\n"
		       "port = int(sys.argv[1]); all = []\n"
		       "for i in range(1000):\n"
		       "    s = socket.socket(); s.setblocking(False)\n"
		       "    s.connect_ex(('127.0.0.1', port)); all.append(s)\n"
		       "print('there', flush=True)\n"
		       "while True:\n"
		       "    for s in all:\n"
		       "        try: s.send(b'G')\n"
		       "        except OSError: pass\n"
		       "    time.sleep(0.2)\n",
		       where.substr(where.rfind(':') + 1)});
	const size_t before = Descriptors();
	REQUIRE(eventually([&] { return crowd.out() == "there\n"; }, Seconds(60)));
	CHECK(Descriptors() < before + 80);
	CHECK(Status(Get(where)) == "HTTP/1.1 200 OK");

	const std::string long_header = "X: " + std::string(1 << 20, 'x') + "\r\n";
	CHECK(Status(Get(where, "/metrics", long_header)).find(" 200 ") == std::string::npos);
	CHECK(Status(Get(where, "/" + std::string(1 << 20, 'a'))).find(" 200 ") == std::string::npos);
	CHECK(Status(Http(where,
			  "GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000000\r\n\r\n"))
		  .find(" 200 ") == std::string::npos);
	// A name that leads here only for a browser's page.
	for (const char *host : {"evil.example", "127.0.0.1.evil.example:80"})
		CHECK(Status(Http(where, std::string("GET /metrics HTTP/1.1\r\nHost: ") + host + "\r\n\r\n"))
			  .find(" 403 ") != std::string::npos);
	CHECK(Status(Http(where, "GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		  .find(" 403 ") != std::string::npos);
	std::string garbage;
	for (int i = 0; i < 100'000; i++)
		garbage += static_cast<char>(i * 2654435761u >> 13);
	Http(where, garbage);
	Http(where, std::string("GET /metrics\0 HTTP/1.1\r\n\r\n", 26));
	Http(where, "\r\n\r\n\r\n");
	CHECK(Status(Get(where)) == "HTTP/1.1 200 OK");
	CHECK(Body(Get(where)).find("forktail_build_info{version=\"") != std::string::npos);
	CHECK(served.polls() > polls_before);
	crowd.signal(SIGKILL);
	crowd.wait(Seconds(10));
	CHECK(eventually([&] { return Descriptors() <= before; }, Seconds(20)));
}

TEST_CASE("a metrics file is always complete")
{
	TempDir dir;
	forktail::live::Follower follower(dir.file("none"), {});
	forktail::live::metrics::Metrics metrics;
	metrics.Snapshot("iteration", true);
	std::string error;
	const std::string text = metrics.Text(follower, forktail::live::metrics::MetricsFormat::Text);
	REQUIRE(forktail::live::metrics::WriteMetricsTextfile(dir.path(), text, &error));
	CHECK(read_file(dir.file("forktail.prom")) == text);
	CHECK(Value(text, "forktail_snapshots_total{trigger=\"iteration\"}") == 1);
	CHECK_FALSE(forktail::live::metrics::WriteMetricsTextfile(dir.file("gone"), text, &error));
	CHECK(error == "cannot write " + dir.file("gone") + "/forktail.prom: No such file or directory");
}
