// SPDX-License-Identifier: MIT
// Which peer a server waited for inside an event-loop iteration, which of its functions waited, and
// recorded processes that could not answer meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scene.h"

namespace forktail::analysis
{

// A recorded process that did not serve for at least half of an interval.
struct StalledTarget {
	std::string text; // "redis-server (812) was stopped by SIGSTOP for \1"
	uint64_t ns;
	uint32_t pid;
	std::string Sentence() const; // with the time, without a full stop
};

// The one that did so longest, apart from the scene's process. Nothing without one.
std::optional<StalledTarget> StalledTargetIn(const Scene &scene, uint64_t from_ns, uint64_t to_ns);
// The same in the scene's longest wait of this cause: "; redis-server (812) was stopped by SIGSTOP for 300 ms
// meanwhile"; "" without one.
std::string StalledTargetText(const Scene &scene, Cause waited);

// The scene's longest wait for a peer: "waited 1.00 s in poll() for 127.0.0.1:53 (udp), inside an event-loop
// iteration of 1.00 s (getaddrinfo < anetResolve)".
std::string PeerSentence(const Scene &scene);
// "Meanwhile redis-server (812) was stopped by SIGSTOP for 300 ms.", if that is the peer of the longest wait;
// else "".
std::string PeerMeanwhile(const Scene &scene);
// What the waits have in common, without times: "redis-server (812) waited \1 in poll() for an answer from
// 127.0.0.1:53 (udp), inside an event-loop iteration".
std::string PeerClause(const Scene &scene);

} // namespace forktail::analysis
