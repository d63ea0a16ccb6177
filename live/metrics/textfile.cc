// SPDX-License-Identifier: MIT
// Metrics for node_exporter's textfile collector: written to a temporary file and renamed, so that it is
// always complete.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metrics.h"

namespace forktail::live::metrics
{

namespace
{

bool WriteAll(int fd, const std::string &text)
{
	for (size_t done = 0; done < text.size();) {
		ssize_t n = write(fd, text.data() + done, text.size() - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += static_cast<size_t>(n);
	}
	return true;
}

} // namespace

bool WriteMetricsTextfile(const std::string &dir, const std::string &text, std::string *error)
{
	std::string path = dir + "/forktail.prom", temporary = path + "." + std::to_string(getpid());
	// node_exporter runs as another user.
	int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	bool good = fd >= 0 && fchmod(fd, 0644) == 0 && WriteAll(fd, text);
	int why = errno;
	if (fd >= 0 && close(fd) && good) {
		why = errno;
		good = false;
	}
	if (good && rename(temporary.c_str(), path.c_str())) {
		why = errno;
		good = false;
	}
	if (good)
		return true;
	if (fd >= 0)
		unlink(temporary.c_str());
	*error = "cannot write " + path + ": " + strerror(why);
	return false;
}

} // namespace forktail::live::metrics
