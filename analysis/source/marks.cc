// SPDX-License-Identifier: MIT
#include "marks.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "common/format/sanitize.h"
#include "common/format/units.h"
#include "common/text/parse.h"
#include "recording/recording.h"

namespace forktail::analysis
{

namespace
{

constexpr off_t kMost = 1 << 20;
constexpr size_t kLongest = 200; // bytes of a mark's text that are kept

// A closed descriptor is -1. Only a regular file with one name: the directory may belong to another user.
int OpenMarks(const std::string &path, int flags)
{
	const int fd = open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0644);
	struct stat st;
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink != 1)) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

// False: not a mark.
bool ParseMark(const std::string &line, DatedMark *mark)
{
	const char *rest = line.c_str();
	double seconds;
	if (!parse_number(&rest, &seconds) || *rest != ' ' || seconds >= 1e10)
		return false;
	mark->realtime_ns = static_cast<uint64_t>(std::llround(seconds * 1e9));
	mark->text = common::Visible(std::string(rest + 1).substr(0, kLongest));
	return !mark->text.empty();
}

} // namespace

std::string MarksPath(const std::string &run)
{
	std::error_code ec;
	return std::filesystem::is_directory(run, ec) ? run + "/marks" : run + ".marks";
}

std::string ReadMarks(const std::string &run)
{
	const int fd = OpenMarks(MarksPath(run), O_RDONLY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st)) {
		if (fd >= 0)
			close(fd);
		return "";
	}
	const off_t from = std::max<off_t>(0, st.st_size - kMost);
	std::string text(static_cast<size_t>(st.st_size - from), '\0');
	const ssize_t n = pread(fd, text.data(), text.size(), from);
	close(fd);
	text.resize(n > 0 ? static_cast<size_t>(n) : 0);
	if (from) // in the middle of a line
		text.erase(0, std::min(text.size(), text.find('\n') + 1));
	return text;
}

bool AddMark(const std::string &run, uint64_t realtime_ns, const std::string &text, std::string *error)
{
	const std::string path = MarksPath(run);
	const int fd = OpenMarks(path, O_WRONLY | O_APPEND | O_CREAT);
	*error = "cannot write " + path + ": " + std::strerror(errno);
	if (fd < 0)
		return false;
	ft_clock now = {};
	ft_clock_read(&now);
	realtime_ns = realtime_ns ? realtime_ns : now.realtime_ns;
	char seconds[32];
	snprintf(seconds, sizeof seconds, "%llu.%09llu",
		 static_cast<unsigned long long>(realtime_ns / 1'000'000'000),
		 static_cast<unsigned long long>(realtime_ns % 1'000'000'000));
	const std::string line = std::string(seconds) + " " + text + "\n";
	const ssize_t n = write(fd, line.data(), line.size()); // at once: other programs append too
	if (n != static_cast<ssize_t>(line.size()))
		*error = "cannot write " + path + ": " + std::strerror(n < 0 ? errno : ENOSPC);
	ft_give_to_caller(fd);
	close(fd);
	return n == static_cast<ssize_t>(line.size());
}

std::vector<DatedMark> MarksIn(const std::string &file_text, size_t *ignored)
{
	std::istringstream lines(file_text);
	std::vector<DatedMark> marks;
	*ignored = 0;
	DatedMark mark;
	for (std::string line; std::getline(lines, line);)
		if (ParseMark(line, &mark))
			marks.push_back(mark);
		else
			*ignored += !line.empty();
	return marks;
}

void FindMarks(Run *run)
{
	constexpr uint64_t before_ns = 60'000'000'000;
	size_t ignored = 0;
	for (DatedMark &mark : MarksIn(ReadMarks(run->path), &ignored)) {
		const uint64_t t_ns = MonotonicNs(*run, mark.realtime_ns);
		if (t_ns && t_ns + before_ns >= run->start_ns && t_ns <= run->end_ns)
			run->marks.push_back({t_ns, std::move(mark.text)});
	}
	std::stable_sort(run->marks.begin(), run->marks.end(),
			 [](const Mark &a, const Mark &b) { return a.t_ns < b.t_ns; });
	if (ignored)
		run->warnings.push_back(common::Plural(ignored, "line of ", "lines of ") +
					common::Visible(MarksPath(run->path)) +
					(ignored == 1 ? " is no mark" : " are no marks") +
					" (seconds since 1970, a space, a text)");
}

} // namespace forktail::analysis
