/* SPDX-License-Identifier: MIT */
/* Answers with this host's clock. Invalid packets are dropped silently. The server keeps no state per client,
 * and an answer is as long as its request. */
#include "clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "packet.h"
#include "socket.h"
#include "stamp.h"

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

int clock_serve(const char *listen)
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
