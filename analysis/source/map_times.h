// SPDX-License-Identifier: MIT
// Maps records of another host's clock to the reference clock. The times within a span are scaled like the
// span, so that sums stay equal.
#pragma once

#include <algorithm>

#include "host_clocks.h"

namespace forktail::analysis
{

// Scales a part of something that was `was_ns` long and is now `is_ns` long.
inline uint64_t InMeasure(uint64_t part_ns, uint64_t was_ns, uint64_t is_ns)
{
	if (was_ns == is_ns || was_ns == 0)
		return part_ns;
	double moved = static_cast<double>(part_ns) *
		       (static_cast<double>(is_ns) - static_cast<double>(was_ns)) /
		       static_cast<double>(was_ns);
	double whole = static_cast<double>(part_ns) + moved;
	return std::min(is_ns, static_cast<uint64_t>(std::max(whole, 0.0)));
}

inline void MapTime(const ClockMap &map, uint64_t *t_ns)
{
	*t_ns = map.Map(*t_ns);
}

template <typename T> void MapLasting(const ClockMap &map, T *record)
{
	uint64_t end_ns = map.Map(record->start_ns + record->duration_ns);
	record->start_ns = map.Map(record->start_ns);
	record->duration_ns = end_ns - std::min(end_ns, record->start_ns);
}

inline void MapTimes(const ClockMap &map, ft_span *s)
{
	uint64_t was_ns = s->duration_ns;
	MapLasting(map, s);
	s->blocked_ns = InMeasure(s->blocked_ns, was_ns, s->duration_ns);
	if (s->off_cpu)
		s->runnable_ns = s->duration_ns - s->blocked_ns;
	else
		s->runnable_ns = InMeasure(s->runnable_ns, was_ns, s->duration_ns);
	s->on_cpu_ns = InMeasure(s->on_cpu_ns, was_ns, s->duration_ns);
}

inline void MapTimes(const ClockMap &map, ft_tally *t)
{
	uint64_t was_ns = t->end_ns - t->start_ns;
	MapTime(map, &t->start_ns);
	MapTime(map, &t->end_ns);
	t->total_ns = InMeasure(t->total_ns, was_ns, t->end_ns - t->start_ns);
	t->max_ns = std::min(t->max_ns, t->total_ns);
}

inline void MapTimes(const ClockMap &map, ft_io *io)
{
	MapLasting(map, io);
}

template <typename T>
requires requires(T r)
{
	r.start_ns + r.end_ns;
}
void MapTimes(const ClockMap &map, T *record)
{
	MapTime(map, &record->start_ns);
	MapTime(map, &record->end_ns);
}

template <typename T>
requires requires(T r)
{
	r.t_ns;
}
void MapTimes(const ClockMap &map, T *record)
{
	MapTime(map, &record->t_ns);
}

inline void MapTimes(const ClockMap &map, ft_socket *s)
{
	MapTime(map, &s->before_ns);
	MapTime(map, &s->seen_ns);
}

inline void MapTimes(const ClockMap &map, ft_connection *c)
{
	MapTime(map, &c->opened_ns);
	MapTime(map, &c->closed_ns);
	MapTime(map, &c->reader_ns);
}

// The wall clock of another host is a different clock, so its readings are not used (read_blocks.cc).
inline void MapTimes(const ClockMap &, ft_clock *) {}

} // namespace forktail::analysis
