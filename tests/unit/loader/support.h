// SPDX-License-Identifier: MIT
// Shared by the recorder's unit tests: a recording to write into, a synthetic proc directory, and a listening
// process.
#pragma once
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "recording/recording.h"
#include "tests/support/recorded.h"
#include "tests/support/tempdir.h"

namespace forktail::test
{

// A recording that the recorder's parts write into.
class Written
{
public:
	Written()
	{
		if (ft_writer_open(&w_, dir_.file("r.forktail").c_str(), "{}"))
			throw std::runtime_error("cannot write a recording");
	}
	~Written()
	{
		if (w_)
			ft_writer_close(w_, nullptr);
	}
	Written(const Written &) = delete;
	Written &operator=(const Written &) = delete;

	ft_writer *writer() { return w_; }
	// Ends it and reads its content.
	Recorded finish()
	{
		ft_writer_close(w_, "{}");
		w_ = nullptr;
		return read_recording(dir_.file("r.forktail"));
	}

private:
	TempDir dir_;
	ft_writer *w_ = nullptr;
};

// A directory used as /proc.
class Proc
{
public:
	std::string path() const { return dir_.path(); }
	// Replaces a file's text, not the file, because it may be open.
	void write(const std::string &name, const std::string &text) const
	{
		const std::filesystem::path file = dir_.file(name);
		std::filesystem::create_directories(file.parent_path());
		std::ofstream out(file, std::ios::binary | std::ios::trunc);
		if (!(out << text << std::flush))
			throw std::runtime_error("cannot write " + file.string());
	}

private:
	TempDir dir_;
};

// A socket of this process.
class Socket
{
public:
	explicit Socket(bool listening)
	{
		sockaddr_in a = {};
		a.sin_family = AF_INET;
		a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		socklen_t size = sizeof a;
		if (fd_ < 0 || bind(fd_, reinterpret_cast<sockaddr *>(&a), size) ||
		    (listening && listen(fd_, 1)) ||
		    getsockname(fd_, reinterpret_cast<sockaddr *>(&a), &size))
			throw std::runtime_error("cannot open a port");
		port_ = ntohs(a.sin_port);
	}
	explicit Socket(const std::string &path)
	{
		sockaddr_un a = {};
		a.sun_family = AF_UNIX;
		path.copy(a.sun_path, sizeof a.sun_path - 1);
		fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd_ < 0 || bind(fd_, reinterpret_cast<sockaddr *>(&a), sizeof a) || listen(fd_, 1))
			throw std::runtime_error("cannot listen on " + path);
	}
	~Socket() { close(fd_); }
	Socket(const Socket &) = delete;
	Socket &operator=(const Socket &) = delete;

	int fd() const { return fd_; }
	int port() const { return port_; }

private:
	int fd_ = -1, port_ = 0;
};

} // namespace forktail::test
