// SPDX-License-Identifier: MIT
// forktail-clock and foreign packets: the serving side answers valid questions only, and the asking side
// accepts only its peer's answer to its question.
#include <arpa/inet.h>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/process.h"
#include "tests/support/recorded.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"

extern "C" {
#define _Static_assert static_assert // packet.h is C
#include "hosts/clock/packet.h"
}

using namespace forktail::test;

namespace
{

struct Udp {
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sockaddr_in peer = {};

	Udp()
	{
		const timeval wait = {0, 500'000};
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
	}
	~Udp() { close(fd); }
	static sockaddr_in At(int port)
	{
		sockaddr_in at = {};
		at.sin_family = AF_INET;
		at.sin_port = htons(static_cast<uint16_t>(port));
		at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return at;
	}
	void Send(const void *bytes, size_t size) const
	{
		REQUIRE(sendto(fd, bytes, size, 0, reinterpret_cast<const sockaddr *>(&peer), sizeof peer) ==
			static_cast<ssize_t>(size));
	}
	// The number of bytes received. -1: none in half a second.
	ssize_t Receive(clock_packet *packet)
	{
		socklen_t size = sizeof peer;
		return recvfrom(fd, packet, sizeof *packet, 0, reinterpret_cast<sockaddr *>(&peer), &size);
	}
};

clock_packet Question()
{
	clock_packet q = {};
	q.magic = CLOCK_MAGIC;
	q.version = CLOCK_VERSION;
	q.kind = CLOCK_ASKS;
	q.cookie = 0x1122334455667788;
	q.number = 7;
	return q;
}

} // namespace

TEST_CASE("clock serve answers questions, each with as many bytes, and nothing else")
{
	const int port = free_port();
	Process serve(
	    {program("forktail"), "clock", "serve", "--listen", "127.0.0.1:" + std::to_string(port)});
	REQUIRE(eventually([&] { return serve.err().find("answering on") != std::string::npos; }));
	Udp udp;
	udp.peer = Udp::At(port);
	const clock_packet right = Question();
	char longer[sizeof right + 1] = {};
	memcpy(longer, &right, sizeof right);
	udp.Send(longer, sizeof longer);
	udp.Send(&right, sizeof right - 1);
	udp.Send(&right, 1);
	udp.Send(&right, 0);
	for (void (*spoil)(clock_packet *) :
	     {+[](clock_packet *p) { p->magic++; }, +[](clock_packet *p) { p->version++; },
	      +[](clock_packet *p) { p->kind = CLOCK_ANSWERS; }}) {
		clock_packet wrong = right;
		spoil(&wrong);
		udp.Send(&wrong, sizeof wrong);
	}
	clock_packet answer = {};
	CHECK(udp.Receive(&answer) == -1);

	udp.Send(&right, sizeof right);
	REQUIRE(udp.Receive(&answer) == sizeof right);
	CHECK(answer.kind == CLOCK_ANSWERS);
	CHECK(answer.cookie == right.cookie);
	CHECK(answer.number == right.number);
	CHECK(answer.received_ns > 0);
	CHECK(answer.received_ns <= answer.sent_ns);
	serve.signal(SIGINT);
	CHECK(serve.wait(Seconds(30)) == 0);
	CHECK(serve.err().find("1 requests answered, 7 other packets dropped") != std::string::npos);
}

TEST_CASE("clock probe accepts only its peer's answer to its question, and counts other packets")
{
	TempDir dir;
	Udp udp;
	sockaddr_in own = Udp::At(0);
	socklen_t size = sizeof own;
	REQUIRE(bind(udp.fd, reinterpret_cast<sockaddr *>(&own), size) == 0);
	REQUIRE(getsockname(udp.fd, reinterpret_cast<sockaddr *>(&own), &size) == 0);
	Process probe({program("forktail"), "clock", "probe",
		       "127.0.0.1:" + std::to_string(ntohs(own.sin_port)), "-o", dir.file("clock.forktail"),
		       "--interval", "20ms", "--duration", "1s"});
	clock_packet asked = {};
	uint64_t questions = 0;
	// Every question gets six packets. Only the last but one is valid, because a copy follows it.
	while (probe.running()) {
		if (udp.Receive(&asked) != sizeof asked)
			continue;
		questions++;
		clock_packet right = asked;
		right.kind = CLOCK_ANSWERS;
		right.received_ns = right.sent_ns = 1'000'000'000 * questions;
		strcpy(right.clock_id, "the peer's");
		strcpy(right.host, "peer");
		udp.Send(&right, 40); // too short
		clock_packet wrong = right;
		wrong.cookie++;
		udp.Send(&wrong, sizeof wrong);
		wrong = right;
		wrong.sent_ns--; // sent before it came
		udp.Send(&wrong, sizeof wrong);
		if (questions > 1) {
			wrong = right;
			strcpy(wrong.clock_id, "another clock's");
			udp.Send(&wrong, sizeof wrong);
		}
		udp.Send(&right, sizeof right);
		udp.Send(&right, sizeof right);
	}
	CHECK(probe.wait(Seconds(10)) == 0);
	INFO(probe.err() << questions);
	REQUIRE(questions > 8);
	const Recorded recorded = read_recording(dir.file("clock.forktail"));
	REQUIRE(recorded.error.empty());
	const nlohmann::json summary = parse_json(recorded.summary);
	const uint64_t asked_in_all = summary["asked"], answered = summary["answered"];
	CHECK(answered > 0);
	CHECK(answered <= asked_in_all);
	CHECK(summary["foreign"].get<uint64_t>() >= 3 * (answered - 1)); // short, cookie, order
	CHECK(summary["late"].get<uint64_t>() >= answered - 2);		 // copies
	CHECK(summary["other_clock"].get<uint64_t>() >= answered - 2);
	CHECK(parse_json(recorded.manifest)["peer"]["clock_id"] == "the peer's");
}
