// SPDX-License-Identifier: MIT
// See regular.h.
#include "regular.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace forktail::common
{

bool ReadRegular(const std::string &path, size_t most, std::string *text)
{
	constexpr size_t piece = 1 << 16;
	struct stat st;
	text->clear();
	const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return false;
	int why = fstat(fd, &st) ? errno : !S_ISREG(st.st_mode) ? EINVAL : 0;
	for (ssize_t n = 1; !why && n > 0;) {
		const size_t at = text->size();
		text->resize(at + piece);
		n = read(fd, text->data() + at, piece);
		why = n < 0 ? errno : at + static_cast<size_t>(n) > most ? EFBIG : 0;
		text->resize(at + static_cast<size_t>(n > 0 ? n : 0));
	}
	close(fd);
	errno = why;
	return !why;
}

} // namespace forktail::common
