// SPDX-License-Identifier: MIT
// A hard link is free but needs the same file system and owner; a copy always works.
#include "copy.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <unistd.h>
#include <vector>

#include "recording/recording.h"

namespace forktail::live::snapshot
{

namespace
{

struct Closes {
	int fd;
	~Closes()
	{
		if (fd >= 0)
			close(fd);
	}
};

int WriteAll(int fd, const char *data, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, data, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		data += n;
		bytes -= static_cast<size_t>(n);
	}
	return 0;
}

int Copy(const std::string &from, const std::string &to)
{
	Closes in{open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
	if (in.fd < 0)
		return errno;
	Closes out{open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
	if (out.fd < 0)
		return errno;
	ft_give_to_caller(out.fd);
	std::vector<char> buffer(1 << 18);
	for (;;) {
		ssize_t n = read(in.fd, buffer.data(), buffer.size());
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			break;
		if (int rc = WriteAll(out.fd, buffer.data(), static_cast<size_t>(n)))
			return rc;
	}
	const int fd = std::exchange(out.fd, -1);
	return close(fd) ? errno : 0; // network file systems report a full disk here
}

struct EndReading {
	void operator()(ft_reader *r) const { ft_reader_close(r); }
};

// The latest time of any record in the file.
uint64_t LastInstant(ft_reader *reader)
{
	ft_places places;
	uint64_t last_ns = 0;
	if (ft_reader_places(reader, true, &places, nullptr, nullptr))
		return 0;
	for (size_t i = 0; i < places.count; i++)
		last_ns = std::max(last_ns, places.all[i].end_ns);
	ft_places_free(&places);
	return last_ns;
}

} // namespace

int LinkOrCopy(const std::string &from, const std::string &to, bool *linked)
{
	*linked = link(from.c_str(), to.c_str()) == 0;
	if (*linked)
		return 0;
	if (errno == ENOENT || errno == ENOSPC || errno == EDQUOT || errno == EEXIST)
		return errno;
	return Copy(from, to); // another file system, one without links, or another owner
}

int SealedCopy(const std::string &from, const std::string &to)
{
	char message[512];
	ft_reader *opened = nullptr;
	if (int rc = ft_reader_open(&opened, from.c_str(), message, sizeof message))
		return -rc;
	std::unique_ptr<ft_reader, EndReading> reader(opened);
	const uint64_t last_ns = LastInstant(reader.get());
	ft_block block;
	if (ft_reader_next(reader.get(), &block) != 1 || block.kind != FT_BLOCK_MANIFEST)
		return ENODATA;
	const std::string manifest(static_cast<const char *>(block.payload), block.bytes);
	ft_writer *writer = nullptr;
	if (int rc = ft_writer_open(&writer, to.c_str(), manifest.c_str()))
		return -rc;
	int rc = 0;
	while (!rc && ft_reader_next(reader.get(), &block) == 1)
		rc = ft_writer_block(writer, static_cast<ft_block_kind>(block.kind), block.record_size,
				     block.count, block.payload, block.bytes);
	const std::string summary = "{\"reason\":\"snapshot\",\"end_ns\":" + std::to_string(last_ns) + "}";
	const int closed = ft_writer_close(writer, summary.c_str());
	return rc ? -rc : -closed;
}

} // namespace forktail::live::snapshot
