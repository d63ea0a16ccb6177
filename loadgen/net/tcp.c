/* SPDX-License-Identifier: MIT */
/* What TCP did with this program's own connections: the kernel counts it for each socket. <linux/tcp.h> has
 * members of struct tcp_info that <netinet/tcp.h> lacks, and the two exclude each other in a file. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "loadgen/net.h"
#include "recording/recording.h"

static uint32_t grown(uint64_t now, uint64_t before)
{
	const uint64_t by = now > before ? now - before : 0;

	return by < UINT32_MAX ? (uint32_t)by : UINT32_MAX;
}

bool tcp_look(int fd, struct tcp_counts *counts, struct ft_load_tcp *found)
{
	struct tcp_info i;
	socklen_t size = sizeof(i);

	memset(&i, 0, sizeof(i)); /* an older kernel fills its begin only */
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &size))
		return false;
	*found = (struct ft_load_tcp){
	    .before_ns = counts->looked_ns,
	    .retransmitted = grown(i.tcpi_total_retrans, counts->retransmitted),
	    .receiver_limited_us = grown(i.tcpi_rwnd_limited, counts->receiver_limited_us),
	    .sender_limited_us = grown(i.tcpi_sndbuf_limited, counts->sender_limited_us),
	    .rtt_us = i.tcpi_rtt,
	    .unacked = i.tcpi_unacked,
	    .unsent_bytes = i.tcpi_notsent_bytes,
	};
	counts->retransmitted = i.tcpi_total_retrans;
	counts->receiver_limited_us = i.tcpi_rwnd_limited;
	counts->sender_limited_us = i.tcpi_sndbuf_limited;
	return true;
}
